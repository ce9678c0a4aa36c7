import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type DiskBlobStore, openDiskStore } from '@svc/cas'
import type { Inventory, ModelMember, NamespaceEntry } from '@svc/client/protocol'
import { systemClock } from '@svc/internal-clock'
import { QuickReads } from '@svc/internal-files'
import { type Sealed, sealIndex, sealManifest, sealModelConfig } from '@svc/manifest'
import { digestFromBytes, digestHex, type Sha256Digest } from '@svc/ref'
import { recordText } from '@svc/testkit/records'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Artifacts } from '../../../internal/state/src/artifacts.ts'
import { Documents } from '../../../internal/state/src/documents.ts'
import { Members } from '../../../internal/state/src/members.ts'
import type { ListingDeps } from '../../../internal/state/src/models.ts'
import { NewerCommits } from '../../../internal/state/src/newer-commits.ts'
import { decided } from '../../../internal/state/src/provenance.ts'
import { ReplacedFiles, STATE_FOLDERS } from '../../../internal/state/src/replace.ts'
import { Repos } from '../../../internal/state/src/repos.ts'
import { oneChunk } from '../../../internal/state/src/small-blob.ts'
import { Usage } from '../../../internal/state/src/usage.ts'
import { inventoryText } from '../../src/api/inventory.ts'

const REPOSITORIES = 80
const EMPTY = { trackers: [], webseeds: [], peers: [] }

let root: string
let store: DiskBlobStore
let deps: ListingDeps & { readonly artifacts: Artifacts }

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'svc-models-'))
  store = await openDiskStore({ root, folders: STATE_FOLDERS })
  const files = await ReplacedFiles.open(join(root, 'state'))
  const [repos, artifacts, documents] = [new Repos(root, files), new Artifacts(root, files), new Documents(store)]
  const members = new Members({
    store,
    documents,
    artifacts,
    usage: await Usage.open(store, systemClock),
    newer: new NewerCommits(),
    advise: () => ''
  })
  deps = { store, repos, artifacts, documents, members }
})
afterEach(async () => {
  await store.close()
  await rm(root, { recursive: true, force: true })
})

const put = async (bytes: Uint8Array): Promise<Sha256Digest> =>
  (await store.ingest(oneChunk(bytes), { sizeBytes: bytes.length })).digest
const random = (seed: string): Sha256Digest => digestFromBytes(Buffer.from(seed.padStart(32, '.').slice(-32)))

async function seal<T>(sealed: Sealed<T>): Promise<Sealed<T>> {
  await put(sealed.bytes.slice())
  return sealed
}

function writeRepo(name: string, index: Sha256Digest, tags: Record<string, Sha256Digest> = {}): void {
  const path = join(root, 'state', 'repos', 'org', `${name}.json`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, recordText({ index, tags }, 4))
}

const list = async (): Promise<Inventory> => JSON.parse(Buffer.concat(await inventoryText(deps)).toString('utf8'))
const membersOf = (inventory: Inventory, name: string): ModelMember[] =>
  inventory.namespaces.find((entry: NamespaceEntry) => entry.name === name)!.members

const absentMember = (quant: string, manifest: Sha256Digest): ModelMember => ({
  quant,
  manifest,
  sizeBytes: 0,
  complete: false,
  private: false,
  withheld: expect.objectContaining({ fact: 'no-record' }),
  missingBytes: 0
})

async function absentRepositories(): Promise<NamespaceEntry[]> {
  const entries: NamespaceEntry[] = []
  for (let i = 0; i < REPOSITORIES; i++) {
    const name = `model-${String(i).padStart(3, '0')}`
    const members = ['bf16', 'q8_0'].map((quant) => ({ quant, manifest: random(`${name}${quant}`) }))
    const { digest } = await seal(sealIndex(members.map((each) => ({ ...each, distribution: random(`${name}d`) }))))
    writeRepo(name, digest)
    const listed = members.map(({ quant, manifest }) => absentMember(quant, manifest))
    entries.push({
      ns: 'org',
      name,
      indexDigest: digest,
      indexPresent: true,
      quants: ['bf16', 'q8_0'],
      members: listed
    })
  }
  return entries
}

async function artifact(): Promise<{ readonly manifest: Sha256Digest; readonly sizeBytes: number }> {
  const bytes = Buffer.from('weights that are here')
  const fileOf = (digest: Sha256Digest, { length: size }: Uint8Array) => ({
    digest,
    size,
    bt: { merkleRoot: random('root') }
  })
  const model = { weightsFormat: 'gguf', quantization: 'bf16' } as Parameters<typeof sealModelConfig>[0]
  const config = await seal(sealModelConfig(model))
  const files: Parameters<typeof sealManifest>[0] = [
    { kind: 'config', name: 'modelconfig.json', ...fileOf(config.digest, config.bytes) },
    { kind: 'weights.gguf', name: 'model.gguf', ...fileOf(await put(new Uint8Array(bytes)), bytes) }
  ]
  const manifest = await seal(sealManifest(files, { 'svc.specVersion': '1' }))
  return { manifest: manifest.digest, sizeBytes: bytes.length + config.bytes.length }
}

test('reports thousands of models as it reports one, at once or through the thread pool', async () => {
  const entries = await absentRepositories()
  const { manifest, sizeBytes } = await artifact()
  const state = {
    manifestDigest: manifest,
    source: { kind: 'local' },
    provenance: { access: 'own' },
    hints: EMPTY
  } as const
  await deps.artifacts.record({ ...state, provenance: { access: 'restricted', decision: decided('private') } })
  const gone = random('gone')
  const { digest } = await seal(
    sealIndex([
      { quant: 'bf16', manifest, distribution: random('d') },
      { quant: 'q8_0', manifest: gone, distribution: random('d') }
    ])
  )
  writeRepo('z', digest, { stable: digest, old: gone })
  const corrupt = await put(Buffer.from('not an index'))
  writeRepo('zz', corrupt)
  writeRepo('zzz', gone)
  mkdirSync(join(root, 'quarantine'), { recursive: true })
  writeFileSync(join(root, 'quarantine', `${digestHex(gone)}-0`), '')

  const inventory = await list()
  expect(inventory.namespaces.slice(0, REPOSITORIES)).toEqual(entries)
  expect(membersOf(inventory, 'z')).toEqual([
    expect.objectContaining({ quant: 'bf16', manifest, sizeBytes, complete: true, private: true, restricted: true }),
    { ...absentMember('q8_0', gone), damaged: true }
  ])
  const rest = inventory.namespaces.slice(REPOSITORIES + 1)
  expect(rest.map(({ name, indexPresent, members }) => [name, indexPresent, members])).toEqual([
    ['zz', true, []],
    ['zzz', false, []]
  ])
  expect(inventory.tags).toEqual([
    { repo: 'org/z', tag: 'old', digest: gone, blobPresent: false },
    { repo: 'org/z', tag: 'stable', digest, blobPresent: true }
  ])
  const allowAgain = QuickReads.holdOff()
  try {
    expect(await list()).toEqual(inventory)
  } finally {
    allowAgain()
  }
  expect(await list()).toEqual(inventory)
})

test('a list shows a change, even if the previous list found the blob missing', async () => {
  await absentRepositories()
  const { manifest } = await artifact()
  await list()
  const index = await seal(sealIndex([{ quant: 'bf16', manifest, distribution: random('d') }]))
  await deps.repos.update({ ns: 'org', name: 'model-000' }, async () => ({ index: index.digest, tags: new Map() }))
  expect(membersOf(await list(), 'model-000')).toEqual([expect.objectContaining({ manifest, complete: true })])
  await store.remove(manifest)
  expect(membersOf(await list(), 'model-000')).toEqual([absentMember('bf16', manifest)])
})

test('pages have all names and tags once, in order, and read no other records', async () => {
  const index = await seal(sealIndex([{ quant: 'q8_0', manifest: random('m'), distribution: random('r') }]))
  for (let i = 0; i < 25; i++) writeRepo(`m${i}`, index.digest, i % 5 === 0 ? { v1: index.digest } : {})
  const whole = await list()
  const read = vi.spyOn(deps.repos, 'cached')
  const pages: Inventory[] = []
  let after: string | undefined
  do {
    read.mockClear()
    const [ns, name] = after?.split('/') ?? []
    const from = ns === undefined || name === undefined ? undefined : { ns, name }
    const text = Buffer.concat(await inventoryText(deps, { limit: 10, after: from })).toString('utf8')
    pages.push(JSON.parse(text))
    expect(read.mock.calls.length).toBeLessThanOrEqual(11)
    after = pages.at(-1)!.next
  } while (after !== undefined)
  expect(pages.map(({ namespaces }) => namespaces.length)).toEqual([10, 10, 5])
  expect(pages.flatMap(({ namespaces }) => namespaces)).toEqual(whole.namespaces)
  expect(pages.flatMap(({ tags }) => tags)).toEqual(whole.tags)
})
