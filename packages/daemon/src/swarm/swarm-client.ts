import type { ImportBtBody, Job, ShareResult, SwarmStatus, TorrentStatus } from '@svc/client/protocol'
import { HttpClient } from '@svc/internal-http'
import { formatAddress, TokenBucket } from '@svc/internal-net'
import { formatMagnet, parseInfohash } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { createSwarm, type Swarm, type UploadLimit } from '@svc/swarm'
import { configuredAddress } from '../config/address.ts'
import type { SwarmConfig } from '../config/config.ts'
import type { WebseedKeyConfig } from '../config/webseed.ts'
import { DaemonError, StartError } from '../errors.ts'
import type { Listeners } from '../http/traffic.ts'
import { importTarget } from '../import/target.ts'
import type { CopyWitness } from '../jobs/copies.ts'
import { type EnsureDeps, ensure } from '../jobs/ensure.ts'
import type { Beside, FillContext, Filler, FillRequest } from '../jobs/fill.ts'
import { companionsUnder } from '../library/artifact-record.ts'
import type { ArtifactState } from '../library/artifacts.ts'
import type { Library } from '../library/library.ts'
import type { Needed } from '../library/needed.ts'
import { heldBackReason, verdictOf } from '../library/provenance.ts'
import { readSmallBlob } from '../library/small-blob.ts'
import { TRANSFER_NICE } from '../thread-priority.ts'
import { waysIn } from './addresses.ts'
import { ArtifactSwarm, type SwarmTotals } from './artifact-swarm.ts'
import { ArtifactTorrents } from './artifact-torrents.ts'
import { CompanionsSwarm } from './companions-swarm.ts'
import { Fetches, lonelyTimeoutMs } from './fetches.ts'
import { type ImportBtContext, startImportBt } from './import-bt.ts'
import { PeerCopies } from './peer-copies.ts'
import {
  companionsFromPeers,
  manifestFromPeers,
  type PeerDocumentContext,
  type PeerDocumentOptions,
  type PeerDocumentRequest
} from './peer-documents.ts'
import { bringCompanions, type CompanionsDeps, importBtCommand } from './pinned-companions.ts'
import { type PinnedImport, parseImportBt } from './pinned-import.ts'
import { WebseedDocuments, type WebseedReading } from './pinned-manifest.ts'
import type { Reading, Readings } from './readings.ts'
import { ArtifactSeeding } from './seeding.ts'
import { SignedRequests } from './signed-requests.ts'
import { isWhole } from './space.ts'
import { WebseedCopies } from './webseed-copies.ts'
import { WebseedKeys } from './webseed-keys.ts'
import { WebseedListener } from './webseed-listener.ts'

/** Bootstrap nodes of the DHT without `[swarm] dht_bootstrap`. */
const PUBLIC_DHT_NODES = ['router.bittorrent.com:6881', 'router.utorrent.com:6881', 'dht.transmissionbt.com:6881']
/** The model is here by then: peers without companions are not awaited longer. */
const COMPANIONS_TIMEOUT_MS = 30_000
const NO_HINTS = { trackers: [], webseeds: [], peers: [] }

export interface SwarmClientDeps
  extends ImportBtContext,
    Omit<EnsureDeps, 'filler'>,
    Pick<Library, 'log' | 'clock' | 'holdings'> {
  readonly needed: Pick<Needed, 'isGiven'>
  readonly config: { readonly swarm: SwarmConfig; readonly webseedKeys: readonly WebseedKeyConfig[] }
  /** Counts the webseed listener's traffic. */
  readonly listeners?: Listeners
}

/** The addresses under which this node can be reached, as `host:port`. */
export interface SwarmAddresses {
  readonly peer?: string
  readonly webseed?: string
}

export interface ShareRequest {
  readonly ref: string
  readonly manifestDigest: Sha256Digest
  /** `ns/name`, whose companions are shared. */
  readonly name: string
  /** Announce it first, if nothing prevents that. */
  readonly join: boolean
}

export interface SwarmClientOptions {
  /** The start waits for the verification no longer than this; default ten seconds (spec swarm.6). */
  readonly startLimitMs?: number
  /** A pinned import waits for a source of its companions no longer than this; default 30 seconds. */
  readonly companionsTimeoutMs?: number
}

/** The v2 swarm client of a daemon: seeding, filling, pinned imports (docs/swarm.md). */
export class SwarmClient {
  readonly filler: Filler = {
    canFill: () => true,
    fill: (request, context) => this.#fill(request, context),
    fillBeside: (manifestDigest, context) => this.#fillBeside(manifestDigest, context)
  }
  /** Which artifacts web servers, buckets and peers still have. */
  readonly copies: readonly CopyWitness[]
  readonly #context: SwarmClientDeps
  readonly #engine: Swarm
  #webseed: WebseedListener | undefined
  readonly #peerHost: string
  readonly #torrents: ArtifactTorrents
  readonly #artifacts: ArtifactSwarm
  /** Torrents of companions. */
  readonly #beside: ArtifactSwarm
  readonly #companions: CompanionsSwarm
  readonly #seeding: ArtifactSeeding
  readonly #fetches: Fetches
  readonly #web: HttpClient
  readonly #keys: WebseedKeys
  readonly #reading: WebseedReading
  readonly #limit: TokenBucket
  readonly #signed: SignedRequests
  readonly #companionsTimeoutMs: number
  #closing: Promise<void> | undefined

  private constructor(
    context: SwarmClientDeps,
    engine: Swarm,
    webseed: WebseedListener | undefined,
    peerHost: string,
    keys: WebseedKeys,
    limit: TokenBucket,
    options: SwarmClientOptions
  ) {
    const { clock, store, config } = context
    this.#context = context
    this.#engine = engine
    this.#webseed = webseed
    this.#peerHost = peerHost
    this.#keys = keys
    this.#web = new HttpClient({ clock })
    this.#reading = { web: this.#web, keys, clock }
    this.#limit = limit
    this.#companionsTimeoutMs = options.companionsTimeoutMs ?? COMPANIONS_TIMEOUT_MS
    this.#torrents = new ArtifactTorrents(context)
    const torrentOf: ArtifactTorrents['of'] = (digest) => this.#torrents.of(digest)
    this.copies = [
      new WebseedCopies({ store, mark: context.listeners?.mark, reading: this.#reading, torrentOf }),
      new PeerCopies({
        engine,
        clock,
        torrentOf,
        layersOf: (...asked) => this.#torrents.layersOf(...asked),
        aside: (...work) => this.#aside(...work)
      })
    ]
    const engines = { ...context, swarm: engine, webseed: () => this.#webseed, trackers: config.swarm.trackers }
    this.#beside = new ArtifactSwarm(engines)
    this.#artifacts = new ArtifactSwarm({ ...engines, onSeeding: (digest) => this.#companions.follow(digest) })
    const parts = { ...context, config: config.swarm, torrents: this.#torrents, swarm: this.#artifacts }
    this.#companions = new CompanionsSwarm({
      ...parts,
      beside: this.#beside,
      isFetching: (digest) => !this.#fetches.turns.isFree(digest)
    })
    const onRestricted = (digest: Sha256Digest): Promise<void> => this.#fetches.changed(digest)
    this.#signed = new SignedRequests({ ...parts, keys, onRestricted })
    this.#fetches = new Fetches(parts)
    this.#seeding = new ArtifactSeeding({ ...parts, startLimitMs: options.startLimitMs })
  }

  /** @throws StartError, ConfigError when an address is unavailable. */
  static async open(context: SwarmClientDeps, options: SwarmClientOptions = {}): Promise<SwarmClient> {
    const { clock, config, log } = context
    const { swarm } = config
    const peer = configuredAddress(swarm.peerAddr, '[swarm] peer_addr')
    const keys = new WebseedKeys(config.webseedKeys, process.env, clock)
    await keys.check()
    const limit = new TokenBucket(swarm.uploadLimitBytesPerSecond, clock.monotonic())
    let webseed: WebseedListener | undefined
    try {
      webseed = await listenAsWebseed(context, limit, swarm.seed)
      const signed: { current?: SignedRequests } = {}
      const engine = await createSwarm({
        clock,
        peerAddress: peer,
        pex: swarm.dht,
        dht: swarm.dht && { bootstrap: swarm.dhtBootstrap ?? PUBLIC_DHT_NODES, host: peer.host },
        uploadLimit: limit,
        ...(config.webseedKeys.length > 0 && {
          webseedHeaders: (url: URL, range: string, infohash: Uint8Array) =>
            signed.current!.headersFor(url, range, infohash)
        }),
        trusted: swarm.trusted,
        ...(swarm.zone !== undefined && { zone: swarm.zone }),
        lsd: swarm.lsd,
        verifyNice: TRANSFER_NICE,
        onFault: ({ thread, error, count, pauseMs }) =>
          log.warn(
            { err: error, thread, count, pauseMs },
            'a thread that finds peers crashed or hung, and starts again'
          )
      })
      const client = new SwarmClient(context, engine, webseed, peer.host, keys, limit, options)
      signed.current = client.#signed
      return client
    } catch (cause) {
      await webseed?.close()
      throw new StartError(
        `the swarm client cannot start: ${(cause as Error).message}; see peer_addr and webseed_addr under [swarm]`,
        { cause }
      )
    }
  }

  /**
   * Joins complete artifacts. Resolves when the socket may listen: everything is joined, or ten seconds have passed and
   * the rest continues in the background (spec swarm.6). The failure of one artifact is logged, never thrown.
   */
  start(): Promise<void> {
    return this.#seeding.start()
  }

  /** Before sharing is turned on: opens what it needs. @throws the error of `listen` */
  async prepareSeeding(): Promise<void> {
    if (this.#webseed !== undefined) return
    this.#webseed = await listenAsWebseed(this.#context, this.#limit, true)
  }

  /** After a change of `[swarm] upload_limit`. */
  limitChanged(): void {
    this.#limit.bytesPerSecond = this.#context.config.swarm.uploadLimitBytesPerSecond
  }

  /** After a change of `[swarm] seed`. Resolves when nothing is given any more, or with everything under way to be given. */
  async seedChanged(): Promise<void> {
    await this.#fetches.allChanged()
    await this.#seeding.changed()
  }

  async importBt(body: ImportBtBody): Promise<Job> {
    return this.#import(parseImportBt(body))
  }

  get #companionsDeps(): CompanionsDeps {
    return {
      context: this.#context,
      reading: this.#reading,
      isWithheld: (artifact) => !verdictOf(artifact, 'swarm', this.#context.config.swarm).given,
      hasCompanions: (digest) => this.#beside.joined.has(digest),
      companionsFromPeers: (...fetch) => this.#companionsFromPeers(...fetch)
    }
  }

  #import(request: PinnedImport): Job {
    return startImportBt(request, {
      ...this.#companionsDeps,
      context: this.#context,
      manifestFromPeers: (request, context) =>
        // one at a time: the engine can join a swarm only once
        this.#fetches.turns.run(request.pin, context.signal, async () => {
          const present = await readSmallBlob(this.#context.store, request.pin)
          return present ?? manifestFromPeers(this.#engine, request, context, this.#optionsFor(request))
        }),
      fetch: (request, fetching) => this.#fetches.run(request, fetching),
      joinWhenDone: (digest) => this.#joinWhenDone(digest)
    })
  }

  #optionsFor(request: PeerDocumentRequest, maxTimeoutMs = Number.POSITIVE_INFINITY): PeerDocumentOptions {
    const { clock, config } = this.#context
    const { trackers } = config.swarm
    const fillTimeoutMs = Math.min(config.swarm.fillTimeoutMs, maxTimeoutMs)
    return {
      clock,
      trackers,
      fillTimeoutMs,
      lonelyTimeoutMs: lonelyTimeoutMs({ ...config.swarm, fillTimeoutMs }, request)
    }
  }

  async #companionsFromPeers(
    request: PeerDocumentRequest,
    context: PeerDocumentContext
  ): ReturnType<CompanionsDeps['companionsFromPeers']> {
    const { pin, infohashText } = request
    const options = this.#optionsFor(request, this.#companionsTimeoutMs)
    try {
      return await this.#fetches.turns.run(pin, context.signal, async () =>
        this.#beside.joined.has(pin)
          ? undefined
          : this.#signed.watching(parseInfohash(infohashText), () =>
              companionsFromPeers(this.#engine, request, context, options)
            )
      )
    } finally {
      this.#companions.fetched(pin)
    }
  }

  /** The details that another node needs. */
  async share({ ref, manifestDigest, name, join }: ShareRequest): Promise<ShareResult> {
    const { store, artifacts, config } = this.#context
    const torrent = await this.#torrents.of(manifestDigest)
    if (torrent === undefined)
      throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
    const standing = await artifacts.standing(manifestDigest)
    const heldBack = heldBackReason(standing, config.swarm)
    const state = standing === 'damaged' ? undefined : standing
    const isAnnounced = (): boolean => this.#artifacts.joined.get(manifestDigest)?.seeding === true
    if (join && heldBack === undefined && !isAnnounced()) await this.#seeding.join(manifestDigest)
    const announced = isAnnounced()
    const { port } = this.#engine
    const ways = waysIn(port === undefined ? undefined : { host: this.#peerHost, port }, this.#webseed?.address)
    const [peers, webseeds] = [[...ways.peers], [...ways.webseeds]]
    const trackers = [...new Set([...(state?.hints.trackers ?? []), ...config.swarm.trackers])]
    const note = announced
      ? ways.note
      : (heldBack ??
        (this.#seeding.awaitsVerification(manifestDigest)
          ? 'it is being verified after the start, and is announced when that is done'
          : undefined) ??
        ((await isWhole(store, torrent))
          ? 'it is not announced yet: svc share announces it now, the next start of the daemon does too, and [swarm] seed_on_import = true announces every import'
          : 'it is not complete here; svc pull fetches the rest'))
    const hints = { trackers, webseeds, peers }
    const magnet = formatMagnet({ infohash: torrent.infohash, name: torrent.name, ...hints })
    const given = companionsUnder(state, name)
    const beside = given && (await this.#companions.torrentOf(given, state!))
    const companions = beside && { digest: beside.manifestDigest, infohash: beside.infohashText }
    return {
      ref,
      manifestDigest,
      infohash: torrent.infohashText,
      name: torrent.name,
      magnet,
      webseeds,
      peers,
      trackers,
      announced,
      ...(note !== undefined && { note }),
      ...(companions && { companions }),
      command: importBtCommand({ torrent, pin: manifestDigest, companions, hints })
    }
  }

  /** How far the verification at the start is; part of {@link status}, which asks every torrent. */
  get verifying(): SwarmStatus['verifying'] {
    return this.#seeding.verifying
  }

  async status(): Promise<SwarmStatus> {
    const { seed, seedOnImport, uploadLimitBytesPerSecond } = this.#context.config.swarm
    const torrents = [...this.#artifacts.joined].map(
      ([manifestDigest, { torrent, handle, seeding }]): TorrentStatus => {
        const { state, peers, downloadRate, uploadRate, uploadedBytes } = handle.progress()
        return {
          infohash: torrent.infohashText,
          name: torrent.name,
          manifestDigest,
          state: state === 'checking' ? 'verifying' : seeding || state === 'seeding' ? 'seeding' : 'fetching',
          sizeBytes: torrent.totalBytes,
          peers,
          downBytesPerSecond: Math.round(downloadRate),
          upBytesPerSecond: Math.round(uploadRate),
          uploadedBytes
        }
      }
    )
    const sum = (of: (torrent: TorrentStatus) => number): number =>
      torrents.reduce((total, torrent) => total + of(torrent), 0)
    const { peer, webseed } = this.addresses()
    return {
      enabled: true,
      seed,
      ...(seedOnImport && { seedOnImport }),
      seeding: [...this.#artifacts.joined.values()].filter(({ seeding }) => seeding).length,
      heldBack: [...this.#seeding.heldBack],
      ...(this.verifying && { verifying: this.verifying }),
      torrents,
      peers: sum(({ peers }) => peers),
      downBytesPerSecond: sum(({ downBytesPerSecond }) => downBytesPerSecond),
      upBytesPerSecond: sum(({ upBytesPerSecond }) => upBytesPerSecond),
      ...(uploadLimitBytesPerSecond > 0 && { uploadLimitBytesPerSecond }),
      ...(peer !== undefined && { peerAddress: peer }),
      ...(webseed !== undefined && { webseedAddress: webseed }),
      ...(this.#engine.dhtPort !== undefined && { dhtPort: this.#engine.dhtPort }),
      ...(this.#context.config.webseedKeys.length > 0 && {
        signedWebseeds: await this.#keys.states()
      })
    }
  }

  /** Bytes of models sent and fetched since the start, by the v2 swarm. */
  totals(): SwarmTotals {
    const [models, beside] = [this.#artifacts.totals(), this.#beside.totals()]
    return {
      downloadedBytes: models.downloadedBytes + beside.downloadedBytes,
      uploadedBytes: models.uploadedBytes + beside.uploadedBytes
    }
  }

  addresses(): SwarmAddresses {
    const { port } = this.#engine
    const webseed = this.#webseed?.address
    return {
      ...(port !== undefined && { peer: formatAddress({ host: this.#peerHost, port }) }),
      ...(webseed !== undefined && { webseed: formatAddress(webseed) })
    }
  }

  /**
   * Starts to fetch the missing files of an artifact for a client of a mirror: the rest of an interrupted pinned
   * import, or else an ensure. @throws DaemonError `E_NOT_FOUND` for an unknown manifest
   */
  async fetchRest(manifestDigest: Sha256Digest): Promise<Job> {
    const state = await this.#context.artifacts.read(manifestDigest)
    if (state?.futureName !== undefined) return this.#resume(state, state.futureName)
    return ensure(`svc:///by/digest@${manifestDigest}`, { ...this.#context, filler: this.filler, lane: 'demand' })
  }

  async #resume({ manifestDigest, hints, futureCompanions }: ArtifactState, futureName: string): Promise<Job> {
    const torrent = await this.#torrents.of(manifestDigest)
    if (torrent === undefined)
      throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
    return this.#import({
      pin: manifestDigest,
      infohashText: torrent.infohashText,
      hints,
      manifestFromPeers: true,
      companions: futureCompanions,
      repo: importTarget(futureName, 'as'),
      private: false,
      isResumed: true
    })
  }

  /** Notes that a reader waits for blobs of an artifact: its fetch takes them first. */
  reading(...reading: Parameters<Readings['open']>): Reading {
    return this.#artifacts.readings.open(...reading)
  }

  /** After a privacy change: the artifact leaves at once, or joins if it is complete; a fetch continues as permitted. */
  async withhold(manifestDigest: Sha256Digest): Promise<void> {
    await this.#seeding.withdraw(manifestDigest)
    await this.#fetches.changed(manifestDigest)
    if (this.#artifacts.joined.has(manifestDigest)) return
    await this.#seeding.join(manifestDigest)
  }

  /** The artifact is no longer needed. */
  unneeded(manifestDigest: Sha256Digest): Promise<void> {
    return this.#seeding.unneeded(manifestDigest)
  }

  imported(manifestDigest: Sha256Digest): void {
    void this.#seeding
      .withdraw(manifestDigest)
      .then(() => (this.#context.config.swarm.seedOnImport ? this.#seeding.join(manifestDigest) : undefined))
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await this.#seeding.close()
      await this.#webseed?.close()
      await this.#companions.close()
      await this.#artifacts.close()
      await this.#engine.close()
      await this.#web.close()
    })()
    return this.#closing
  }

  async #fill({ manifestDigest, artifact, missing }: FillRequest, { signal, onProgress }: FillContext): Promise<void> {
    const torrent = await this.#torrents.of(manifestDigest)
    if (torrent === undefined)
      throw new DaemonError('E_SOURCE_UNAVAILABLE', `the manifest ${manifestDigest} is not in the store`)
    const hints = artifact?.hints ?? NO_HINTS
    const layers =
      (await this.#torrents.recordedLayersOf(torrent, artifact)) ??
      (await new WebseedDocuments(this.#reading, hints.webseeds, (message) =>
        this.#context.log.info({ torrent: torrent.name, message }, 'swarm')
      ).pieceLayers(torrent, signal))
    await this.#fetches.run(
      { torrent, layers, hints },
      {
        signal,
        onProgress: ({ blobsDone, bytesDone }) =>
          onProgress({ filesDone: Math.min(blobsDone, missing.length), bytesDone })
      }
    )
    await this.#joinWhenDone(manifestDigest)
  }

  async #fillBeside(
    manifestDigest: Sha256Digest,
    context: Parameters<Filler['fillBeside']>[1]
  ): Promise<Beside | undefined> {
    try {
      const state = await this.#context.artifacts.read(manifestDigest)
      const torrent = state?.futureCompanions && (await this.#torrents.of(manifestDigest))
      if (torrent === undefined) return undefined
      const wanted = state!.futureCompanions!
      const repo = wanted.name === '' ? undefined : importTarget(wanted.name, 'as')
      const request = { pin: manifestDigest, repo, hints: state!.hints }
      const { result, warnings } = await bringCompanions(wanted, request, torrent, this.#companionsDeps, context)
      return { ...result, ...(warnings.length > 0 && { warnings: [...warnings] }) }
    } catch (error) {
      // the model is here, whatever becomes of its companions
      context.signal.throwIfAborted()
      return { warnings: [`the companions are not here: ${(error as Error).message}`] }
    }
  }

  /** The engine can join a swarm only once, and would find itself there. */
  async #aside<T>(manifestDigest: Sha256Digest, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#fetches.turns.run(manifestDigest, signal, async () => {
      const isSeed = this.#artifacts.joined.get(manifestDigest)?.seeding === true
      await this.#artifacts.leave(manifestDigest)
      try {
        return await work()
      } finally {
        if (isSeed) await this.#seeding.join(manifestDigest)
      }
    })
  }

  /** A fetched artifact continues as a seed, or leaves (spec swarm.8). */
  async #joinWhenDone(manifestDigest: Sha256Digest): Promise<void> {
    // a former seed stays one, unless the import marked it as private
    if (this.#artifacts.joined.get(manifestDigest)?.seeding === true) return this.#seeding.withdraw(manifestDigest)
    if (await this.#seeding.goOn(manifestDigest)) return
    await this.#artifacts.leave(manifestDigest)
    await this.#seeding.join(manifestDigest)
  }
}

/** Undefined where nothing is shared, or none is configured. @throws ConfigError, and the error of `listen` */
async function listenAsWebseed(
  { config, store, log, clock, listeners }: SwarmClientDeps,
  limit: UploadLimit,
  shares: boolean
): Promise<WebseedListener | undefined> {
  const { webseedAddr } = config.swarm
  if (webseedAddr === '') return undefined
  const address = configuredAddress(webseedAddr, '[swarm] webseed_addr')
  const budget = limit.limited ? limit : undefined
  return shares ? WebseedListener.listen({ store, log, clock, budget }, address, listeners?.add('webseed')) : undefined
}
