import { ClassifyError, type FileUse, isSecretByName, type NamesRead, type Recognition, recognize } from '@svc/classify'
import { LibraryError, type Offload } from '@svc/internal-state'
import { type CompanionPlan, isHidden, planCompanions } from './companions.ts'
import type { ReadHead } from './heads.ts'
import type { ImportSource, SourceFile } from './source.ts'

/** The result of stage 1: the contents of a listing, by names alone. Nothing was read yet. */
export interface PlannedImport {
  readonly source: ImportSource
  readonly recognition: Recognition
  /** The names of the whole listing, whatever the selection. */
  readonly listed: readonly string[]
  /** By the names that recognition sees. */
  readonly files: ReadonlyMap<string, SourceFile>
  /** The companions: of the whole listing, whatever the selection. */
  readonly companions: CompanionPlan
  /** The headers that decided the names, by upstream name; absent for upstream names. */
  readonly heads?: ReadonlyMap<string, ReadHead>
  /** Of the files that are left out, those that are the same model in another form, each with that form. */
  readonly otherForms?: ReadonlyMap<string, string>
  /** Number of files that the caller's choice excluded; absent if there was no choice. */
  readonly notChosen?: number
}

/** Longer listings are recognized off the event loop: 100,000 names take seconds. */
const MAX_NAMES_HERE = 500

/**
 * @param names how the names are read; normalized ones are in `source` already
 * @throws LibraryError for a listing that is refused as a whole (spec rec.21): `E_INVALID` for a local one, else
 *   `E_NOT_IMPORTABLE`.
 */
export async function planListing(
  source: ImportSource,
  offload: Offload,
  names: NamesRead = 'upstream'
): Promise<PlannedImport> {
  const listing = source.files.map(({ name, sizeBytes }) => ({ name, sizeBytes }))
  try {
    const isShort = listing.length <= MAX_NAMES_HERE
    return planned(source, isShort ? recognize(listing, names) : await offload.call('recognize', { listing, names }))
  } catch (cause) {
    throw refused(source, cause)
  }
}

function refused({ kind }: ImportSource, cause: unknown): unknown {
  if (!(cause instanceof ClassifyError)) return cause
  if (kind === 'local') return new LibraryError('E_INVALID', cause.message, { cause })
  return new LibraryError('E_BAD_LISTING', cause.message, { cause })
}

function planned(source: ImportSource, found: Recognition): PlannedImport {
  const files = new Map(source.files.map((file) => [file.name, file]))
  const recognition = source.origin.kind === 'local' ? withoutOwn(withoutSecrets(found)) : found
  const listed = [...files.keys()]
  return { source, recognition, listed, files, companions: planCompanions(source, files, recognition.uses) }
}

/** A file that is named like a secret is not kept, not as the text of a licence either (spec rec.24). */
function withoutSecrets(recognition: Recognition): Recognition {
  const licences = recognition.licences.filter(({ name }) => !isSecretByName(name))
  if (licences.length === recognition.licences.length) return recognition
  const left = recognition.licences
    .filter((file) => !licences.includes(file))
    .map(({ name }) => ({ name, reason: 'unrecognised' as const }))
  const uses = new Map(recognition.uses)
  for (const { name, reason } of left) uses.set(name, { use: 'skip', reason })
  return { ...recognition, licences, uses, skipped: [...recognition.skipped, ...left] }
}

/** Of files that are taken as they are, without those that are hidden or named like secrets (spec rec.32). */
function withoutOwn(recognition: Recognition): Recognition {
  if (recognition.names !== 'opaque') return recognition
  const isOwn = (name: string): boolean => isHidden(name) || isSecretByName(name)
  const own = recognition.entries.map(({ name }) => name).filter(isOwn)
  if (own.length === 0) return recognition
  const uses = new Map(recognition.uses)
  for (const name of own) uses.set(name, { use: 'skip', reason: 'unrecognised' })
  return {
    ...recognition,
    uses,
    entries: recognition.entries.filter(({ name }) => !isOwn(name)),
    skipped: [...recognition.skipped, ...own.map((name) => ({ name, reason: 'unrecognised' as const }))]
  }
}

/** The files that an import reads or fetches, and for what. */
export const filesToRead = ({ source, recognition, companions }: PlannedImport): (readonly [string, FileUse])[] =>
  [...recognition.uses].filter(
    ([name, { use }]) => use !== 'skip' || source.fetchUnrecognized || companions.files.has(name)
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
