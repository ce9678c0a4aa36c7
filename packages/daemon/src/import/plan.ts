import { ClassifyError, type FileUse, type Recognition, recognise } from '@svc/classify'
import { DaemonError } from '../errors.ts'
import type { Offload } from '../offload/pool.ts'
import { type CompanionPlan, planCompanions } from './companions.ts'
import type { ImportSource, SourceFile } from './source.ts'

/** The result of stage 1: the contents of a listing, by names alone. Nothing was read yet. */
export interface PlannedImport {
  readonly source: ImportSource
  readonly recognition: Recognition
  /** By upstream name. */
  readonly files: ReadonlyMap<string, SourceFile>
  /** The companions: of the whole listing, whatever the selection. */
  readonly companions: CompanionPlan
  /** Number of files that the caller's choice excluded; absent if there was no choice. */
  readonly notChosen?: number
}

/** Longer listings are recognised off the event loop: 100,000 names take seconds. */
const MAX_NAMES_HERE = 500

/**
 * @throws DaemonError for a listing that is refused as a whole (spec rec.21): `E_BAD_REQUEST` for a local one, else
 *   `E_NOT_IMPORTABLE`.
 */
export async function planListing(source: ImportSource, offload: Offload): Promise<PlannedImport> {
  const listing = source.files.map(({ name, sizeBytes }) => ({ name, sizeBytes }))
  try {
    const isShort = listing.length <= MAX_NAMES_HERE
    return planned(source, isShort ? recognise(listing) : await offload.call('recognise', listing))
  } catch (cause) {
    throw refused(source, cause)
  }
}

function refused({ kind }: ImportSource, cause: unknown): unknown {
  if (!(cause instanceof ClassifyError)) return cause
  if (kind === 'local') return new DaemonError('E_BAD_REQUEST', cause.message, { cause })
  return new DaemonError('E_NOT_IMPORTABLE', cause.message, { cause, status: 502 })
}

function planned(source: ImportSource, recognition: Recognition): PlannedImport {
  const files = new Map(source.files.map((file) => [file.name, file]))
  return { source, recognition, files, companions: planCompanions(source, files, recognition.uses) }
}

/** The files that an import reads or fetches, and for what. */
export const filesToRead = ({ source, recognition, companions }: PlannedImport): (readonly [string, FileUse])[] =>
  [...recognition.uses].filter(
    ([name, { use }]) => use !== 'skip' || source.fetchUnrecognised || companions.files.has(name)
  )

/** Their bytes. */
export const bytesToRead = (plan: PlannedImport): number =>
  filesToRead(plan).reduce((sum, [name]) => sum + plan.files.get(name)!.sizeBytes, 0)

/** The part of a planned import that brings nothing but companions. */
export function companionsAlone(plan: PlannedImport): PlannedImport {
  const { recognition, companions } = plan
  const uses = new Map([...recognition.uses].filter(([name]) => companions.files.has(name)))
  return { ...plan, recognition: { ...recognition, uses, entries: [], licences: [], config: undefined } }
}

/** The part of a planned import that brings these files of its artifacts, by their upstream names, and nothing beside them. */
export function entriesAlone(plan: PlannedImport, names: ReadonlySet<string>): PlannedImport {
  const { recognition, companions } = plan
  const uses = new Map([...recognition.uses].filter(([name, { use }]) => use === 'entry' && names.has(name)))
  const entries = recognition.entries.filter(({ content }) => content.from === 'file' && uses.has(content.name))
  return {
    ...plan,
    companions: { ...companions, files: new Map() },
    recognition: { ...recognition, uses, entries, licences: [], config: undefined }
  }
}
