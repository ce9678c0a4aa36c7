import {
  type Chosen,
  ClassifyError,
  chosenOf,
  DEFAULT_FORM,
  type HeaderSummary,
  isPickle,
  isPickleByName,
  type ManifestEntry,
  mayBePickle,
  needsSafetensorsQuant,
  normalizedNames,
  PICKLE_START_BYTES,
  quantOfConfig,
  quantsOf,
  type ReadAt,
  type Recognition,
  readHeader,
  refusePickles,
  requiredReads,
  requireImportable,
  safetensorsQuant
} from '@svc/classify'
import { forEachLimited } from '@svc/internal-concurrency'
import { LibraryError, type Offload } from '@svc/internal-state'
import { COMPANION_BOUNDS } from '@svc/manifest'
import { planCompanions } from './companions.ts'
import { configFacts } from './config-facts.ts'
import { headsOf, type ReadHead, withStartOf } from './heads.ts'
import { type PlannedImport, planListing } from './plan.ts'
import type { SourceSelection } from './selection.ts'
import { type ImportSource, isRemote, type SourceFile } from './source.ts'

/** Headers read concurrently, if they are needed for the quant. */
const READS_AT_ONCE = 8

/**
 * Stage 1 with the caller's selection of weights and aux files. If there is one, unrecognized files are not fetched
 * either. Headers of safetensors and the root `config.json` are read only if the quant of safetensors decides.
 * @throws as `planListing`; LibraryError `E_NO_MEMBER` (400) for a quant that the listing does not have; ClassifyError
 *   `E_NOT_IMPORTABLE` for two files with one name, or when no weights are left
 */
export async function planSelected(
  source: ImportSource,
  selection: SourceSelection,
  offload: Offload,
  signal: AbortSignal
): Promise<PlannedImport> {
  if (selection.opaque !== undefined) return planOpaque(source, selection, selection.opaque, offload, signal)
  const { named, names, heads } = await withNames(source, selection, offload, signal)
  const whole = { ...(await planListing(named, offload, names)), ...(heads !== undefined && { heads }) }
  const isChoice = selection.quants !== undefined || selection.files !== undefined || selection.aux !== undefined
  if (!isChoice && !whole.recognition.entries.some(({ forms }) => forms !== undefined)) return whole
  const { left, otherForms, entries, warnings } = await selected(whole, selection, offload, signal)
  const out = new Set(left)
  const files = named.files.filter(({ name }) => !out.has(name))
  const beside = { listed: whole.listed, companions: whole.companions, ...(heads !== undefined && { heads }) }
  const rest = await planListing({ ...named, files, fetchUnrecognized: false }, offload, names)
  const recognition = { ...rest.recognition, entries, warnings: [...rest.recognition.warnings, ...warnings] }
  return { ...rest, ...beside, recognition, notChosen: left.length, otherForms }
}

/**
 * The import of every file as it is, or of those that globs match (spec rec.32). Other small files are companions.
 * @throws as `planListing`; ClassifyError `E_NOT_IMPORTABLE` for a pickle that its owner did not allow, and when no files are left
 */
async function planOpaque(
  source: ImportSource,
  selection: Pick<SourceSelection, 'files'>,
  { allowsPickles }: NonNullable<SourceSelection['opaque']>,
  offload: Offload,
  signal: AbortSignal
): Promise<PlannedImport> {
  const whole = await planListing({ ...source, fetchUnrecognized: false }, offload, 'opaque')
  requireImportable(whole.recognition)
  const { left, entries } = chosenOf(whole.recognition, { files: selection.files }, undefined)
  if (!allowsPickles) refusePickles(await picklesAmong(entries, whole.files, signal))
  const uses = new Map(whole.recognition.uses)
  for (const name of left) {
    // a small file that was not chosen is a companion; a large one is as the weights of another quant
    if (whole.files.get(name)!.sizeBytes <= COMPANION_BOUNDS.fileBytes)
      uses.set(name, { use: 'skip', reason: 'not-chosen' })
  }
  const companions = planCompanions(source, whole.files, uses)
  const out = new Set(left)
  for (const name of left) if (!companions.files.has(name)) uses.delete(name)
  const skipped = [...uses].flatMap(([name, use]) => (use.use === 'skip' ? [{ name, reason: use.reason }] : []))
  const licences = whole.recognition.licences.filter(({ name }) => !out.has(name))
  const recognition = { ...whole.recognition, entries, uses, skipped, licences }
  return { ...whole, recognition, companions, ...(selection.files !== undefined && { notChosen: left.length }) }
}

/** Starts that are read of a source before an import; the bytes that come tell of the others. */
const MAX_STARTS = 32

/** The pickles among files, as far as names and a few starts tell before the import. */
async function picklesAmong(
  entries: readonly ManifestEntry[],
  files: PlannedImport['files'],
  signal: AbortSignal
): Promise<string[]> {
  const found = entries.map(({ name }) => name).filter(isPickleByName)
  if (found.length > 0) return found
  const inDoubt = entries.filter(({ name }) => mayBePickle(name)).toSorted((a, b) => b.sizeBytes - a.sizeBytes)
  await forEachLimited(inDoubt.slice(0, MAX_STARTS), READS_AT_ONCE, signal, async ({ name, sizeBytes }, signal) => {
    const start = await withStartOf(files.get(name)!, signal, (readAt) =>
      readAt(0, Math.min(sizeBytes, PICKLE_START_BYTES))
    )
    if (start !== undefined && isPickle(name, start)) found.push(name)
  })
  return found.sort()
}

/** The source under the names that the selection asks for. */
async function withNames(
  source: ImportSource,
  { normalizedNames }: Pick<SourceSelection, 'normalizedNames'>,
  offload: Offload,
  signal: AbortSignal
) {
  if (!normalizedNames) return { named: source, names: 'upstream' as const }
  const heads = await headsOf(source, offload, signal)
  return { named: withNormalizedNames(source, heads), names: 'normalized' as const, heads }
}

function withNormalizedNames(source: ImportSource, heads: ReadonlyMap<string, ReadHead>): ImportSource {
  const names = normalizedNames(
    source.files.map(({ name }) => name),
    new Map([...heads].map(([name, { head }]) => [name, head]))
  )
  const changed = [...names].filter(([upstream, name]) => upstream !== name).map(([upstream, name]) => [name, upstream])
  return {
    ...source,
    origin: {
      ...source.origin,
      ...(source.origin.kind === 'hf' && changed.length > 0 && { names: Object.fromEntries(changed) })
    },
    files: source.files.map((file) => ({ ...file, name: names.get(file.name)! }))
  }
}

async function selected(
  whole: PlannedImport,
  selection: SourceSelection,
  offload: Offload,
  signal: AbortSignal
): Promise<Chosen> {
  const quant = needsSafetensorsQuant(whole.recognition, selection) ? await quantOf(whole, offload, signal) : undefined
  try {
    return chosenOf(whole.recognition, selection, quant)
  } catch (cause) {
    if (!(cause instanceof ClassifyError) || cause.code !== 'E_NO_MEMBER') throw cause
    throw new LibraryError('E_NO_MEMBER', cause.message, { candidates: cause.details.candidates, cause })
  }
}

/** The quants of an import of everything, under the selection's names. @throws as {@link planSelected} */
export async function selectedQuants(
  source: ImportSource,
  selection: Pick<SourceSelection, 'normalizedNames'>,
  offload: Offload,
  signal: AbortSignal
): Promise<string[]> {
  const { named, names } = await withNames(source, selection, offload, signal)
  const whole = await planListing(named, offload, names)
  const needsQuant = needsSafetensorsQuant(whole.recognition, { quants: [] })
  return quantsOf(whole.recognition, needsQuant ? await quantOf(whole, offload, signal) : undefined)
}

/** The quant of a listing's safetensors, by the rule that the import will apply to the whole files. */
async function quantOf(plan: PlannedImport, offload: Offload, signal: AbortSignal): Promise<string> {
  const { config, headers } = await quantFacts(plan, offload, signal)
  return safetensorsQuant(config, headers.values(), plan.recognition.names)
}

/** The evidence for it: the root `config.json`, or else the headers of all safetensors, by name. */
export async function quantFacts({ recognition, files }: PlannedImport, offload: Offload, signal: AbortSignal) {
  const reads = requiredReads(recognition)
  const read = reads.find(({ what }) => what === 'config')
  const isKept = read !== undefined && read.sizeBytes <= read.maxBytes
  const config = isKept
    ? await configFacts(
        await withBytesOf(files.get(read.name)!, signal, (readAt) => readAt(0, read.sizeBytes)),
        offload
      )
    : undefined
  const headers = new Map<string, HeaderSummary>()
  const others = otherFormsIn(recognition)
  const weights =
    quantOfConfig(config, recognition.names) === undefined
      ? reads.filter((each) => each.what === 'safetensors-header').filter(({ name }) => !others.has(name))
      : []
  await forEachLimited(weights, READS_AT_ONCE, signal, async (each, signal) => {
    headers.set(each.name, await headerOf(files.get(each.name)!, each, offload, signal))
  })
  return { config, headers }
}

/** A file here has the header that its author likes, up to 100 MB: it is read in a thread. */
async function headerOf(
  file: SourceFile,
  read: Parameters<typeof readHeader>[0],
  offload: Offload,
  signal: AbortSignal
): Promise<HeaderSummary> {
  if (isRemote(file)) return withBytesOf(file, signal, (readAt) => readHeader(read, readAt))
  const opened = await file.open(signal)
  try {
    return await offload.call('header', { ...read, fd: opened.fd })
  } finally {
    await opened.close()
  }
}

/** Names of the weights that other forms have alone, if the form that comes by default is there. */
function otherFormsIn({ entries }: Recognition): ReadonlySet<string> {
  const isDefault = ({ forms }: ManifestEntry): boolean => forms?.includes(DEFAULT_FORM) ?? true
  const weights = entries.filter(({ kind }) => kind === 'weights.safetensors')
  return new Set(weights.some(isDefault) ? weights.filter((entry) => !isDefault(entry)).map(({ name }) => name) : [])
}

async function withBytesOf<T>(file: SourceFile, signal: AbortSignal, use: (readAt: ReadAt) => Promise<T>): Promise<T> {
  const used = await withStartOf(file, signal, async (readAt) => ({ is: await use(readAt) }))
  if (used !== undefined) return used.is
  const what = `the quant is unknown, since ${JSON.stringify(file.name)} cannot be read before it is fetched`
  throw new LibraryError('E_INVALID', `${what}; choose with "files" instead of "quants"`)
}
