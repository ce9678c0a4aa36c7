import type { BlobStore } from '@svc/cas'
import { type Log, OpenBlobs, readSmallBlob } from '@svc/library/parts'
import { isDigest, type Sha256Digest } from '@svc/ref'
import type { V1Layout, V1Storage, V1Swarm, V1Torrent } from '@svc/swarm-v1'
import type { ParseCatalogDocument } from './catalog-documents.ts'

/** The data of a BitTorrent v1 torrent in `state/artifacts`, for seeding it from blobs after a restart. */
export interface V1Seed {
  /** 40 hex characters, BitTorrent v1. */
  readonly infohash: string
  /** The digest of the blob that is the info dictionary. */
  readonly info: Sha256Digest
  readonly trackers: readonly string[]
  /** Neither the owner nor the catalog named the trackers: they came with a backup. */
  readonly isFromOthers?: boolean
  /** One digest per file of the torrent, in order; null for padding. */
  readonly files: readonly (Sha256Digest | null)[]
}

/** @returns undefined for data that this version does not support. */
export function parseV1Seed(value: Readonly<Record<string, unknown>> | undefined): V1Seed | undefined {
  const { infohash, info, trackers, isFromOthers, files } = value ?? {}
  if (typeof infohash !== 'string' || !/^[0-9a-f]{40}$/.test(infohash) || !isDigest(info)) return undefined
  if (!Array.isArray(trackers) || !trackers.every((url) => typeof url === 'string')) return undefined
  if (!Array.isArray(files) || !files.every((digest) => digest === null || isDigest(digest))) return undefined
  return { infohash, info, trackers, files, ...(isFromOthers !== undefined && { isFromOthers: true }) }
}

/** A torrent that is given to others. */
export interface TorrentSeedStatus {
  /** `btih:<40 hex>` */
  readonly infohash: string
  readonly name: string
  readonly state: 'seeding' | 'verifying'
  readonly sizeBytes: number
  readonly peers: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
  readonly uploadedBytes: number
}

const MAX_OPEN = 64
const MAX_INFO_BYTES = 10_000_000

/** Seeds BitTorrent v1 torrents from the store's blobs, without a second copy. */
export class V1Seeds {
  readonly #store: BlobStore
  readonly #swarm: V1Swarm
  readonly #log: Log
  readonly #torrents = new Map<string, { readonly torrent: V1Torrent; readonly layout: V1Layout; seeding: boolean }>()
  readonly #blobs: OpenBlobs
  readonly #parse: ParseCatalogDocument
  #closed = false

  constructor(store: BlobStore, swarm: V1Swarm, log: Log, parse: ParseCatalogDocument) {
    this.#parse = parse
    this.#store = store
    this.#blobs = new OpenBlobs(store, MAX_OPEN)
    this.#swarm = swarm
    this.#log = log
  }

  status(): TorrentSeedStatus[] {
    return [...this.#torrents].map(([infohash, { torrent, layout, seeding }]) => {
      const { peers, downBytesPerSecond, upBytesPerSecond, uploadedBytes } = torrent.progress()
      return {
        infohash: `btih:${infohash}`,
        name: layout.name,
        state: seeding ? 'seeding' : 'verifying',
        sizeBytes: layout.sizeBytes,
        peers,
        downBytesPerSecond,
        upBytesPerSecond,
        uploadedBytes
      }
    })
  }

  /** Joins a torrent whose files are all blobs; does nothing if it is already joined or lacks a blob. */
  async add(seed: V1Seed): Promise<void> {
    if (this.#closed || this.#torrents.has(seed.infohash)) return
    const layout = await this.#layoutOf(seed)
    if (layout === undefined || this.#closed || this.#torrents.has(seed.infohash)) return
    const torrent = this.#swarm.join({
      infohash: seed.infohash,
      info: layout.info,
      trackers: seed.trackers,
      ...(seed.isFromOthers && { policy: 'internet' }),
      peers: [],
      metadataTimeoutMs: 60_000,
      complete: true,
      open: async () => this.#storage(seed)
    })
    const joined = { torrent, layout, seeding: false }
    this.#torrents.set(seed.infohash, joined)
    torrent.done.then(
      () => {
        joined.seeding = true
        this.#log.info({ infohash: seed.infohash, name: layout.name }, 'seeding a BitTorrent v1 torrent')
      },
      (error: unknown) => {
        this.#torrents.delete(seed.infohash)
        if (!this.#closed)
          this.#log.warn({ err: error, infohash: seed.infohash }, 'a BitTorrent v1 torrent cannot be seeded')
      }
    )
  }

  /** Stops seeding a torrent, for example while a pull of the same one takes its place. */
  async remove(infohash: string): Promise<void> {
    const joined = this.#torrents.get(infohash)
    this.#torrents.delete(infohash)
    await joined?.torrent.leave()
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#torrents.values()].map(({ torrent }) => torrent.leave()))
    await this.#blobs.close()
  }

  async #layoutOf(seed: V1Seed): Promise<V1Layout | undefined> {
    try {
      const info = await readSmallBlob(this.#store, seed.info, MAX_INFO_BYTES)
      if (info === undefined) throw new Error('the info dictionary is gone')
      const layout = await this.#parse('v1Torrent', info, seed.infohash)
      if (layout.files.length !== seed.files.length) throw new Error('the list of files has changed')
      for (const [index, file] of layout.files.entries()) {
        const digest = seed.files[index]!
        if (file.pad) continue
        if (digest === null || (await this.#store.stat(digest))?.sizeBytes !== file.sizeBytes) {
          throw new Error(`the blob of "${file.path}" is gone`)
        }
      }
      return layout
    } catch (error) {
      this.#log.warn(
        { err: error, infohash: seed.infohash },
        'a BitTorrent v1 torrent is no longer complete, and is not seeded'
      )
      return undefined
    }
  }

  #storage(seed: V1Seed): V1Storage {
    return {
      has: () => true,
      read: async (file, offset, target) => {
        const count = await this.#blobs.read(seed.files[file]!, offset, target)
        if (count !== target.length) throw new RangeError('a blob is shorter than it was')
      },
      // every piece is there: a client that tries to write has found a damaged blob, which verify repairs.
      write: () => Promise.reject(new Error('blobs are read-only'))
    }
  }
}
