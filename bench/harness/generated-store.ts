import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type DiskBlobStore, openDiskStore } from '@svc/cas'
import {
  pieceLayersOf,
  type Sealed,
  sealIndex,
  sealManifest,
  sealModelConfig,
  sealRecord,
  torrentOf
} from '@svc/manifest'
import { leafLayer, piecesRoot } from '@svc/metainfo'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { Artifacts } from '../../packages/internal/state/src/artifacts.ts'
import { ReplacedFiles, STATE_FOLDERS } from '../../packages/internal/state/src/replace.ts'
import { Repos } from '../../packages/internal/state/src/repos.ts'

const WEIGHTS_BYTES = 64 << 10
const AT_ONCE = 64
const NAMES_PER_NAMESPACE = 100

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const put = async (store: DiskBlobStore, bytes: Uint8Array): Promise<Sha256Digest> =>
  (await store.ingest(one(bytes), { sizeBytes: bytes.length })).digest
async function seal<T>(store: DiskBlobStore, sealed: Sealed<T>): Promise<Sealed<T>> {
  // the store takes ownership of the buffer
  await put(store, sealed.bytes.slice())
  return sealed
}

const fileOf = (digest: Sha256Digest, bytes: Uint8Array) => ({
  digest,
  size: bytes.length,
  bt: { merkleRoot: digestFromBytes(piecesRoot(leafLayer(bytes), bytes.length)) }
})

/** The daemon's own state files, so that they have the format of today. */
interface Generated {
  readonly store: DiskBlobStore
  readonly repos: Repos
  readonly artifacts: Artifacts
}

/** Creates a store with `count` repositories, several at a time. */
async function fill(
  root: string,
  count: number,
  each: (generated: Generated, index: number) => Promise<void>
): Promise<void> {
  mkdirSync(root, { mode: 0o700 })
  const store = await openDiskStore({ root })
  try {
    for (const folder of STATE_FOLDERS) mkdirSync(join(root, folder), { recursive: true, mode: 0o700 })
    const files = await ReplacedFiles.open(root)
    const generated = { store, repos: new Repos(root, files), artifacts: new Artifacts(root, files) }
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < count) await each(generated, next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  } finally {
    await store.close()
  }
}

async function writeRepo({ repos }: Generated, number: number, index: Sha256Digest): Promise<void> {
  const ns = `org${Math.floor(number / NAMES_PER_NAMESPACE)}`
  await repos.update({ ns, name: `model-${number}` }, async () => ({ index, tags: new Map() }))
}

/** Creates a store with `count` complete artifacts of one small weights file, each in its own repository. */
export async function generateArtifacts(root: string, count: number): Promise<void> {
  await fill(root, count, async (generated, number) => {
    const { store, artifacts } = generated
    const weights = randomBytes(WEIGHTS_BYTES)
    const weightsDigest = await put(store, new Uint8Array(weights))
    const config = await seal(
      store,
      sealModelConfig({ weightsFormat: 'safetensors', quantization: 'bf16' } as Parameters<typeof sealModelConfig>[0])
    )
    const manifest = await seal(
      store,
      sealManifest(
        [
          { kind: 'config', name: 'modelconfig.json', ...fileOf(config.digest, config.bytes) },
          { kind: 'weights.safetensors', name: 'model.safetensors', ...fileOf(weightsDigest, weights) }
        ],
        { 'svc.specVersion': '1' }
      )
    )
    const pieceLayersDigest = await put(store, pieceLayersOf(torrentOf(manifest), new Map()))
    const record = await seal(store, sealRecord({ manifest, pieceLayersDigest }))
    const index = await seal(
      store,
      sealIndex([{ quant: 'bf16', manifest: manifest.digest, distribution: record.digest }])
    )
    await writeRepo(generated, number, index.digest)
    await artifacts.record({
      manifestDigest: manifest.digest,
      record: record.digest,
      source: { kind: 'local' },
      provenance: { access: 'public' },
      hints: { trackers: [], webseeds: [], peers: [] }
    })
  })
}

/** Creates a store with `count` repositories, each an index of two members whose manifests are absent. */
export async function generateRepositories(root: string, count: number): Promise<void> {
  const digest = (): Sha256Digest => digestFromBytes(randomBytes(32))
  await fill(root, count, async (generated, number) => {
    const members = ['bf16', 'q8_0'].map((quant) => ({ quant, manifest: digest(), distribution: digest() }))
    const index = await seal(generated.store, sealIndex(members))
    await writeRepo(generated, number, index.digest)
  })
}
