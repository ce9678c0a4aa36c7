import { opendir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import { digestFromHex, type Sha256Digest } from '@svc/ref'

/** Fewer files that are not there are looked for one by one. */
const FEW = 64
const AT_ONCE = 16
const BUFFER_ENTRIES = 1_024
const REST = /^[0-9a-f]{62}$/
const STATE_FILE = /^[0-9a-f]{64}\.json$/

/** What is known of a folder: whether its names were read, or should be. */
const [UNKNOWN, WANTED, READ] = [0, 1, 2]

/** The folder of 256 that a blob is in. */
const shardOf = (digest: Sha256Digest): number => Number.parseInt(digest.slice(7, 9), 16)

/**
 * Which blobs and artifact states are missing, for one list of all models. A look at a file that is not there costs most, since each goes to the file
 * system; the names of all that is there cost a sixth of it. So folders where many were missing are read, and what they lack is not looked for
 * again. All of it is forgotten when `version` changes, which it does before and after a change of what a list starts from.
 */
export class Present {
  readonly #store: Pick<DiskBlobStore, 'root' | 'blobPath'>
  readonly #version: () => number
  readonly #blobs = new Set<Sha256Digest>()
  readonly #shards = new Uint8Array(256)
  /** A blob of each shard that is to be read. */
  #wanted: Sha256Digest[] = []
  readonly #states = new Set<Sha256Digest>()
  #statesAre = UNKNOWN
  #readAt: number
  #missing = 0

  constructor(store: Pick<DiskBlobStore, 'root' | 'blobPath'>, version: () => number) {
    this.#store = store
    this.#version = version
    this.#readAt = version()
  }

  /** True for a blob that is known to be missing. */
  lacksBlob(digest: Sha256Digest): boolean {
    this.#renew()
    return this.#missing > FEW && this.#shards[shardOf(digest)] === READ && !this.#blobs.has(digest)
  }

  /** True for an artifact that is known to have no state. */
  lacksState(manifest: Sha256Digest): boolean {
    this.#renew()
    return this.#statesAre === READ && !this.#states.has(manifest)
  }

  /** A look found no such blob. */
  missedBlob(digest: Sha256Digest): void {
    const shard = shardOf(digest)
    if (++this.#missing <= FEW || this.#shards[shard] !== UNKNOWN) return
    this.#shards[shard] = WANTED
    this.#wanted.push(digest)
  }

  /** A look found no state. */
  missedState(): void {
    if (++this.#missing > FEW && this.#statesAre === UNKNOWN) this.#statesAre = WANTED
  }

  /** Reads folders where files were missing. To be called now and then. */
  async read(): Promise<void> {
    this.#renew()
    const version = this.#readAt
    const wanted = this.#wanted
    this.#wanted = []
    for (let i = 0; i < wanted.length; i += AT_ONCE)
      await Promise.all(wanted.slice(i, i + AT_ONCE).map((digest) => this.#readShard(digest, version)))
    if (this.#statesAre === WANTED) await this.#readStates(version)
  }

  async #readShard(digest: Sha256Digest, version: number): Promise<void> {
    const names = await namesIn(dirname(this.#store.blobPath(digest)))
    if (names === undefined || this.#version() !== version) return
    const first = digest.slice('sha256:'.length, 'sha256:'.length + 2)
    for (const name of names) if (REST.test(name)) this.#blobs.add(digestFromHex(first + name))
    this.#shards[shardOf(digest)] = READ
  }

  async #readStates(version: number): Promise<void> {
    const names = await namesIn(join(this.#store.root, 'state', 'artifacts'))
    if (names === undefined || this.#version() !== version) return
    for (const name of names) if (STATE_FILE.test(name)) this.#states.add(digestFromHex(name.slice(0, 64)))
    this.#statesAre = READ
  }

  #renew(): void {
    const version = this.#version()
    if (version === this.#readAt) return
    this.#readAt = version
    this.#missing = 0
    this.#blobs.clear()
    this.#shards.fill(UNKNOWN)
    this.#wanted = []
    this.#states.clear()
    this.#statesAre = UNKNOWN
  }
}

/** Undefined when that cannot be said: then each look says why. */
async function namesIn(folder: string): Promise<readonly string[] | undefined> {
  const names: string[] = []
  try {
    for await (const { name } of await opendir(folder, { bufferSize: BUFFER_ENTRIES })) names.push(name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return undefined
  }
  return names
}
