import { HttpClient } from '@svc/internal-http'
import { formatAddress, type PeerAddress, TokenBucket } from '@svc/internal-net'
import type { CopyWitness, Filler, Work } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { waysIn } from './addresses.ts'
import { AnswerReader } from './answers.ts'
import type { SwarmTotals } from './artifact-swarm.ts'
import { openEngine } from './engine.ts'
import type { PinnedResult } from './pinned-import.ts'
import { type PinnedFields, type PinnedRequest, parsePinned } from './pinned-request.ts'
import type { Reading, Readings } from './readings.ts'
import { type Shared, type ShareRequest, share } from './share.ts'
import { connectedPeers, type HeldBack, type TorrentsStatus, torrentsStatus, type Verifying } from './status.ts'
import {
  composeSwarm,
  type SwarmClientDeps,
  type SwarmClientOptions,
  type SwarmMeans,
  type SwarmParts
} from './swarm-parts.ts'
import type { WebseedKeys } from './webseed-keys.ts'
import { WebseedPort } from './webseed-port.ts'

export type { SwarmClientDeps, SwarmClientOptions } from './swarm-parts.ts'

/** The addresses under which this node can be reached, as `host:port`. */
export interface SwarmAddresses {
  readonly peer?: string
  readonly webseed?: string
}

/** What the swarm client does. */
export interface SwarmClientStatus extends TorrentsStatus {
  readonly seed: boolean
  /** Absent: imports are announced from the next start on. */
  readonly seedOnImport?: true
  readonly heldBack: HeldBack[]
  readonly verifying?: Verifying
  /** Absent without one. */
  readonly uploadLimitBytesPerSecond?: number
  readonly peerAddress?: string
  readonly webseedAddress?: string
  readonly dhtPort?: number
  /** Absent without any. */
  readonly signedWebseeds?: Awaited<ReturnType<WebseedKeys['states']>>
}

interface Means extends SwarmMeans {
  readonly webseed: WebseedPort
  readonly limit: TokenBucket
  readonly answers: AnswerReader
}

/** The v2 swarm client of a store: seeding, filling, pinned imports (docs/swarm.md). */
export class SwarmClient {
  readonly #deps: SwarmClientDeps
  readonly #means: Means
  readonly #parts: SwarmParts
  #closing: Promise<void> | undefined

  private constructor(deps: SwarmClientDeps, means: Means, parts: SwarmParts) {
    this.#deps = deps
    this.#means = means
    this.#parts = parts
  }

  /** @throws the error of `listen`, and the engine's for invalid settings */
  static async open(deps: SwarmClientDeps, options: SwarmClientOptions = {}): Promise<SwarmClient> {
    const { clock, settings, addresses, keys, listeners, downloads } = deps
    const limit = new TokenBucket(settings.uploadLimitBytesPerSecond, clock.monotonic())
    const traffic = () => listeners?.add('webseed')
    const webseed = new WebseedPort({ ...deps, address: addresses.webseed, limit, traffic })
    const answers = new AnswerReader(clock)
    try {
      if (settings.seed) await webseed.open()
      const headersFor: SwarmParts['signed']['headersFor'] = (...request) => parts.signed.headersFor(...request)
      const engine = await openEngine({
        ...deps,
        peerAddress: addresses.peer,
        listens: addresses.listens ?? true,
        limit,
        parse: answers.parse,
        headersFor: keys && headersFor
      })
      const means = { engine, webseed, limit, answers, web: new HttpClient({ clock, downloads }) }
      const parts = composeSwarm(deps, means, options)
      return new SwarmClient(deps, means, parts)
    } catch (error) {
      await Promise.all([webseed.close(), answers.close()])
      throw error
    }
  }

  /** Brings what artifacts lack. */
  get filler(): Filler {
    return this.#parts.filler
  }

  /** Which artifacts web servers, buckets and peers still have. */
  get copies(): readonly CopyWitness[] {
    return this.#parts.copies
  }

  /**
   * Joins complete artifacts. Resolves when the store may be used: everything is joined, or ten seconds have passed and
   * the rest continues in the background (spec swarm.6). The failure of one artifact is logged, never thrown.
   */
  start(): Promise<void> {
    return this.#parts.seeding.start()
  }

  /** Before sharing is turned on: opens what it needs. @throws the error of `listen` */
  prepareSeeding(): Promise<void> {
    return this.#means.webseed.open()
  }

  /** After a change of `seed`. Resolves when nothing is given any more, or with everything under way to be given. */
  async seedChanged(): Promise<void> {
    await this.#parts.fetches.allChanged()
    await this.#parts.seeding.changed()
  }

  /** After a change of the upload limit. */
  limitChanged(): void {
    this.#means.limit.bytesPerSecond = this.#deps.settings.uploadLimitBytesPerSecond
  }

  /** What another node needs to fetch an artifact. @throws LibraryError `E_NOT_FOUND` */
  share(request: ShareRequest): Promise<Shared> {
    return share(request, waysIn(this.#peer, this.#means.webseed.listener?.address), { ...this.#deps, ...this.#parts })
  }

  /** The fields of a pinned import, checked. @throws LibraryError `E_INVALID` */
  pinned(fields: PinnedFields): PinnedRequest {
    return parsePinned(fields)
  }

  /**
   * Imports an artifact by its pin. @throws LibraryError `E_SOURCE_UNAVAILABLE`, `E_NOT_IMPORTABLE`, `E_NO_SPACE`; the
   * signal's reason
   */
  importPinned(request: PinnedRequest, work: Work): Promise<PinnedResult> {
    return this.#parts.pinned.run(request, work)
  }

  /** The owner no longer wants a pinned import, which is not resumed for others. */
  giveUp(request: PinnedRequest): Promise<void> {
    return this.#parts.pinned.giveUp(request)
  }

  /** The rest of an interrupted pinned import; undefined if there is none. @throws LibraryError `E_NOT_FOUND` */
  restOf(manifestDigest: Sha256Digest): Promise<PinnedRequest | undefined> {
    return this.#parts.pinned.rest(manifestDigest)
  }

  /** Notes that a reader waits for blobs of an artifact: its fetch takes them first. */
  reading(...reading: Parameters<Readings['open']>): Reading {
    return this.#parts.swarm.readings.open(...reading)
  }

  /** After an import: an artifact that may no longer be shared leaves, and others join if that is how it is set. */
  imported(manifestDigest: Sha256Digest): void {
    void this.#parts.seeding
      .withdraw(manifestDigest)
      .then(() => (this.#deps.settings.seedOnImport ? this.#parts.seeding.join(manifestDigest) : undefined))
  }

  /** After a privacy change: the artifact leaves at once, or joins if it is complete; a fetch continues as permitted. */
  async withhold(manifestDigest: Sha256Digest): Promise<void> {
    const { seeding, fetches, swarm } = this.#parts
    await seeding.withdraw(manifestDigest)
    await fetches.changed(manifestDigest)
    if (!swarm.joined.has(manifestDigest)) await seeding.join(manifestDigest)
  }

  /** The artifact is no longer needed. */
  unneeded(manifestDigest: Sha256Digest): Promise<void> {
    return this.#parts.seeding.unneeded(manifestDigest)
  }

  /** How far the verification at the start is; part of {@link status}, which asks every torrent. */
  get verifying(): Verifying | undefined {
    return this.#parts.seeding.verifying
  }

  async status(): Promise<SwarmClientStatus> {
    const { settings, keys } = this.#deps
    const { seed, seedOnImport, uploadLimitBytesPerSecond } = settings
    const { peer, webseed } = this.addresses()
    const { dhtPort } = this.#means.engine
    return {
      seed,
      ...(seedOnImport && { seedOnImport }),
      ...torrentsStatus(this.#parts.swarm),
      heldBack: [...this.#parts.seeding.heldBack],
      ...(this.verifying && { verifying: this.verifying }),
      ...(uploadLimitBytesPerSecond > 0 && { uploadLimitBytesPerSecond }),
      ...(peer !== undefined && { peerAddress: peer }),
      ...(webseed !== undefined && { webseedAddress: webseed }),
      ...(dhtPort !== undefined && { dhtPort }),
      ...(keys && { signedWebseeds: await keys.states() })
    }
  }

  /** The connections, the busiest first. */
  peers(): ReturnType<typeof connectedPeers> {
    return connectedPeers(this.#parts.swarm)
  }

  /** Bytes of models sent and fetched since the start. */
  totals(): SwarmTotals {
    const [models, beside] = [this.#parts.swarm.totals(), this.#parts.beside.totals()]
    return {
      downloadedBytes: models.downloadedBytes + beside.downloadedBytes,
      uploadedBytes: models.uploadedBytes + beside.uploadedBytes
    }
  }

  addresses(): SwarmAddresses {
    const [peer, webseed] = [this.#peer, this.#means.webseed.listener?.address]
    return {
      ...(peer !== undefined && { peer: formatAddress(peer) }),
      ...(webseed !== undefined && { webseed: formatAddress(webseed) })
    }
  }

  get #peer(): PeerAddress | undefined {
    const { port } = this.#means.engine
    return port === undefined ? undefined : { host: this.#deps.addresses.peer.host, port }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { seeding, companions, swarm } = this.#parts
    const { engine, webseed, web, answers } = this.#means
    await seeding.close()
    await webseed.close()
    await companions.close()
    await swarm.close()
    await engine.close()
    await Promise.all([web.close(), answers.close()])
  }
}
