import { ClassifyError, type ListedFile, type Recognition, recognise } from '@svc/classify'
import { DaemonError } from '../errors.ts'
import type { Offload } from '../offload/pool.ts'
import type { ImportSource, SourceFile } from './source.ts'

/** Stage 1: what a listing is, by its names alone. Nothing was read yet. */
export interface PlannedImport {
  readonly source: ImportSource
  readonly recognition: Recognition
  /** By upstream name. */
  readonly files: ReadonlyMap<string, SourceFile>
  /** Bytes that will be read or fetched. */
  readonly bytesTotal: number
  /** How many files the caller's choice left out; absent where there was none. */
  readonly notChosen?: number
}

/** @throws DaemonError for a listing that is refused whole (spec rec.21): `E_BAD_REQUEST` local, else `E_NOT_IMPORTABLE`. */
export function planImport(source: ImportSource): PlannedImport {
  try {
    return planned(source, recognise(listingOf(source)))
  } catch (cause) {
    throw refused(source, cause)
  }
}

/** Longer listings than this are recognised off the event loop: 100,000 names take seconds. */
const MAX_NAMES_HERE = 500

/** {@link planImport} for a listing of any length. @throws as it */
export async function planListing(source: ImportSource, offload: Offload): Promise<PlannedImport> {
  if (source.files.length <= MAX_NAMES_HERE) return planImport(source)
  try {
    return planned(source, await offload.run('recognise', listingOf(source)))
  } catch (cause) {
    throw refused(source, cause)
  }
}

const listingOf = ({ files }: ImportSource): ListedFile[] => files.map(({ name, sizeBytes }) => ({ name, sizeBytes }))

function refused({ kind }: ImportSource, cause: unknown): unknown {
  if (!(cause instanceof ClassifyError)) return cause
  if (kind === 'local') return new DaemonError('E_BAD_REQUEST', cause.message, { cause })
  return new DaemonError('E_NOT_IMPORTABLE', cause.message, { cause, status: 502 })
}

function planned(source: ImportSource, recognition: Recognition): PlannedImport {
  const files = new Map(source.files.map((file) => [file.name, file]))
  let bytesTotal = 0
  for (const [name, { use }] of recognition.uses) {
    if (use !== 'skip' || source.fetchUnrecognised) bytesTotal += files.get(name)!.sizeBytes
  }
  return { source, recognition, files, bytesTotal }
}
