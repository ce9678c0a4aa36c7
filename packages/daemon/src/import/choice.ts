import {
  ClassifyError,
  type HeaderSummary,
  needsSafetensorsQuant,
  normalisedNames,
  notChosen,
  quantsOf,
  type ReadAt,
  readConfig,
  readHeader,
  requiredReads,
  safetensorsQuant
} from '@svc/classify'
import { forEachLimited } from '@svc/internal-concurrency'
import { DaemonError } from '../errors.ts'
import type { Offload } from '../offload/pool.ts'
import { readAtOf } from '../read-at.ts'
import { type PlannedImport, planListing } from './plan.ts'
import type { SourceSelection } from './selection.ts'
import { type ImportSource, isRemote, type SourceFile } from './source.ts'

/** Headers read concurrently, if they are needed for the quant. */
const READS_AT_ONCE = 8

/**
 * Stage 1 with the caller's selection of weights and aux files. If there is one, unrecognised files are not fetched
 * either. Headers of safetensors and the root `config.json` are read only if the quant of safetensors decides.
 * @throws as `planListing`; DaemonError `E_NO_MEMBER` (400) for a quant that the listing does not have; ClassifyError
 *   `E_NOT_IMPORTABLE` for two files with one name, or when no weights are left
 */
export async function planSelected(
  source: ImportSource,
  selection: SourceSelection,
  offload: Offload,
  signal: AbortSignal
): Promise<PlannedImport> {
  const named = selection.normalizedNames ? withNormalizedNames(source) : source
  const whole = await planListing(named, offload)
  if (selection.quants === undefined && selection.files === undefined && selection.aux === undefined) return whole
  const left = await notSelected(whole, selection, signal)
  const files = named.files.filter(({ name }) => !left.has(name))
  const chosen = await planListing({ ...named, files, fetchUnrecognised: false }, offload)
  return { ...chosen, companions: whole.companions, notChosen: left.size }
}

function withNormalizedNames(source: ImportSource): ImportSource {
  const names = normalisedNames(source.files.map(({ name }) => name))
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

async function notSelected(
  whole: PlannedImport,
  selection: SourceSelection,
  signal: AbortSignal
): Promise<ReadonlySet<string>> {
  const quant = needsSafetensorsQuant(whole.recognition, selection) ? await quantOf(whole, signal) : undefined
  try {
    return new Set(notChosen(whole.recognition, selection, quant))
  } catch (cause) {
    if (!(cause instanceof ClassifyError) || cause.code !== 'E_NO_MEMBER') throw cause
    throw new DaemonError('E_NO_MEMBER', cause.message, { candidates: cause.details.candidates, cause })
  }
}

/** The quants of an import of everything, under the selection's names. @throws as {@link planSelected} */
export async function selectedQuants(
  source: ImportSource,
  { normalizedNames }: Pick<SourceSelection, 'normalizedNames'>,
  offload: Offload,
  signal: AbortSignal
): Promise<string[]> {
  const whole = await planListing(normalizedNames ? withNormalizedNames(source) : source, offload)
  const needsQuant = needsSafetensorsQuant(whole.recognition, { quants: [] })
  return quantsOf(whole.recognition, needsQuant ? await quantOf(whole, signal) : undefined)
}

/** The quant of a listing's safetensors, by the rule that the import will apply to the whole files. */
async function quantOf(plan: PlannedImport, signal: AbortSignal): Promise<string> {
  const { config, headers } = await quantFacts(plan, signal)
  return safetensorsQuant(config, headers.values())
}

/** The evidence for it: the root `config.json`, or else the headers of all safetensors, by name. */
export async function quantFacts({ recognition, files }: PlannedImport, signal: AbortSignal) {
  const reads = requiredReads(recognition)
  const read = reads.find(({ what }) => what === 'config')
  const isKept = read !== undefined && read.sizeBytes <= read.maxBytes
  const config = isKept
    ? readConfig(await withBytesOf(files.get(read.name)!, signal, (readAt) => readAt(0, read.sizeBytes)))
    : undefined
  const headers = new Map<string, HeaderSummary>()
  const weights = config?.quant === undefined ? reads.filter((each) => each.what === 'safetensors-header') : []
  await forEachLimited(weights, READS_AT_ONCE, signal, async (each, signal) => {
    headers.set(each.name, await withBytesOf(files.get(each.name)!, signal, (readAt) => readHeader(each, readAt)))
  })
  return { config, headers }
}

async function withBytesOf<T>(file: SourceFile, signal: AbortSignal, use: (readAt: ReadAt) => Promise<T>): Promise<T> {
  if (isRemote(file)) {
    if (file.peek !== undefined) return use(file.peek(signal))
    const what = `the quant is unknown, since ${JSON.stringify(file.name)} cannot be read before it is fetched`
    throw new DaemonError('E_BAD_REQUEST', `${what}; choose with "files" instead of "quants"`)
  }
  const opened = await file.open(signal)
  try {
    return await use(readAtOf(opened.fd, file.sizeBytes))
  } finally {
    await opened.close()
  }
}
