import { forEachLimited } from '@svc/internal-concurrency'
import { type ArtifactState, heldBackReason, type Library, type Needed } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { SwarmSettings } from './settings.ts'
import { absentOf } from './space.ts'
import type { HeldBack, Verifying } from './status.ts'
import { type SeedCandidate, verifySeeds } from './verify-seeds.ts'

/** The socket waits for the start-up verification no longer than this (spec swarm.6). */
const START_LIMIT_MS = 10_000
/** Joining consists of waiting for many small reads. */
const PARALLEL_JOINS = 16

export interface ArtifactSeedingDeps extends Pick<Library, 'store' | 'artifacts' | 'log' | 'clock' | 'advise'> {
  readonly needed: Pick<Needed, 'isGiven'>
  readonly torrents: ArtifactTorrents
  readonly swarm: ArtifactSwarm
  readonly settings: SwarmSettings
  /** Default {@link START_LIMIT_MS}. */
  readonly startLimitMs?: number | undefined
}

/**
 * Decides which artifacts are announced: the complete ones, re-hashed at the start unless the owner disabled that;
 * restricted ones are held back (spec swarm.4 to swarm.6).
 */
export class ArtifactSeeding {
  readonly #deps: ArtifactSeedingDeps
  readonly #stop = new AbortController()
  readonly #heldBack = new Map<Sha256Digest, HeldBack>()
  /** Artifacts that the start still has to re-hash: only the start joins them. */
  readonly #unverified = new Set<Sha256Digest>()
  /** Running joins: concurrent callers wait for the same one, and an artifact that becomes withheld leaves after it. */
  readonly #joins = new Map<Sha256Digest, Promise<void>>()
  /** Resolves when the start has listed the artifacts to re-hash. */
  #listed: Promise<void> = Promise.resolve()
  #progress: Verifying | undefined
  #background: Promise<void> = Promise.resolve()

  constructor(deps: ArtifactSeedingDeps) {
    this.#deps = deps
  }

  get heldBack(): readonly HeldBack[] {
    return [...this.#heldBack.values()]
  }

  get verifying(): Verifying | undefined {
    return this.#progress
  }

  /** Resolves when everything is joined, or after ten seconds; the rest continues. Failures are logged, never thrown. */
  async start(): Promise<void> {
    const { clock, settings, log } = this.#deps
    if (!settings.seed) {
      log.info({}, 'seeding is off: nothing is announced')
      return
    }
    const begun = clock.monotonic()
    this.#progress = { artifactsDone: 0, artifactsTotal: 0, bytesDone: 0, bytesTotal: 0 }
    const listed = Promise.withResolvers<void>()
    this.#listed = listed.promise
    this.#background = this.#joinAll(listed.resolve)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) log.error({ err: error }, 'the start of seeding failed')
      })
      .finally(() => {
        listed.resolve()
        this.#unverified.clear()
        this.#progress = undefined
      })
    const limit = Promise.withResolvers<void>()
    const timer = clock.after(this.#deps.startLimitMs ?? START_LIMIT_MS, limit.resolve)
    await Promise.race([this.#background, limit.promise])
    timer.cancel()
    if (this.#progress !== undefined) {
      log.info(
        { ...this.#progress, afterMs: Math.round(clock.monotonic() - begun) },
        'the verification of what is seeded continues in the background'
      )
    }
  }

  /**
   * After a change of `seed`: all seeds leave, or what is complete is re-hashed as at a start, and joins. Resolves when
   * they have left; joining continues in the background.
   */
  async changed(): Promise<void> {
    const { settings, swarm } = this.#deps
    if (settings.seed)
      void this.#background.then(() => (settings.seed && !this.#stop.signal.aborted ? this.start() : undefined))
    else
      await Promise.all([...new Set([...this.#joins.keys(), ...swarm.joined.keys()])].map((each) => this.#leave(each)))
  }

  /** The start has yet to re-hash it, and joins it if it is intact. */
  awaitsVerification(manifestDigest: Sha256Digest): boolean {
    return this.#unverified.has(manifestDigest)
  }

  /** Joins an artifact that was verified at its ingest, unless it is held back, or the start still re-hashes it. */
  async join(manifestDigest: Sha256Digest): Promise<void> {
    await this.#attempt(manifestDigest, async () => {
      await this.#listed
      if (this.#unverified.has(manifestDigest)) return
      const state = await this.#deps.artifacts.read(manifestDigest)
      const candidate = state && (await this.#candidate(state))
      if (candidate) await this.#join(candidate)
    })
  }

  /** Logs the failure of one artifact, so that the others go on. */
  async #attempt<T>(manifestDigest: Sha256Digest, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      this.#deps.log.error({ err: error, manifest: manifestDigest }, 'an artifact cannot be seeded')
      return undefined
    }
  }

  /** A fetched artifact continues as a seed, or leaves (spec swarm.8). */
  async goOnOrLeave(manifestDigest: Sha256Digest): Promise<void> {
    const { swarm } = this.#deps
    // a former seed stays one, unless the import marked it as private
    if (swarm.joined.get(manifestDigest)?.seeding === true) return this.withdraw(manifestDigest)
    if (await this.#goOn(manifestDigest)) return
    await swarm.leave(manifestDigest)
    await this.join(manifestDigest)
  }

  /** After a fetch, the artifact continues as a seed, with its connections. False if it must be joined anew, or may not be seeded. */
  async #goOn(manifestDigest: Sha256Digest): Promise<boolean> {
    const { artifacts, torrents, swarm } = this.#deps
    let isSeed = false
    await this.#attempt(manifestDigest, async () => {
      const state = await artifacts.read(manifestDigest)
      const candidate = state && (await this.#candidate(state))
      if (candidate === undefined) return
      await this.#joining(manifestDigest, async () => {
        const layers = await torrents.layersOf(candidate.torrent, candidate.state, this.#stop.signal)
        isSeed = (await this.#isShared(manifestDigest)) && (await swarm.seed(candidate.torrent, layers))
      })
    })
    return isSeed
  }

  /** After an import: an artifact that may no longer be shared leaves at once, whatever its state before. */
  async withdraw(manifestDigest: Sha256Digest): Promise<void> {
    const { artifacts, settings, log, advise } = this.#deps
    try {
      const state = await artifacts.standing(manifestDigest)
      const reason = state && heldBackReason(state, settings, advise)
      if (reason === undefined) return
      this.#heldBack.set(manifestDigest, { manifestDigest, reason })
      await this.#leave(manifestDigest)
    } catch (error) {
      log.error({ err: error, manifest: manifestDigest }, 'it is unknown whether an artifact may be seeded')
    }
  }

  /** The artifact is no longer needed: it leaves. One that is being fetched leaves when that has ended. */
  async unneeded(manifestDigest: Sha256Digest): Promise<void> {
    this.#heldBack.delete(manifestDigest)
    await this.#leave(manifestDigest)
  }

  /** A seed leaves. One that is joining may have read its state before the change: it leaves once it has joined. */
  async #leave(manifestDigest: Sha256Digest): Promise<void> {
    const { swarm } = this.#deps
    await this.#joins.get(manifestDigest)
    if (swarm.joined.get(manifestDigest)?.seeding === true) await swarm.leave(manifestDigest)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#background
  }

  async #joinAll(listed: () => void): Promise<void> {
    const { artifacts, settings, log } = this.#deps
    const states: ArtifactState[] = []
    // the needs were determined from the same files
    for await (const state of artifacts.list(
      (error) => log.error({ err: error }, 'a corrupt artifact state is left alone'),
      { cached: true }
    ))
      states.push(state)
    const candidates: SeedCandidate[] = []
    await forEachLimited(states, PARALLEL_JOINS, this.#stop.signal, async (state) => {
      const candidate = await this.#attempt(state.manifestDigest, () => this.#candidate(state))
      if (candidate) candidates.push(candidate)
    })
    if (!settings.noSeedVerify) for (const { state } of candidates) this.#unverified.add(state.manifestDigest)
    listed()
    if (settings.noSeedVerify)
      await forEachLimited(candidates, PARALLEL_JOINS, this.#stop.signal, (candidate) => this.#join(candidate))
    else await this.#verifyAndJoin(candidates)
    const seeding = [...this.#deps.swarm.joined.values()].filter((each) => each.seeding).length
    log.info({ seeding, heldBack: this.#heldBack.size }, 'seeding')
    for (const { manifestDigest, reason } of this.#heldBack.values())
      log.info({ manifest: manifestDigest, reason }, 'withheld from the swarm')
  }

  /** Undefined for an artifact that is held back or incomplete. */
  async #candidate(state: ArtifactState): Promise<SeedCandidate | undefined> {
    const { store, torrents, needed, settings, log, advise } = this.#deps
    const { manifestDigest } = state
    const reason = heldBackReason(state, settings, advise)
    if (reason !== undefined) {
      this.#heldBack.set(manifestDigest, { manifestDigest, reason })
      return undefined
    }
    this.#heldBack.delete(manifestDigest)
    // a removed artifact waits for a collection, and is not announced again
    // what is here of one that never was complete may be another's (spec add.37)
    if (state.away === true || state.incomplete === true || !(await needed.isGiven(manifestDigest))) return undefined
    const torrent = await torrents.of(manifestDigest)
    if (torrent === undefined) return undefined
    const [missing] = (await absentOf(store, torrent)).digests
    if (missing === undefined) return { state, torrent }
    log.info({ manifest: manifestDigest, missing }, 'an artifact is not complete and not seeded')
    return undefined
  }

  #verifyAndJoin(candidates: readonly SeedCandidate[]): Promise<void> {
    return verifySeeds(candidates, {
      ...this.#deps,
      signal: this.#stop.signal,
      onProgress: (progress) => {
        this.#progress = progress
      },
      onVerified: async (candidate, isSound) => {
        // a damaged one may be repaired from now on, and then joins
        this.#unverified.delete(candidate.state.manifestDigest)
        if (isSound) await this.#join(candidate)
      }
    })
  }

  #join(candidate: SeedCandidate): Promise<void> {
    return this.#joining(candidate.torrent.manifestDigest, () => this.#joinOnce(candidate))
  }

  #joining(manifestDigest: Sha256Digest, join: () => Promise<void>): Promise<void> {
    let joining = this.#joins.get(manifestDigest)
    if (joining === undefined) {
      joining = join().finally(() => this.#joins.delete(manifestDigest))
      this.#joins.set(manifestDigest, joining)
    }
    return joining
  }

  /** Whether an artifact may be shared at this moment: its owner may have changed their mind since it became a candidate. */
  async #isShared(manifestDigest: Sha256Digest): Promise<boolean> {
    const { artifacts, needed, settings } = this.#deps
    const standing = await artifacts.standing(manifestDigest)
    if (typeof standing === 'object' && standing.away === true) return false
    return heldBackReason(standing, settings) === undefined && (await needed.isGiven(manifestDigest))
  }

  async #joinOnce({ state, torrent }: SeedCandidate): Promise<void> {
    const { swarm, torrents, settings } = this.#deps
    // what peers gave has other seeds
    const firstSeed = settings.trusted.length > 0 && state.source.kind !== 'bt'
    if (this.#stop.signal.aborted || swarm.joined.has(torrent.manifestDigest)) return
    await this.#attempt(torrent.manifestDigest, async () => {
      const layers = await torrents.layersOf(torrent, state, this.#stop.signal)
      if (!(await this.#isShared(torrent.manifestDigest))) return
      await swarm.join(torrent, { layers, hints: state.hints, seedOnly: true, firstSeed, upload: true })
    })
  }
}
