import { createHash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import {
  type HeaderSummary,
  type LicenceFact,
  planArtifacts,
  type ReadAt,
  type RequiredRead,
  readConfig,
  readHeader,
  requiredReads,
  requireImportable
} from '@svc/classify'
import type { ImportPlan } from '@svc/client/protocol'
import type { Hub, HubFile, HubListing } from '@svc/hub'
import { forEachLimited } from '@svc/internal-concurrency'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import { type PlannedImport, planImport } from '../../import/plan.ts'
import type { ImportSource } from '../../import/source.ts'
import { HeaderTooLarge, windowOf } from './window.ts'

type PlanFile = ImportPlan['files'][number]

/** Headers of more safetensors than this are not fetched for a plan: their quant is then left open. */
const MAX_HEADERS = 64

/** A larger licence text is not read for its name alone. */
const MAX_TEXT_BYTES = 16 * 2 ** 20

/**
 * What an import would do, told from the listing, `config.json`, licence texts and, only where nothing else tells the quant, the
 * headers of the safetensors. No weights are fetched. Small texts are not checked against their hashes: nothing is kept.
 * @throws ClassifyError `E_NOT_IMPORTABLE` as the import would; HubError; DaemonError of `planImport`
 */
export async function planHub(
  hub: Hub,
  listing: HubListing,
  source: ImportSource,
  as: string,
  store: DiskBlobStore
): Promise<ImportPlan> {
  const planned = planImport(source)
  requireImportable(planned.recognition)
  const files = new Map(listing.files.map((file) => [file.path, file]))
  const facts = await readFacts(hub, planned, files)
  const plan = planArtifacts(planned.recognition, facts)
  const quantOf = new Map<string, string>()
  for (const { quant, entries } of plan.artifacts)
    for (const { name } of entries.filter(isWeights)) quantOf.set(name, quant)
  const rows: PlanFile[] = []
  for (const { path, sizeBytes } of listing.files) rows.push(await rowOf(path, sizeBytes, planned, quantOf, store))
  const license = plan.artifacts[0]?.annotations['svc.license']
  return {
    repo: listing.repoId,
    commit: listing.commit,
    as,
    files: rows,
    totals: totalsOf(rows, source.fetchUnrecognised),
    quants: plan.artifacts.map(({ quant }) => quant),
    ...(license !== undefined && { license }),
    warnings: [...source.warnings, ...plan.warnings.map(({ message }) => message), ...facts.openQuestions]
  }
}

const isWeights = ({ kind }: { readonly kind: string }): boolean =>
  kind === 'weights.gguf' || kind === 'weights.safetensors'

async function readFacts(hub: Hub, { recognition }: PlannedImport, files: ReadonlyMap<string, HubFile>) {
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
  const config = recognition.config === undefined ? undefined : readConfig(configBytes)

  const safetensors: RequiredRead<'safetensors-header'>[] = []
  for (const read of reads) {
    if (read.what === 'safetensors-header') safetensors.push(read as RequiredRead<'safetensors-header'>)
    // The name alone tells a GGUF's quant: its head is not fetched.
    else if (read.what === 'gguf-head')
      headers.set(read.name, { format: 'gguf', version: 3, bigEndian: false, complete: false })
  }
  const nothingRead: HeaderSummary = { format: 'safetensors', headerBytes: 0, tensorCount: 0, bytesByDtype: new Map() }
  for (const { name } of safetensors) headers.set(name, nothingRead)
  if (config?.quant === undefined && safetensors.length > 0) {
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
      openQuestions.push('the headers of the safetensors are too large for a plan: their quant is told by the import')
  }
  return { headers, licences, config, openQuestions }
}

/** What names a licence text that has no id. One too large to be kept is read only where the listing gives no SHA-256. */
async function digestOf(hub: Hub, file: HubFile, bytes: Uint8Array | undefined): Promise<Sha256Digest> {
  if (file.sha256 !== undefined) return file.sha256
  if (bytes === undefined && file.sizeBytes > MAX_TEXT_BYTES) {
    const what = `${JSON.stringify(file.path)} is a licence file of ${file.sizeBytes} bytes, which no plan reads`
    throw new DaemonError('E_NOT_IMPORTABLE', what, { status: 502 })
  }
  return digestFromBytes(
    createHash('sha256')
      .update(bytes ?? (await hub.read(file)))
      .digest()
  )
}

/** A plan is short; it ends with the hub's own limits. */
const NEVER = new AbortController().signal

async function rowOf(
  name: string,
  size: number,
  { recognition, files }: PlannedImport,
  quantOf: ReadonlyMap<string, string>,
  store: DiskBlobStore
): Promise<PlanFile> {
  const use = recognition.uses.get(name)!
  if (use.use === 'skip') return { name, size, action: 'skip', reason: use.reason }
  if (use.use === 'config' || use.use === 'licence') return { name, size, action: 'annotate' }
  const entry = recognition.entries.find((one) => one.name === use.entry)!
  const digest = files.get(name)!.digest
  const present = use.use === 'entry' && digest !== undefined && (await store.stat(digest)) !== undefined
  const quant = isWeights(entry) ? quantOf.get(entry.name) : undefined
  return { name, size, action: present ? 'present' : 'store', kind: entry.kind, ...(quant !== undefined && { quant }) }
}

function totalsOf(rows: readonly PlanFile[], fetchesSkipped: boolean): ImportPlan['totals'] {
  const sum = (which: readonly PlanFile[]) =>
    [which.length, which.reduce((bytes, { size }) => bytes + size, 0)] as const
  const skipped = rows.filter(({ action }) => action === 'skip')
  const [files, bytes] = sum(rows)
  const [fetchFiles, fetchBytes] = sum(
    rows.filter(({ action }) => action !== 'present' && (fetchesSkipped || action !== 'skip'))
  )
  const [storeFiles, storeBytes] = sum(rows.filter(({ action }) => action === 'store'))
  const [skipFiles, skipBytes] = sum(skipped)
  return { files, bytes, fetchFiles, fetchBytes, storeFiles, storeBytes, skipFiles, skipBytes }
}
