import { hash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import {
  type ArtifactPlan,
  type CacheShape,
  cacheNeed,
  damagedWeights,
  formQuant,
  GGUF_HEAD_BYTES,
  type HeaderSummary,
  isWeights,
  type LicenceFact,
  planArtifacts,
  quantOfConfig,
  type ReadAt,
  type RequiredRead,
  readHeader,
  requiredReads,
  requireImportable
} from '@svc/classify'
import { type Hub, HubError, type HubFile, type HubListing } from '@svc/hub'
import { forEachLimited } from '@svc/internal-concurrency'
import {
  configFacts,
  type ImportSource,
  LibraryError,
  type Offload,
  type PlannedImport,
  planSelected,
  type SourceSelection,
  upstreamName
} from '@svc/library/parts'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { markOf, type PlanFinding } from './inspect.ts'
import { HeaderTooLarge, windowOf } from './window.ts'

/**
 * What an import would do with one file of the hub: `store` fetches and stores it (or packs it into a stored tar), `annotate`
 * includes it in the documents (licence, root config), `present` needs no fetch, `skip` ignores it.
 */
export interface PlannedHubFile {
  readonly name: string
  readonly size: number
  readonly action: 'store' | 'annotate' | 'present' | 'skip'
  /** Of the entry that it becomes or joins. */
  readonly kind?: string
  /** Of weights. */
  readonly quant?: string
  /** Why it is skipped. */
  readonly reason?: string
  /** It is kept beside the model, in no manifest. */
  readonly companion?: boolean
  /** Its name on the hub, if it gets another one. */
  readonly upstream?: string
}

/** A model that an import would make. */
interface PlannedArtifact {
  readonly quant: string
  /** The first of its weights on the hub, if that name does not tell the quant. */
  readonly upstream?: string
  /** Including those that it shares with others. */
  readonly files: number
  readonly bytes: number
  /** Of these, bytes that the store has. */
  readonly bytesPresent: number
  /** Of weights, projectors and draft heads, if a context was given. */
  readonly weightsBytes?: number
}

/** What an import from the hub would do. */
export interface HubPlan {
  /** In the hub's spelling. */
  readonly repo: string
  readonly commit: string
  /** The name that it would have, `ns/name`. */
  readonly as: string
  readonly files: readonly PlannedHubFile[]
  readonly totals: Readonly<
    Record<
      'files' | 'bytes' | 'fetchFiles' | 'fetchBytes' | 'storeFiles' | 'storeBytes' | 'skipFiles' | 'skipBytes',
      number
    >
  >
  readonly quants: readonly string[]
  /** One for each quant, in the same order. */
  readonly artifacts: readonly PlannedArtifact[]
  /** SPDX expression of the texts; without any, what the hub names. */
  readonly license?: string
  /** The hub asks for consent. */
  readonly gated?: boolean
  /** The hub shows it only to some. */
  readonly private?: boolean
  /** If a context was given: what each artifact needs beside its weights, or why that is unknown. */
  readonly memory?:
    | { readonly contextTokens: number; readonly cacheBytes: number; readonly computeBytes: number }
    | { readonly unknown: string }
  /** What names and the configuration tell of what would run code or is malformed. */
  readonly mark?: PlanFinding
  readonly warnings: readonly string[]
}

/** If there are more safetensors than this, a plan does not fetch their headers, and leaves their quant open. */
const MAX_HEADERS = 64

/** Larger licence texts are not read just to identify them. */
const MAX_TEXT_BYTES = 16 * 2 ** 20

export interface PlanDeps {
  readonly store: DiskBlobStore
  readonly offload: Offload
}

/**
 * What an import would do, from the listing, `config.json`, licence texts and, only if the quant depends on them, the
 * headers of safetensors. Small texts are not compared with their hashes, since nothing is kept.
 * @throws ClassifyError `E_NOT_IMPORTABLE` as the import would; HubError; LibraryError of `planSelected`
 */
export async function planHub(
  hub: Pick<Hub, 'read'>,
  listing: HubListing,
  source: ImportSource,
  selection: SourceSelection,
  as: string,
  { store, offload, contextTokens }: PlanDeps & { readonly contextTokens?: number | undefined }
): Promise<HubPlan> {
  const planned = await planSelected(source, selection, offload, NEVER)
  requireImportable(planned.recognition)
  const hubFiles = new Map(listing.files.map((file) => [file.path, file]))
  const upstream = new Map(planned.listed.map((name) => [name, upstreamName(planned.source.origin, name)]))
  const files = new Map(
    [...upstream].map(([name, path]) => [name, hubFiles.get(path) ?? joinedFile(name, planned, hubFiles)])
  )
  const facts = await readFacts(hub, planned, files, offload)
  const plan = planArtifacts(planned.recognition, facts)
  const present = await presentIn(store, planned)
  const quantOf = new Map(
    plan.artifacts.flatMap(({ quant, entries }) => entries.filter(isWeights).map(({ name }) => [name, quant] as const))
  )
  const rows = [...files].map(([name, { sizeBytes }]): PlannedHubFile => {
    const path = upstream.get(name)!
    const row = rowOf(name, sizeBytes, planned, quantOf, present)
    return {
      ...row,
      ...(planned.companions.files.has(name) && { companion: true }),
      ...(path !== name && { upstream: path })
    }
  })
  const { memory, doubts = [] } = await memoryOf(
    { hub, offload },
    plan.artifacts,
    files,
    facts.config?.upstream,
    contextTokens
  )
  const mark = await markOf(rows, facts.config?.upstream, offload)
  const said = plan.warnings.map(({ message }) => message)
  const license = plan.artifacts[0]?.annotations['svc.license'] ?? listing.license
  return {
    repo: listing.repoId,
    commit: listing.commit,
    as,
    files: rows,
    totals: totalsOf(rows, planned.source.fetchUnrecognized),
    quants: plan.artifacts.map(({ quant }) => quant),
    artifacts: plan.artifacts.map(({ quant, entries }) => ({
      quant,
      ...publishedAs(quant, entries, upstream),
      ...countsOf(entries, present, memory !== undefined)
    })),
    ...(license !== undefined && { license }),
    ...(listing.gated && { gated: true }),
    ...(listing.private && { private: true }),
    ...(memory !== undefined && { memory }),
    ...(mark !== undefined && { mark }),
    warnings: [...source.warnings, ...said, ...doubts, ...facts.openQuestions]
  }
}

/** The entries whose bytes the store has. */
async function presentIn(
  store: DiskBlobStore,
  { recognition, files }: Pick<PlannedImport, 'recognition' | 'files'>
): Promise<ReadonlySet<string>> {
  const present = new Set<string>()
  for (const entry of recognition.entries) {
    const digest = entry.content.from === 'file' ? files.get(entry.content.name)!.digest : undefined
    if (digest !== undefined && (await store.stat(digest)) !== undefined) present.add(entry.name)
  }
  return present
}

/** A file that is joined of pieces; its start is that of the first. */
function joinedFile(name: string, { files }: PlannedImport, listed: ReadonlyMap<string, HubFile>): HubFile {
  const file = files.get(name)!
  const [first] = file.joinedOf ?? []
  return { ...listed.get(first!)!, sizeBytes: file.sizeBytes }
}

/** What the publisher calls an artifact, where its quant does not tell which of the files it is. */
function publishedAs(
  quant: string,
  entries: ArtifactPlan['entries'],
  upstream: ReadonlyMap<string, string>
): { readonly upstream?: string } {
  const first = entries.find(({ kind }) => kind === 'weights.gguf')
  const name = first && upstream.get(first.name)
  return name === undefined || name.toLowerCase().includes(quant) ? {} : { upstream: name }
}

const sum = (entries: readonly { readonly sizeBytes: number }[]): number =>
  entries.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0)

const countsOf = (entries: ArtifactPlan['entries'], present: ReadonlySet<string>, withWeights: boolean) => ({
  files: entries.length,
  bytes: sum(entries),
  bytesPresent: sum(entries.filter(({ name }) => present.has(name))),
  ...(withWeights && { weightsBytes: sum(entries.filter(isLoaded)) })
})

/** Whether a running model has it in memory. */
const isLoaded = (entry: ArtifactPlan['entries'][number]): boolean =>
  isWeights(entry) || entry.kind === 'opaque' || entry.role === 'vision-projector' || entry.role === 'draft'

interface MemoryFound {
  readonly memory?: NonNullable<HubPlan['memory']>
  readonly doubts?: readonly string[]
}

/**
 * The memory beside the weights. Artifacts of a repository differ only in their quants, so one header gives it for all.
 * The weights take what the listing says: their tensors may claim anything. Nothing without a context.
 */
async function memoryOf(
  { hub, offload }: { readonly hub: Pick<Hub, 'read'>; readonly offload: Offload },
  artifacts: readonly Pick<ArtifactPlan, 'entries'>[],
  files: ReadonlyMap<string, HubFile>,
  config: string | undefined,
  contextTokens: number | undefined
): Promise<MemoryFound> {
  if (contextTokens === undefined) return {}
  const needOf = (shape: CacheShape | string): NonNullable<MemoryFound['memory']> =>
    typeof shape === 'string' ? { unknown: shape } : cacheNeed(shape, contextTokens)
  const ggufs = artifacts.flatMap(({ entries }) => entries.filter(({ kind }) => kind === 'weights.gguf'))
  const first = ggufs.toSorted((a, b) => (a.name < b.name ? -1 : 1))[0]
  const file = first && files.get(first.name)
  if (first === undefined || file === undefined) {
    const { shape } = await offload.call('cache', { config })
    return { memory: needOf(shape) }
  }
  const { sizeBytes } = file
  try {
    const head = await hub.read(file, { start: 0, end: Math.min(sizeBytes, GGUF_HEAD_BYTES) })
    const { shape, defect } = await offload.call('cache', { head, sizeBytes })
    return {
      memory: needOf(shape),
      ...(defect !== undefined && { doubts: [damagedWeights(first.name, defect).message] })
    }
  } catch (error) {
    if (!(error instanceof HubError)) throw error
    return { memory: { unknown: `the hub did not send its header: ${error.message}` } }
  }
}

async function readFacts(
  hub: Pick<Hub, 'read'>,
  { recognition }: PlannedImport,
  files: ReadonlyMap<string, HubFile>,
  offload: Offload
) {
  const reads = requiredReads(recognition)
  const headers = new Map<string, HeaderSummary>()
  const licences: LicenceFact[] = []
  const openQuestions: string[] = []
  let configBytes: Uint8Array | undefined
  const texts = reads.filter(({ what }) => what === 'config' || what === 'licence')
  await forEachLimited(texts, 8, NEVER, async ({ name, sizeBytes, maxBytes, what }) => {
    const file = files.get(name)!
    const bytes = sizeBytes <= maxBytes ? await hub.read(file) : undefined
    if (what === 'config') configBytes = bytes
    else licences.push({ name, bytes, digest: await digestOf(hub, file, bytes) })
  })
  const config = recognition.config === undefined ? undefined : await configFacts(configBytes, offload)

  const safetensors: RequiredRead<'safetensors-header'>[] = []
  for (const read of reads) {
    if (read.what === 'safetensors-header') safetensors.push(read as RequiredRead<'safetensors-header'>)
    // a GGUF's name determines its quant: the head is not fetched.
    else if (read.what === 'gguf-head')
      headers.set(read.name, { format: 'gguf', version: 3, bigEndian: false, complete: false })
  }
  const nothingRead: HeaderSummary = { format: 'safetensors', headerBytes: 0, tensorCount: 0, bytesByDtype: new Map() }
  for (const { name } of safetensors) headers.set(name, nothingRead)
  if (quantOfConfig(config, recognition.names) === undefined && safetensors.length > 0) {
    let known = safetensors.length <= MAX_HEADERS
    if (known) {
      await forEachLimited(safetensors, 8, NEVER, async (read, signal) => {
        const readAt: ReadAt = windowOf(hub, files.get(read.name)!, signal)
        try {
          headers.set(read.name, await readHeader(read, readAt))
        } catch (error) {
          if (!(error instanceof HeaderTooLarge)) throw error
          known = false
        }
      })
    }
    if (!known)
      openQuestions.push('the headers of the safetensors are too large for a plan: the import finds out their quant')
  }
  return { headers, licences, config, openQuestions }
}

/** A text that is too large to keep is read only if the listing gives no SHA-256. */
async function digestOf(hub: Pick<Hub, 'read'>, file: HubFile, bytes: Uint8Array | undefined): Promise<Sha256Digest> {
  if (file.sha256 !== undefined) return file.sha256
  if (bytes === undefined && file.sizeBytes > MAX_TEXT_BYTES) {
    const what = `${JSON.stringify(file.path)} is a licence file of ${file.sizeBytes} bytes, which no plan reads`
    throw new LibraryError('E_BAD_LISTING', what)
  }
  return digestFromHex(hash('sha256', bytes ?? (await hub.read(file))))
}

/** A plan is short; the hub's own limits bound it. */
const NEVER = new AbortController().signal

function rowOf(
  name: string,
  size: number,
  { recognition: { uses, entries }, otherForms }: Pick<PlannedImport, 'recognition' | 'otherForms'>,
  quantOf: ReadonlyMap<string, string>,
  present: ReadonlySet<string>
): PlannedHubFile {
  const use = uses.get(name)
  const form = otherForms?.get(name)
  if (form !== undefined) {
    const first = entries.find(({ kind }) => kind === 'weights.safetensors')
    const base = first && quantOf.get(first.name)
    return { name, size, action: 'skip', reason: 'other-form', ...(base && { quant: formQuant(form, base) }) }
  }
  if (use === undefined) return { name, size, action: 'skip', reason: 'not-chosen' }
  if (use.use === 'skip') return { name, size, action: 'skip', reason: use.reason }
  if (use.use === 'config' || use.use === 'licence') return { name, size, action: 'annotate' }
  const entry = entries.find((one) => one.name === use.entry)!
  const quant = isWeights(entry) ? quantOf.get(entry.name) : undefined
  const action = use.use === 'entry' && present.has(entry.name) ? 'present' : 'store'
  return { name, size, action, kind: entry.kind, ...(quant !== undefined && { quant }) }
}

function totalsOf(rows: readonly PlannedHubFile[], fetchesSkipped: boolean): HubPlan['totals'] {
  const count = (which: readonly PlannedHubFile[]) =>
    [which.length, which.reduce((bytes, { size }) => bytes + size, 0)] as const
  const skipped = rows.filter(({ action }) => action === 'skip')
  const [files, bytes] = count(rows)
  const [fetchFiles, fetchBytes] = count(
    rows.filter(({ action, companion }) => action !== 'present' && (fetchesSkipped || companion || action !== 'skip'))
  )
  const [storeFiles, storeBytes] = count(rows.filter(({ action }) => action === 'store'))
  const [skipFiles, skipBytes] = count(skipped)
  return { files, bytes, fetchFiles, fetchBytes, storeFiles, storeBytes, skipFiles, skipBytes }
}
