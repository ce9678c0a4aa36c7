import { KeyedLock } from '@svc/internal-concurrency'
import type { ArtifactTorrent } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactState, Artifacts } from '../library/artifacts.ts'
import type { Log } from '../log.ts'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'

export interface CompanionsSwarmDeps {
  readonly artifacts: Pick<Artifacts, 'standing' | 'listen'>
  readonly torrents: Pick<ArtifactTorrents, 'givenCompanions' | 'ofCompanions' | 'layersOf'>
  /** That of the artifacts. */
  readonly swarm: Pick<ArtifactSwarm, 'joined'>
  /** That of the companions: one torrent for each document of them. */
  readonly beside: ArtifactSwarm
  readonly log: Log
}

/**
 * Announces companions with the artifacts that have them, and with nothing else (spec swarm.20): a document of them is seeded exactly
 * while an artifact is seeded that gives it.
 */
export class CompanionsSwarm {
  readonly #deps: CompanionsSwarmDeps
  readonly #turns = new KeyedLock<Sha256Digest>()
  readonly #stop = new AbortController()
  /** What each seeded artifact gives. */
  readonly #given = new Map<Sha256Digest, ReadonlySet<Sha256Digest>>()

  constructor(deps: CompanionsSwarmDeps) {
    this.#deps = deps
    // an import brings other ones perhaps, under another name or the same
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

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#deps.beside.close()
  }

  async #follow(manifestDigest: Sha256Digest): Promise<void> {
    const { artifacts, swarm } = this.#deps
    const standing = await artifacts.standing(manifestDigest)
    const isSeeded = swarm.joined.get(manifestDigest)?.seeding === true
    const state = isSeeded && standing !== 'damaged' ? standing : undefined
    const torrents = new Map<Sha256Digest, ArtifactTorrent>()
    for (const digest of new Set(Object.values(state?.companions ?? {}))) {
      const torrent = await this.torrentOf(digest, state!)
      if (torrent !== undefined) torrents.set(torrent.manifestDigest, torrent)
    }
    const before = this.#given.get(manifestDigest) ?? new Set()
    if (isSeeded) this.#given.set(manifestDigest, new Set(torrents.keys()))
    else this.#given.delete(manifestDigest)
    for (const digest of new Set([...before, ...torrents.keys()]))
      await this.#turns.run(digest, this.#stop.signal, () => this.#settle(digest, torrents.get(digest), state))
  }

  async #settle(digest: Sha256Digest, torrent: ArtifactTorrent | undefined, state: ArtifactState | undefined) {
    const { beside, torrents } = this.#deps
    if (!this.#isGiven(digest)) return beside.leave(digest)
    if (torrent === undefined || state === undefined || beside.joined.has(digest)) return
    const layers = await torrents.layersOf(torrent, undefined, this.#stop.signal)
    this.#stop.signal.throwIfAborted()
    await beside.join(torrent, { layers, hints: state.hints, seedOnly: true, upload: true })
  }

  #isGiven(digest: Sha256Digest): boolean {
    for (const given of this.#given.values()) if (given.has(digest)) return true
    return false
  }

  /** What others may have of companions, if all of it is here; undefined also where something is damaged. */
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
