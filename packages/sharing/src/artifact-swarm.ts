import { type Library, LibraryError, OpenBlobs, type SwarmHints } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'
import type { PieceLayers } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { Swarm, SwarmTorrent, TorrentWarning } from '@svc/swarm'
import { ArtifactStorage, type ArtifactStorageOptions } from './artifact-storage.ts'
import { type FetchedBlob, Readings } from './readings.ts'
import type { WebseedListener } from './webseed-listener.ts'

export interface ArtifactSwarmDeps extends Pick<Library, 'store' | 'leafLayers' | 'log'> {
  readonly holdings: { readonly arrivals: ArtifactStorageOptions['arrivals'] }
  readonly swarm: Swarm
  readonly webseed: () => WebseedListener | undefined
  /** Trackers to announce to in addition to the hints. */
  readonly trackers: readonly string[]
  /** An artifact began to be seeded, or left; waited for. */
  readonly onSeeding?: (manifestDigest: Sha256Digest) => Promise<void>
}

/** An artifact that takes part in its swarm. */
export interface JoinedArtifact {
  readonly torrent: ArtifactTorrent
  readonly handle: SwarmTorrent
  readonly seeding: boolean
}

export interface JoinOptions
  extends Pick<ArtifactStorageOptions, 'heldManifest' | 'checksRoots' | 'onBlob' | 'onWrong'> {
  readonly layers: PieceLayers | undefined
  readonly hints: SwarmHints
  /** Nothing is missing, and nothing will be requested. */
  readonly seedOnly: boolean
  /** Its bytes come from here first: see the engine's `firstSeed`. */
  readonly firstSeed?: boolean
  /** Bytes are uploaded as well. */
  readonly upload: boolean
  /** Getting it needed access: only hinted sources are contacted, and it is not announced (spec swarm.5). */
  readonly quiet?: boolean
  readonly onWarning?: (warning: TorrentWarning) => void
}

/** Since the start. */
export interface SwarmTotals {
  readonly downloadedBytes: number
  readonly uploadedBytes: number
}

interface JoinedEntry extends JoinedArtifact {
  readonly storage: ArtifactStorage
  seeding: boolean
  /** As if it had joined as a seed: it uploads and announces. */
  readonly open: boolean
  readonly over: AbortController
}

/**
 * The artifacts and their torrents in the engine. An artifact is joined at most once; a fetch replaces the
 * earlier one. Invariant: the webseed listener serves exactly the entries that are `seeding`.
 */
export class ArtifactSwarm {
  readonly #deps: ArtifactSwarmDeps
  readonly #blobs: OpenBlobs
  readonly #entries = new Map<Sha256Digest, JoinedEntry>()
  /** Those who wait for bytes of artifacts, whether these are joined or not. */
  readonly readings = new Readings({
    onChange: (manifestDigest) => {
      const entry = this.#entries.get(manifestDigest)
      entry?.handle.hasten(this.readings.ranges(entry.torrent))
    },
    fetched: (manifestDigest, digest) => this.#fetched(manifestDigest, digest)
  })
  /** Totals of the torrents that have left. */
  readonly #past = { downloadedBytes: 0, uploadedBytes: 0 }

  constructor(deps: ArtifactSwarmDeps) {
    this.#deps = deps
    this.#blobs = new OpenBlobs(deps.store)
  }

  get joined(): ReadonlyMap<Sha256Digest, JoinedArtifact> {
    return this.#entries
  }

  /** The traffic of all torrents, including those that have left. */
  totals(): SwarmTotals {
    let { downloadedBytes, uploadedBytes } = this.#past
    for (const { handle } of this.#entries.values()) {
      const progress = handle.progress()
      downloadedBytes += progress.downloadedBytes
      uploadedBytes += progress.uploadedBytes
    }
    return { downloadedBytes, uploadedBytes }
  }

  /** A seed does not replace a joined torrent: a finished fetch becomes one. @throws the engine's error for invalid options. */
  async join(torrent: ArtifactTorrent, options: JoinOptions): Promise<JoinedArtifact> {
    for (let there = this.#entries.get(torrent.manifestDigest); there !== undefined; ) {
      if (options.seedOnly) return there
      await this.leave(torrent.manifestDigest)
      there = this.#entries.get(torrent.manifestDigest)
    }
    const { store, leafLayers, holdings, swarm, trackers, log } = this.#deps
    const over = new AbortController()
    const { heldManifest, checksRoots, onBlob, onWrong } = options
    const given = { heldManifest, checksRoots, onBlob, onWrong, torrent, signal: over.signal }
    const { arrivals } = holdings
    const storage = new ArtifactStorage({ store, leafLayers, arrivals, blobs: this.#blobs, ...given })
    const handle = swarm.add({
      info: torrent,
      ...(options.layers && { pieceLayers: options.layers }),
      storage,
      trackers: options.quiet ? [] : [...new Set([...options.hints.trackers, ...trackers])],
      ...(options.quiet && { dht: false, pex: false, disclose: false }),
      webseeds: options.seedOnly ? [] : options.hints.webseeds,
      peers: options.hints.peers,
      strangers: options.hints.others ?? [],
      seedOnly: options.seedOnly,
      ...(options.firstSeed && { firstSeed: true }),
      upload: options.upload
    })
    const entry: JoinedEntry = {
      torrent,
      handle,
      storage,
      seeding: options.seedOnly && options.upload,
      open: options.upload && options.quiet !== true,
      over
    }
    this.#entries.set(torrent.manifestDigest, entry)
    handle.hasten(this.readings.ranges(torrent))
    const tell = (): void => this.readings.tell(torrent.manifestDigest)
    handle.on('piece', tell).on('file', tell)
    handle.on('warning', (warning) => {
      // anyone who knows an infohash can break the protocol as often as they like: only proven bad data deserves a line
      log[warning.lied || warning.kind === 'storage' ? 'info' : 'debug']({ torrent: torrent.name, ...warning }, 'swarm')
      options.onWarning?.(warning)
    })
    handle.once('failed', (error) => {
      log.warn({ err: error, torrent: torrent.name }, 'a torrent failed')
      if (this.#entries.get(torrent.manifestDigest) === entry) void this.leave(torrent.manifestDigest)
    })
    if (entry.seeding && options.layers) this.#deps.webseed()?.serve({ torrent, layers: options.layers })
    if (entry.seeding) await this.#deps.onSeeding?.(torrent.manifestDigest)
    return entry
  }

  #fetched(manifestDigest: Sha256Digest, digest: Sha256Digest): FetchedBlob | undefined {
    const entry = this.#entries.get(manifestDigest)
    const index = entry?.storage.fetching(digest)
    const layout = entry?.handle.layout
    if (entry === undefined || index === undefined || layout === undefined) return undefined
    const { handle, storage } = entry
    const { firstPiece, lengthBytes } = layout.files[index]!
    return {
      until: (offset, end) => {
        const to = Math.min(end, lengthBytes)
        let until = offset
        while (until < to) {
          const piece = Math.floor(until / layout.pieceLengthBytes)
          if (!handle.has(firstPiece + piece)) return until
          until = Math.min(to, (piece + 1) * layout.pieceLengthBytes)
        }
        return until
      },
      read: (target, offset) => storage.readFetched(index, offset, target)
    }
  }

  /**
   * Seeds an artifact that has become complete, with the connections that it has. False if it must be joined anew: it is
   * incomplete, or was fetched without uploading or announcing.
   */
  async seed(torrent: ArtifactTorrent, layers: PieceLayers): Promise<boolean> {
    const entry = this.#entries.get(torrent.manifestDigest)
    if (entry === undefined || !entry.open || entry.handle.state !== 'seeding') return false
    if (entry.seeding) return true
    entry.seeding = true
    this.#deps.webseed()?.serve({ torrent, layers })
    await this.#deps.onSeeding?.(torrent.manifestDigest)
    return true
  }

  /**
   * Never rejects: if the store cannot record the fetched bytes (its disk is full), a later fetch in this process still
   * continues with them, and one after a restart as far as the journal goes.
   */
  async leave(manifestDigest: Sha256Digest): Promise<void> {
    const entry = this.#entries.get(manifestDigest)
    if (entry === undefined) return
    const { downloadedBytes, uploadedBytes } = entry.handle.progress()
    this.#past.downloadedBytes += downloadedBytes
    this.#past.uploadedBytes += uploadedBytes
    this.#entries.delete(manifestDigest)
    this.#deps.webseed()?.withdraw(entry.torrent)
    entry.over.abort(new LibraryError('E_ABORTED', 'the artifact left its swarm'))
    await entry.handle.remove().catch((error: unknown) => {
      this.#deps.log.warn({ err: error, torrent: entry.torrent.name }, 'a fetch cannot be recorded')
    })
    for (const { digest } of entry.torrent.files) this.#blobs.drop(digest)
    if (entry.seeding) await this.#deps.onSeeding?.(manifestDigest)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((digest) => this.leave(digest)))
    await this.#blobs.close()
  }
}
