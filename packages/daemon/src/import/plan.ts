import { ClassifyError, recognise, type Recognition } from '@svc/classify'
import { DaemonError } from '../errors.ts'
import type { ImportSource, SourceFile } from './source.ts'

/** Stage 1: what a listing is, by its names alone. Nothing was read yet. */
export interface PlannedImport {
  readonly source: ImportSource
  readonly recognition: Recognition
  /** By upstream name. */
  readonly files: ReadonlyMap<string, SourceFile>
  /** Bytes that will be read or fetched. */
  readonly bytesTotal: number
}

/** @throws DaemonError for a listing that is refused whole (decisions §3): `E_BAD_REQUEST` local, else `E_NOT_IMPORTABLE`. */
export function planImport(source: ImportSource): PlannedImport {
  let recognition: Recognition
  try {
    recognition = recognise(source.files.map(({ name, sizeBytes }) => ({ name, sizeBytes })))
  } catch (cause) {
    if (!(cause instanceof ClassifyError)) throw cause
    if (source.kind === 'local') throw new DaemonError('E_BAD_REQUEST', cause.message, { cause })
    throw new DaemonError('E_NOT_IMPORTABLE', cause.message, { cause, status: 502 })
  }
  const files = new Map(source.files.map(file => [file.name, file]))
  let bytesTotal = 0
  for (const [name, { use }] of recognition.uses) {
    if (use !== 'skip' || source.fetchUnrecognised) bytesTotal += files.get(name)!.sizeBytes
  }
  return { source, recognition, files, bytesTotal }
}
