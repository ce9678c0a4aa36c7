import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { openDiskStore } from '@svc/cas'
import { sealManifest } from '@svc/manifest'
import { parseDigest, type Sha256Digest } from '@svc/ref'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Arrivals } from '../../src/library/arrivals.ts'
import { Artifacts } from '../../src/library/artifacts.ts'
import { Documents } from '../../src/library/documents.ts'
import { Holdings } from '../../src/library/holdings.ts'
import type { ArtifactSource } from '../../src/library/origin.ts'
import type { Provenance } from '../../src/library/provenance.ts'
import { ReplacedFiles, STATE_FOLDERS } from '../../src/library/replace.ts'

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
  return { artifacts, documents, holdings, add }
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
