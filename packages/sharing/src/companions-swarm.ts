import { KeyedLock } from '@svc/internal-concurrency'
import { type ArtifactState, heldBackReason, type Library } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { SwarmSettings } from './settings.ts'

export interface CompanionsSwarmDeps extends Pick<Library, 'artifacts' | 'log'> {
  readonly torrents: Pick<ArtifactTorrents, 'givenCompanions' | 'ofCompanions' | 'layersOf'>
  /** That of the artifacts. */
  readonly swarm: Pick<ArtifactSwarm, 'joined'>
  /** That of the companions: one torrent for each document of them. */
  readonly beside: ArtifactSwarm
  /** They are being fetched: {@link CompanionsSwarm.fetched} follows. */
  readonly isFetching: (digest: Sha256Digest) => boolean
  readonly settings: Pick<SwarmSettings, 'seed' | 'seedRestricted'>
}

/**
 * Announces companions with the artifacts that have them, and with nothing else (spec swarm.20): a document of them is seeded exactly
 * while an artifact is seeded that gives it.
 */
export class CompanionsSwarm {
  readonly #deps: CompanionsSwarmDeps
  readonly #turns = new KeyedLock<Sha256Digest>()
  readonly #stop = new AbortController()
  /** The companions of each seeded artifact that may leave. */
  readonly #given = new Map<Sha256Digest, ReadonlySet<Sha256Digest>>()

  constructor(deps: CompanionsSwarmDeps) {
    this.#deps = deps
    // an import may bring other companions, under the same name or another
    deps.artifacts.listen((manifestDigest) => {
      if (this.#given.has(manifestDigest)) void this.follow(manifestDigest)
    })
  }

  /** An artifact began to be seeded, or left, or has other companions. Never rejects. */
  async follow(manifestDigest: Sha256Digest): Promise<void> {
    try {
      await this.#turns.run(manifestDigest, this.#stop.signal, () => this.#follow(manifestDigest))
    } catch (error) {
      if (!this.#stop.signal.aborted)
        this.#deps.log.error({ err: error, manifest: manifestDigest }, 'companions cannot be seeded')
    }
  }

  /** After a fetch of companions: seeds those that could not be seeded meanwhile. */
  fetched(digest: Sha256Digest): void {
    for (const [manifestDigest, given] of this.#given) if (given.has(digest)) void this.follow(manifestDigest)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#deps.beside.close()
  }

  async #follow(manifestDigest: Sha256Digest): Promise<void> {
    const isSeeded = this.#deps.swarm.joined.get(manifestDigest)?.seeding === true
    const state = await this.#seeded(manifestDigest)
    const torrents = new Map<Sha256Digest, ArtifactTorrent>()
    for (const digest of new Set(Object.values(state?.companions ?? {}))) {
      const torrent = await this.torrentOf(digest, state!)
      if (torrent !== undefined) torrents.set(torrent.manifestDigest, torrent)
    }
    const before = this.#given.get(manifestDigest) ?? new Set()
    if (isSeeded) this.#given.set(manifestDigest, new Set(torrents.keys()))
    else this.#given.delete(manifestDigest)
    for (const digest of new Set([...before, ...torrents.keys()]))
      await this.#turns.run(digest, this.#stop.signal, () => this.#settle(digest, torrents.get(digest), manifestDigest))
  }

  /** Undefined for an artifact that is not seeded, or must leave the swarm but has not yet. */
  async #seeded(manifestDigest: Sha256Digest): Promise<ArtifactState | undefined> {
    const { artifacts, swarm, settings } = this.#deps
    const standing = await artifacts.standing(manifestDigest)
    if (swarm.joined.get(manifestDigest)?.seeding !== true || heldBackReason(standing, settings) !== undefined)
      return undefined
    return standing === 'damaged' ? undefined : standing
  }

  async #settle(digest: Sha256Digest, torrent: ArtifactTorrent | undefined, manifestDigest: Sha256Digest) {
    const { beside, torrents, isFetching } = this.#deps
    if (!this.#isGiven(digest)) return beside.leave(digest)
    if (torrent === undefined || beside.joined.has(digest) || isFetching(digest)) return
    const layers = await torrents.layersOf(torrent, undefined, this.#stop.signal)
    const state = await this.#seeded(manifestDigest)
    this.#stop.signal.throwIfAborted()
    if (state !== undefined) await beside.join(torrent, { layers, hints: state.hints, seedOnly: true, upload: true })
  }

  #isGiven(digest: Sha256Digest): boolean {
    for (const given of this.#given.values()) if (given.has(digest)) return true
    return false
  }

  /** The companions that may leave, if all of these are here; undefined also if one is damaged. */
  async torrentOf(digest: Sha256Digest, state: ArtifactState): Promise<ArtifactTorrent | undefined> {
    const { torrents, beside, log } = this.#deps
    try {
      const given = await torrents.givenCompanions(digest, state)
      return (
        given && (beside.joined.get(given.digest)?.torrent ?? (await torrents.ofCompanions(given, this.#stop.signal)))
      )
    } catch (error) {
      this.#stop.signal.throwIfAborted()
      log.error({ err: error, manifest: state.manifestDigest }, 'companions are damaged, and not seeded')
      return undefined
    }
  }
}
