import { createHash } from 'node:crypto'
import { manifestPath, torrentName } from '@svc/manifest'
import { type LayoutFile, parseInfohash, type TorrentLayout } from '@svc/metainfo'
import { digestHex, type Sha256Digest } from '@svc/ref'
import type { FileState, FileWriter, Swarm, TorrentStorage } from '@svc/swarm'
import { DaemonError } from '../errors.ts'
import type { SwarmHints } from '../library/origin.ts'
import { MAX_DOCUMENT_BYTES } from '../library/small-blob.ts'
import { type FetchPatience, SourceWatch } from './source-watch.ts'

export interface PeerManifestRequest {
  readonly pin: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohashText: string
  readonly hints: SwarmHints
  /** Announced to in addition to the hints. */
  readonly trackers: readonly string[]
  /** Only the hinted peers are contacted, and it is not announced. */
  readonly quiet: boolean
}

export interface PeerManifestContext extends FetchPatience {
  readonly signal: AbortSignal
  /** Called for a peer that was proven wrong and dropped. */
  readonly onLie: (peer: string) => void
  readonly onProgress: (progress: { readonly peers?: number; readonly message: string | undefined }) => void
}

/**
 * Fetches the pinned manifest from its own torrent (spec add.9): peers send the metadata, which must match the
 * infohash, and then that one file, whose bytes must match the pin. Nothing else is requested, nothing is uploaded,
 * nothing reaches the store.
 * @throws DaemonError `E_SOURCE_UNAVAILABLE`; `E_NOT_IMPORTABLE` when the torrent contains no such manifest; the
 *   signal's reason
 */
export async function manifestFromPeers(
  engine: Swarm,
  { pin, infohashText, hints, trackers, quiet }: PeerManifestRequest,
  { signal, onProgress, onLie, ...patience }: PeerManifestContext
): Promise<Uint8Array> {
  const infohash = parseInfohash(infohashText)
  // a joined torrent has its manifest in the store, and the pin was not found there
  if (engine.get(infohash) !== undefined) throw otherManifest(pin)
  const storage = new ManifestStorage(pin, (file) => torrent.priority(file, 0))
  const torrent = engine.add({
    infohash,
    storage,
    peers: hints.peers,
    trackers: quiet ? [] : [...new Set([...hints.trackers, ...trackers])],
    ...(quiet && { dht: false, pex: false }),
    upload: false,
    disclose: false
  })
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => undefined)
  torrent.once('failed', (error) =>
    failed.reject(
      error instanceof DaemonError
        ? error
        : new DaemonError('E_SOURCE_UNAVAILABLE', `the manifest did not come: ${error.message}`, { cause: error })
    )
  )
  const warnings = new Set<string>()
  torrent.on('warning', ({ kind, source, message, lied }) => {
    if (lied === true) onLie(`${kind} ${source}: ${message}`)
    if (warnings.size < 5) warnings.add(`${source}: ${message}`)
  })
  const gaveUp = (what: string): DaemonError =>
    new DaemonError(
      'E_SOURCE_UNAVAILABLE',
      `${what}${warnings.size > 0 ? ` (${[...warnings].join('; ')})` : ''}; try again when one is there`
    )
  try {
    const watch = new SourceWatch(patience)
    for (;;) {
      signal.throwIfAborted()
      const { peers, downloadedBytes, state } = torrent.progress()
      const what = state === 'metadata' ? 'the list of files' : 'the manifest'
      onProgress({
        peers,
        message:
          peers === 0
            ? 'looking for a peer that has it'
            : `asking ${peers} ${peers === 1 ? 'peer' : 'peers'} for ${what}`
      })
      const why = watch.look(downloadedBytes, peers > 0)
      if (why === 'silent') throw gaveUp(`no peer gave ${what} for ${Math.round(patience.fillTimeoutMs / 1000)} s`)
      if (why === 'lonely') throw gaveUp('no peer answers, and neither a tracker nor the DHT can name another one')
      const done = await watch.next(storage.manifest, failed.promise)
      if (done !== undefined) return done
    }
  } finally {
    await torrent.remove()
  }
}

const otherManifest = (pin: Sha256Digest): DaemonError =>
  new DaemonError('E_NOT_IMPORTABLE', `the torrent does not bind to the pin: it holds no manifest ${pin}`)

/** Keeps one file in memory, and accepts no other. */
class ManifestStorage implements TorrentStorage {
  readonly manifest: Promise<Uint8Array>
  readonly #pin: Sha256Digest
  readonly #leaveOut: (fileIndex: number) => void
  readonly #done = Promise.withResolvers<Uint8Array>()
  #bytes: Buffer = Buffer.alloc(0)
  #index = -1

  constructor(pin: Sha256Digest, leaveOut: (fileIndex: number) => void) {
    this.#pin = pin
    this.#leaveOut = leaveOut
    this.manifest = this.#done.promise
    this.manifest.catch(() => undefined)
  }

  async open({ name, files }: TorrentLayout): Promise<void> {
    const own = name === torrentName(this.#pin) ? files.find(({ path }) => path === manifestPath(this.#pin)) : undefined
    if (own === undefined || own.lengthBytes > MAX_DOCUMENT_BYTES) return this.#refuse()
    this.#index = own.index
    this.#bytes = Buffer.alloc(own.lengthBytes)
    for (const file of files) if (file !== own) this.#leaveOut(file.index)
  }

  async state(_file: LayoutFile): Promise<FileState> {
    return { kind: 'partial', ranges: [] }
  }

  async read(fileIndex: number, offset: number, target: Uint8Array): Promise<number> {
    if (fileIndex !== this.#index) throw new Error('only the manifest is kept')
    const part = this.#bytes.subarray(offset, offset + target.length)
    target.set(part)
    return part.length
  }

  async writer(_fileIndex: number): Promise<FileWriter> {
    return {
      fd: undefined,
      write: async (offset, bytes) => void this.#bytes.set(bytes, offset),
      markWritten: () => undefined,
      unmark: () => undefined
    }
  }

  async fileComplete(fileIndex: number): Promise<'ok'> {
    if (fileIndex !== this.#index) return 'ok'
    // its merkle root is the torrent's, so no other peer could send other bytes
    if (createHash('sha256').update(this.#bytes).digest('hex') === digestHex(this.#pin)) this.#done.resolve(this.#bytes)
    else this.#refuse()
    return 'ok'
  }

  async close(): Promise<void> {
    this.#done.reject(new DaemonError('E_ABORTED', 'the torrent was left'))
  }

  #refuse(): void {
    this.#done.reject(otherManifest(this.#pin))
  }
}
