import type { ImportBtBody, Job, ShareResult, SwarmStatus, TorrentStatus } from '@svc/client/protocol'
import { HttpClient } from '@svc/internal-http'
import { formatAddress, type PeerAddress, TokenBucket } from '@svc/internal-net'
import type { Listeners } from '@svc/internal-server'
import { TRANSFER_NICE } from '@svc/internal-workers'
import {
  type CopyWitness,
  type FillContext,
  type Filler,
  type FillRequest,
  type Library,
  type Needed,
  NO_HINTS
} from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { createSwarm, type Swarm, type UploadLimit } from '@svc/swarm'
import type { AnswerReader } from '../answers.ts'
import { configuredAddress } from '../config/address.ts'
import type { SwarmConfig } from '../config/config.ts'
import type { WebseedKeyConfig } from '../config/webseed.ts'
import { DaemonError, StartError } from '../errors.ts'
import { type EnsureJobDeps, startEnsure } from '../jobs/ensure-job.ts'
import { waysIn } from './addresses.ts'
import { ArtifactSwarm, type SwarmTotals } from './artifact-swarm.ts'
import { ArtifactTorrents } from './artifact-torrents.ts'
import { CompanionsSwarm } from './companions-swarm.ts'
import { Fetches } from './fetches.ts'
import type { ImportBtContext } from './import-bt.ts'
import { PeerCopies } from './peer-copies.ts'
import { parseImportBt } from './pinned-import.ts'
import { PinnedImports } from './pinned-imports.ts'
import { WebseedDocuments, type WebseedReading } from './pinned-manifest.ts'
import type { Reading, Readings } from './readings.ts'
import { ArtifactSeeding } from './seeding.ts'
import { type ShareRequest, share } from './share.ts'
import { SignedRequests } from './signed-requests.ts'
import { WebseedCopies } from './webseed-copies.ts'
import { WebseedKeys } from './webseed-keys.ts'
import { WebseedListener } from './webseed-listener.ts'

/** Bootstrap nodes of the DHT without `[swarm] dht_bootstrap`. */
const PUBLIC_DHT_NODES = ['router.bittorrent.com:6881', 'router.utorrent.com:6881', 'dht.transmissionbt.com:6881']

export interface SwarmClientDeps
  extends ImportBtContext,
    Omit<EnsureJobDeps, 'filler'>,
    Pick<Library, 'log' | 'clock' | 'holdings'> {
  readonly answers: Pick<AnswerReader, 'parse'>
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
    fillBeside: (...args) => this.#pinned.fillBeside(...args)
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
  readonly #keys: WebseedKeys
  readonly #reading: WebseedReading
  readonly #limit: TokenBucket
  readonly #signed: SignedRequests
  readonly #pinned: PinnedImports
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
    this.#reading = { web: new HttpClient({ clock }), keys, clock, parse: context.answers.parse }
    this.#limit = limit
    this.#torrents = new ArtifactTorrents(context)
    this.copies = [
      new WebseedCopies({ store, mark: context.listeners?.mark, reading: this.#reading, torrents: this.#torrents }),
      new PeerCopies({ engine, clock, torrents: this.#torrents, aside: (...work) => this.#aside(...work) })
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
    this.#pinned = new PinnedImports({
      ...parts,
      engine,
      reading: this.#reading,
      fetches: this.#fetches,
      signed: this.#signed,
      companions: this.#companions,
      beside: this.#beside,
      joinWhenDone: (digest) => this.#joinWhenDone(digest),
      companionsTimeoutMs: options.companionsTimeoutMs
    })
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
        parseInfo: (info) => context.answers.parse('info', info),
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
    return this.#pinned.start(parseImportBt(body))
  }

  /** The details that another node needs to fetch an artifact. @throws DaemonError `E_NOT_FOUND` */
  share(request: ShareRequest): Promise<ShareResult> {
    return share(request, waysIn(this.#peer, this.#webseed?.address), {
      ...this.#context,
      config: this.#context.config.swarm,
      torrents: this.#torrents,
      swarm: this.#artifacts,
      seeding: this.#seeding,
      companions: this.#companions
    })
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

  get #peer(): PeerAddress | undefined {
    const { port } = this.#engine
    return port === undefined ? undefined : { host: this.#peerHost, port }
  }

  addresses(): SwarmAddresses {
    const [peer, webseed] = [this.#peer, this.#webseed?.address]
    return {
      ...(peer !== undefined && { peer: formatAddress(peer) }),
      ...(webseed !== undefined && { webseed: formatAddress(webseed) })
    }
  }

  /**
   * Starts to fetch the missing files of an artifact for a client of a mirror: the rest of an interrupted pinned
   * import, or else an ensure. @throws DaemonError `E_NOT_FOUND` for an unknown manifest
   */
  async fetchRest(manifestDigest: Sha256Digest): Promise<Job> {
    const state = await this.#context.artifacts.read(manifestDigest)
    if (state?.futureName !== undefined) return this.#pinned.resume(state, state.futureName)
    return startEnsure(`svc:///by/digest@${manifestDigest}`, { ...this.#context, filler: this.filler, lane: 'demand' })
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
      await this.#reading.web.close()
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
      (await new WebseedDocuments(this.#reading, hints, (message) =>
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

/** Undefined if nothing is shared, or none is configured. @throws ConfigError, and the error of `listen` */
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
