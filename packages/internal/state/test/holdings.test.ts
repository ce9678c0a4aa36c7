import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { openDiskStore } from '@svc/cas'
import { sealManifest } from '@svc/manifest'
import { parseDigest, type Sha256Digest } from '@svc/ref'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Arrivals } from '../src/arrivals.ts'
import { Artifacts } from '../src/artifacts.ts'
import { Documents } from '../src/documents.ts'
import { Holdings, pinKey } from '../src/holdings.ts'
import type { ArtifactSource } from '../src/origin.ts'
import type { Provenance } from '../src/provenance.ts'
import { ReplacedFiles, STATE_FOLDERS } from '../src/replace.ts'

const ARTIFACTS = 60
const OTHER: ArtifactSource = { kind: 'hf', repo: 'other/repo', revision: 'main' }
const digestOf = (number: number): Sha256Digest => parseDigest(`sha256:${number.toString(16).padStart(64, '0')}`)

async function setUp() {
  const root = mkdtempSync(join(tmpdir(), 'svc-holdings-'))
  const store = await openDiskStore({ root, folders: STATE_FOLDERS })
  onTestFinished(async () => {
    await store.close()
    rmSync(root, { recursive: true })
  })
  const files = await ReplacedFiles.open(root)
  const [artifacts, documents] = [new Artifacts(root, files), new Documents(store)]
  const holdings = new Holdings({ store, artifacts, documents, arrivals: new Arrivals(root, files) })
  /** An artifact of the weights `weights` and a file that all artifacts share. */
  const add = async (weights: Sha256Digest, provenance: Provenance): Promise<Sha256Digest> => {
    const bt = { merkleRoot: digestOf(1) }
    const { bytes, digest } = sealManifest(
      [
        { kind: 'weights.gguf', name: 'model.gguf', digest: weights, size: 20_000, bt },
        { kind: 'config', name: 'modelconfig.json', digest: digestOf(2), size: 20_000, bt }
      ],
      { 'svc.specVersion': '1' }
    )
    await store.ingest(Readable.from([bytes.slice()]), { sizeBytes: bytes.length })
    await artifacts.record({
      manifestDigest: digest,
      source: { kind: 'local' },
      provenance,
      hints: { trackers: [], webseeds: [], peers: [] }
    })
    return digest
  }
  const put = async (text: string): Promise<Sha256Digest> =>
    (await store.ingest(Readable.from([Buffer.from(text)]), { sizeBytes: text.length })).digest
  /** A pinned artifact that names these bytes under a kind of its own, and is not complete. */
  const pin = async (digest: Sha256Digest, label: string, provenance: Provenance = { access: 'public' }) => {
    const bt = { merkleRoot: digestOf(1) }
    const manifest = sealManifest(
      [
        { kind: 'config', name: 'modelconfig.json', digest: digestOf(3), size: 9, bt },
        { kind: 'code', name: 'modeling_x.py', role: 'model', digest, size: 9, bt }
      ],
      { label }
    )
    await store.ingest(Readable.from([manifest.bytes.slice()]), { sizeBytes: manifest.bytes.length })
    const hints = { trackers: [], webseeds: [], peers: [] }
    await artifacts.record({ manifestDigest: manifest.digest, source: { kind: 'bt' }, provenance, hints })
    return manifest.digest
  }
  return { store, artifacts, documents, holdings, add, put, pin }
}

test('the holders of a blob are indexed, and the index follows changes', async () => {
  const { artifacts, documents, holdings, add } = await setUp()
  for (let i = 0; i < ARTIFACTS; i++) await add(digestOf(100 + i), { access: 'public' })
  const reads = vi.spyOn(documents, 'manifest')
  const isProven = async (digest: Sha256Digest): Promise<boolean> =>
    (await holdings.proven([digest], OTHER)).has(digest)
  for (let i = 0; i < ARTIFACTS; i++) expect(await isProven(digestOf(100 + i))).toBe(true)
  expect(reads.mock.calls.length).toBeLessThanOrEqual(3 * ARTIFACTS)

  // a file of all artifacts: the first public one is enough
  reads.mockClear()
  expect(await isProven(digestOf(2))).toBe(true)
  expect(reads.mock.calls.length).toBe(1)

  // a new artifact costs only its own reads, and counts at once
  const withheld = await add(digestOf(50), { access: 'restricted' })
  reads.mockClear()
  expect(await isProven(digestOf(50))).toBe(false)
  expect((await holdings.inherited([digestOf(50)])).get(digestOf(50))).toMatchObject({ access: 'restricted' })
  expect(reads.mock.calls.length).toBe(3)

  // so does the owner's decision
  const given = await add(digestOf(51), { access: 'public' })
  expect(await isProven(digestOf(51))).toBe(true)
  await artifacts.setPrivate(given, true)
  expect(await isProven(digestOf(51))).toBe(false)

  // a removed artifact holds nothing
  await artifacts.forget(withheld)
  expect((await holdings.inherited([digestOf(50)])).size).toBe(0)
})

test('bytes that are here are a pinned artifact’s own only if its swarm, or one of what everybody may have, brought them', async () => {
  const { artifacts, holdings, put, pin } = await setUp()
  const { arrivals } = holdings
  const digest = await put('all of it')
  const [first, second] = [await pin(digest, 'first'), await pin(digest, 'second')]
  const unproven = ['modeling_x.py']
  const ofBoth = async () => [await holdings.unprovenOf(first), await holdings.unprovenOf(second)]
  // nobody knows where it is from: it may be a companion, a document, or what a removed model left
  expect(await ofBoth()).toEqual([unproven, unproven])

  await arrivals.begin(digest, pinKey(first), { isEmpty: true })
  // another import made the blob
  expect(await ofBoth()).toEqual([unproven, unproven])
  await arrivals.committed(digest)
  expect(await ofBoth()).toEqual([[], []])
  await artifacts.setPrivate(first, true)
  expect(await ofBoth()).toEqual([[], unproven])
  await artifacts.setPrivate(first, false)
  expect(await ofBoth()).toEqual([[], []])

  // the rest came from elsewhere
  await arrivals.begin(digest, 'hf:acme/gated', { isEmpty: false })
  await arrivals.committed(digest)
  expect(await ofBoth()).toEqual([unproven, unproven])
  await arrivals.settleFrom(pinKey(second), [digest])
  expect(await arrivals.noted()).toEqual([digest])
  await arrivals.settleFrom(pinKey(first), [digest])
  expect(await arrivals.noted()).toEqual([])
})

test('a part that another import brought counts as the whole does, and what appears is noticed at once', async () => {
  const { store, holdings, put, pin } = await setUp()
  const text = 'a secret!'
  const digest = parseDigest(`sha256:${createHash('sha256').update(text).digest('hex')}`)
  const pinned = await pin(digest, '')
  expect(await holdings.unprovenNow(pinned)).toEqual([])
  const partial = await store.partial({ key: digest, digest, sizeBytes: text.length })
  await partial.write(0, Buffer.from('a sec'))
  expect(await holdings.unprovenNow(pinned)).toEqual(['modeling_x.py'])
  await partial.discard()
  const other = await pin(digest, 'other')
  expect(await holdings.unprovenNow(other)).toEqual([])
  await put(text)
  expect(await holdings.unprovenNow(other)).toEqual(['modeling_x.py'])
})

test('a blob that has just been made of what its swarm gave is proven, before its note is written', async () => {
  const { store, holdings, put, pin } = await setUp()
  const digest = parseDigest(`sha256:${createHash('sha256').update('its bytes').digest('hex')}`)
  const artifact = await pin(digest, 'arriving')
  await holdings.arrivals.begin(digest, pinKey(artifact), { isEmpty: true })
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>()
  const commit = holdings.arrivals.commit(digest, async () => {
    await put('its bytes')
    ask()
    await new Promise((resolve) => setImmediate(resolve))
    return { existed: false }
  })
  await isAsked
  expect(store.blobPath(digest)).toContain(digest.slice(-8))
  expect(await holdings.unprovenNow(artifact)).toEqual([])
  await commit
  expect(await holdings.unprovenNow(artifact)).toEqual([])
})
