import { KeyedLock } from '@svc/internal-concurrency'
import { type ArtifactState, heldBackReason, type Library, type SharingPolicy } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import type { V1Swarm } from '@svc/swarm-v1'
import type { CatalogDocumentReader } from './catalog-documents.ts'
import { parseV1Seed, type TorrentSeedStatus, type V1Seed, V1Seeds } from './seeds.ts'
import type { SharedSwarm } from './shared-swarm.ts'

/** A torrent, and the artifacts that came from it. */
interface TorrentArtifacts {
  readonly seed: V1Seed
  readonly manifests: Set<Sha256Digest>
}

interface SeedingDeps extends Pick<Library, 'store' | 'artifacts' | 'needed' | 'log'> {
  readonly swarm: SharedSwarm
  readonly documents: CatalogDocumentReader
  /** Asked at each decision. */
  readonly sharing: SharingPolicy
}

/** Torrents that are given to others. */
export interface SeedingStatus {
  readonly torrents: TorrentSeedStatus[]
  readonly peers: number
  readonly upBytesPerSecond: number
  /** `host:port`, once there is one. */
  readonly peerAddress?: string
}

/** Which torrents of earlier pulls are seeded: those of which nothing is withheld, and something is needed. */
export class CatalogSeeding {
  readonly #deps: SeedingDeps
  /** By infohash. */
  readonly #origins = new Map<string, TorrentArtifacts>()
  /** Infohashes of pulls under way. */
  readonly #pulls = new Set<string>()
  readonly #turns = new KeyedLock()
  #listening: V1Swarm | undefined
  #seeds: V1Seeds | undefined
  #closed = false

  constructor(deps: SeedingDeps) {
    const { artifacts, log } = deps
    this.#deps = deps
    artifacts.listen((manifestDigest) => {
      this.withhold(manifestDigest).catch((error: unknown) =>
        log.error(
          { err: error, manifest: manifestDigest },
          'it is unknown whether a BitTorrent v1 torrent may be seeded'
        )
      )
    })
  }

  /** Rejoins the torrents of earlier pulls; leaves them after sharing was turned off. */
  async start(): Promise<void> {
    const { artifacts, log } = this.#deps
    const onCorrupt = (error: Error): void => log.warn({ err: error }, 'a corrupt artifact state is left alone')
    for await (const artifact of artifacts.list(onCorrupt, { cached: true })) this.#learn(artifact)
    for (const infohash of this.#origins.keys()) {
      try {
        await this.#settle(infohash)
      } catch (error) {
        log.warn({ err: error, infohash }, 'a BitTorrent v1 torrent cannot be seeded')
      }
    }
  }

  /** After an artifact's standing or need changed: leaves or rejoins the swarm that it came from. */
  async withhold(manifestDigest: Sha256Digest): Promise<void> {
    const artifact = await this.#deps.artifacts.ifReadable(manifestDigest)
    const infohash = artifact && this.#learn(artifact)
    if (infohash !== undefined) await this.#settle(infohash)
  }

  /** Leaves a torrent to a pull: a client can join it once. */
  async beginPull(infohash: string): Promise<void> {
    this.#pulls.add(infohash)
    await this.#settle(infohash)
  }

  /** @param isGiven a model that must not be shared is not seeded again, however the pull ended */
  async endPull(infohash: string, isGiven: boolean): Promise<void> {
    this.#pulls.delete(infohash)
    if (isGiven) await this.#settle(infohash)
  }

  status(): SeedingStatus {
    const torrents = this.#seeds?.status() ?? []
    const address = this.#listening?.address
    return {
      torrents,
      peers: torrents.reduce((sum, torrent) => sum + torrent.peers, 0),
      upBytesPerSecond: torrents.reduce((sum, torrent) => sum + torrent.upBytesPerSecond, 0),
      ...(address && { peerAddress: `${address.host}:${address.port}` })
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listening = undefined
    await this.#seeds?.close()
  }

  /** Notes which torrent an artifact came from. @returns its infohash */
  #learn({ manifestDigest, source }: ArtifactState): string | undefined {
    const seed = parseV1Seed(source.bittorrentV1)
    if (seed === undefined) return undefined
    const manifests = this.#origins.get(seed.infohash)?.manifests ?? new Set<Sha256Digest>()
    this.#origins.set(seed.infohash, { seed, manifests: manifests.add(manifestDigest) })
    return seed.infohash
  }

  /** Joins or leaves a torrent, depending on whether its files may leave now; runs again after a change made meanwhile. */
  #settle(infohash: string): Promise<void> {
    return this.#turns.run(infohash, undefined, async () => {
      const origin = this.#origins.get(infohash)
      if (origin === undefined || this.#closed) return
      if (!this.#pulls.has(infohash) && (await this.#mayGive(origin))) await (await this.#joined()).add(origin.seed)
      else await this.#seeds?.remove(infohash)
    })
  }

  /** None of a torrent's artifacts is withheld, and one is needed. */
  async #mayGive({ manifests }: TorrentArtifacts): Promise<boolean> {
    const { artifacts, needed, sharing } = this.#deps
    let isNeeded = false
    for (const manifest of manifests) {
      const standing = await artifacts.standing(manifest)
      if (standing === undefined) manifests.delete(manifest)
      else if (heldBackReason(standing, sharing) !== undefined) return false
      else isNeeded ||= await needed.isGiven(manifest)
    }
    return isNeeded
  }

  async #joined(): Promise<V1Seeds> {
    const { store, log, swarm, documents } = this.#deps
    this.#listening = await swarm.get()
    this.#seeds ??= new V1Seeds(store, this.#listening, log, documents.parse)
    return this.#seeds
  }
}
