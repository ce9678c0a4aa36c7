import { opendir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import type { Clock } from '@svc/internal-clock'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { FolderListings } from './folder-listings.ts'
import { HEX_FILE } from './record.ts'

/** Fewer files that are not there are looked for one by one. */
const FEW = 64
const AT_ONCE = 16
const SHARDS = 256
/** Bound of digests that are kept for the next list. */
const MAX_KEPT = 200_000
const BUFFER_ENTRIES = 1_024
const REST = /^[0-9a-f]{62}$/

type Digests = ReadonlySet<Sha256Digest>

const nibble = (code: number): number => (code < 0x3a ? code - 0x30 : code - 0x57)

/** The folder of 256 that a blob is in. */
const shardOf = (digest: Sha256Digest): number => (nibble(digest.charCodeAt(7)) << 4) | nibble(digest.charCodeAt(8))

const stateDigestOf = (name: string): Sha256Digest | undefined =>
  HEX_FILE.test(name) ? digestFromHex(name.slice(0, 64)) : undefined

/** Digests that folders have as names of files, for one list after another; undefined for a folder that cannot be read. */
export const newFolders = (clock?: Pick<Clock, 'now'>): FolderListings<Digests | undefined> =>
  new FolderListings((digests) => digests?.size ?? 0, MAX_KEPT, clock)

/**
 * Which blobs and artifact states are missing, for one list of all models. A look at a file that is not there costs most, since each goes to the file
 * system; the names of all that is there cost a sixth of it, and one look at the folder says whether they are still those of the list before. So
 * folders where many were missing are read, and what they lack is not looked for again. All of it is forgotten when `version` changes, which it does
 * before and after a change of what a list starts from.
 */
export class Present {
  readonly #store: Pick<DiskBlobStore, 'root' | 'blobPath'>
  readonly #version: () => number
  readonly #folders: ReturnType<typeof newFolders>
  /** What each shard has; false while it is to be read. */
  readonly #shards: (Digests | false | undefined)[] = Array.from({ length: SHARDS }, () => undefined)
  /** A blob of each shard that is to be read. */
  #wanted: Sha256Digest[] = []
  #states: Digests | false | undefined
  #readAt: number
  #missing = 0

  /** `folders` is that of the lists before. */
  constructor(store: Pick<DiskBlobStore, 'root' | 'blobPath'>, version: () => number, folders = newFolders()) {
    this.#store = store
    this.#version = version
    this.#folders = folders
    this.#readAt = version()
  }

  /** True for a blob that is known to be missing. */
  lacksBlob(digest: Sha256Digest): boolean {
    this.#renew()
    if (this.#missing <= FEW) return false
    const there = this.#shards[shardOf(digest)]
    return there !== undefined && there !== false && !there.has(digest)
  }

  /** True for an artifact that is known to have no state. */
  lacksState(manifest: Sha256Digest): boolean {
    this.#renew()
    return this.#states !== undefined && this.#states !== false && !this.#states.has(manifest)
  }

  /** A look found no such blob. */
  missedBlob(digest: Sha256Digest): void {
    if (++this.#missing <= FEW) return
    const shard = shardOf(digest)
    if (this.#shards[shard] !== undefined) return
    this.#shards[shard] = this.#folders.now(this.#shardFolder(digest)) ?? false
    if (this.#shards[shard] === false) this.#wanted.push(digest)
  }

  /** A look found no state. */
  missedState(): void {
    if (++this.#missing > FEW && this.#states === undefined)
      this.#states = this.#folders.now(this.#stateFolder) ?? false
  }

  /** Reads folders where files were missing. To be called now and then. */
  async read(): Promise<void> {
    this.#renew()
    const version = this.#readAt
    const wanted = this.#wanted
    this.#wanted = []
    for (let i = 0; i < wanted.length; i += AT_ONCE)
      await Promise.all(wanted.slice(i, i + AT_ONCE).map((digest) => this.#readShard(digest, version)))
    if (this.#states === false) {
      const states = await this.#folders.read(this.#stateFolder, (folder) => digestsIn(folder, stateDigestOf))
      if (states !== undefined && this.#version() === version) this.#states = states
    }
  }

  async #readShard(digest: Sha256Digest, version: number): Promise<void> {
    const first = digest.slice('sha256:'.length, 'sha256:'.length + 2)
    const digestOf = (name: string): Sha256Digest | undefined =>
      REST.test(name) ? digestFromHex(first + name) : undefined
    const there = await this.#folders.read(this.#shardFolder(digest), (folder) => digestsIn(folder, digestOf))
    if (there !== undefined && this.#version() === version) this.#shards[shardOf(digest)] = there
  }

  #shardFolder(digest: Sha256Digest): string {
    return dirname(this.#store.blobPath(digest))
  }

  get #stateFolder(): string {
    return join(this.#store.root, 'state', 'artifacts')
  }

  #renew(): void {
    const version = this.#version()
    if (version === this.#readAt) return
    this.#readAt = version
    this.#missing = 0
    this.#shards.fill(undefined)
    this.#wanted = []
    this.#states = undefined
  }
}

/** Undefined when the folder cannot be read, or is gone, which it never is in a sound store: then each look at a file says why. */
async function digestsIn(
  folder: string,
  digestOf: (name: string) => Sha256Digest | undefined
): Promise<Digests | undefined> {
  const digests = new Set<Sha256Digest>()
  try {
    for await (const { name } of await opendir(folder, { bufferSize: BUFFER_ENTRIES })) {
      const digest = digestOf(name)
      if (digest !== undefined) digests.add(digest)
    }
  } catch {
    return undefined
  }
  return digests
}
