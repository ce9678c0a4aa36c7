import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
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
import { digestFromBytes, digestHex, type Sha256Digest } from '@svc/ref'

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

/** Creates a store with `count` repositories, several at a time. */
async function fill(
  root: string,
  count: number,
  each: (store: DiskBlobStore, index: number) => Promise<void>
): Promise<void> {
  mkdirSync(root, { mode: 0o700 })
  const store = await openDiskStore({ root })
  try {
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < count) await each(store, next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  } finally {
    await store.close()
  }
}

/** Paths as in docs/disk.md. */
function writeRepo(root: string, index: number, digest: Sha256Digest): void {
  const folder = join(root, 'state', 'repos', `org${Math.floor(index / NAMES_PER_NAMESPACE)}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, `model-${index}.json`), JSON.stringify({ index: digest, tags: {} }), { mode: 0o600 })
}

/** Creates a store with `count` complete artifacts of one small weights file, each in its own repository. */
export async function generateArtifacts(root: string, count: number): Promise<void> {
  await fill(root, count, async (store, number) => {
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
    writeRepo(root, number, index.digest)
    const folder = join(root, 'state', 'artifacts')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const state = {
      record: record.digest,
      source: { kind: 'local' },
      restricted: false,
      hints: { trackers: [], webseeds: [], peers: [] }
    }
    writeFileSync(join(folder, `${digestHex(manifest.digest)}.json`), JSON.stringify(state), { mode: 0o600 })
  })
}

/** Creates a store with `count` repositories, each an index of two members whose manifests are absent. */
export async function generateRepositories(root: string, count: number): Promise<void> {
  const digest = (): Sha256Digest => digestFromBytes(randomBytes(32))
  await fill(root, count, async (store, number) => {
    const members = ['bf16', 'q8_0'].map((quant) => ({ quant, manifest: digest(), distribution: digest() }))
    const index = await seal(store, sealIndex(members))
    writeRepo(root, number, index.digest)
  })
}
