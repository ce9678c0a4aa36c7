import { KeyedLock } from '@svc/internal-concurrency'
import { heldBackReason, type Library, pinKey, type SwarmHints, verdictOf } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { type ArtifactFetchContext, type FetchRequest, fetchArtifact } from './artifact-fetch.ts'
import { requireRoot } from './artifact-storage.ts'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { SwarmSettings } from './settings.ts'
import { isWhole } from './space.ts'

/** A fetch without any source, and without a way to find one, fails after this time. */
const LONELY_TIMEOUT_MS = 15_000

export interface FetchesDeps extends Pick<Library, 'store' | 'leafLayers' | 'artifacts' | 'holdings' | 'clock'> {
  readonly swarm: ArtifactSwarm
  readonly settings: SwarmSettings
}

/** How a fetch is visible to others. */
type Exposure = Pick<FetchRequest, 'upload' | 'quiet'>
type Wanted = Omit<FetchRequest, keyof Exposure | 'checksRoots'>

/** The time in which a fetch's exposure stays the same. */
interface Round {
  /** Absent until it is known. */
  exposure?: Exposure
  readonly stop: AbortController
  readonly over: Promise<void>
}

/**
 * Fetches of artifacts: one at a time per artifact, so that a second one finds most of it in the store. Each is visible
 * as far as the artifact's state allows; after a change it leaves, and joins again accordingly.
 */
export class Fetches {
  readonly turns = new KeyedLock<Sha256Digest>()
  readonly #deps: FetchesDeps
  readonly #underWay = new Map<Sha256Digest, Round>()

  constructor(deps: FetchesDeps) {
    this.#deps = deps
  }

  /** @returns warnings. @throws as {@link fetchArtifact} */
  run(
    request: Wanted,
    { signal, onProgress }: Pick<ArtifactFetchContext, 'signal' | 'onProgress'>
  ): Promise<readonly string[]> {
    const { store, leafLayers, artifacts, holdings, swarm } = this.#deps
    const { torrent, heldManifest } = request
    const { manifestDigest } = torrent
    return this.turns.run(manifestDigest, signal, async () => {
      const checksRoots = await this.#prove(manifestDigest)
      let warnings: readonly string[] = []
      if (!(await isWhole(store, torrent)))
        warnings = await this.#fetch({ ...request, checksRoots }, signal, onProgress)
      else if (checksRoots) for (const file of torrent.files) await requireRoot(file, leafLayers, signal)
      if (heldManifest !== undefined) {
        await swarm.leave(manifestDigest)
        return warnings
      }
      // another import may have brought bytes meanwhile
      await this.#prove(manifestDigest)
      await artifacts.complete(manifestDigest)
      await holdings.arrivals.settleFrom(
        pinKey(manifestDigest),
        torrent.files.map(({ digest }) => digest)
      )
      return warnings
    })
  }

  /**
   * The swarm was not seen to give bytes that came from another import (spec add.37).
   * @returns false for an artifact that was complete before: its bytes are its own
   */
  async #prove(manifestDigest: Sha256Digest): Promise<boolean> {
    const { artifacts, holdings } = this.#deps
    if ((await artifacts.read(manifestDigest))?.incomplete !== true) return false
    const unproven = await holdings.unprovenOf(manifestDigest)
    if (unproven.length > 0) await artifacts.tookUnproven(manifestDigest, unproven)
    return true
  }

  /** After a change of provenance or settings. Resolves when a running fetch has left the swarm. */
  async changed(manifestDigest: Sha256Digest): Promise<void> {
    const round = this.#underWay.get(manifestDigest)
    if (round === undefined) return
    const { upload, quiet } = await this.#exposure(manifestDigest)
    if (round.exposure?.upload === upload && round.exposure.quiet === quiet) return
    round.stop.abort()
    await this.#deps.swarm.leave(manifestDigest)
    await round.over
  }

  /** After a change that concerns all of them. */
  async allChanged(): Promise<void> {
    await Promise.all([...this.#underWay.keys()].map((each) => this.changed(each)))
  }

  async #fetch(
    request: Omit<FetchRequest, keyof Exposure>,
    signal: AbortSignal,
    onProgress: ArtifactFetchContext['onProgress']
  ): Promise<readonly string[]> {
    const { clock, swarm, settings } = this.#deps
    const { manifestDigest } = request.torrent
    let before = { blobsDone: 0, verifiedBytes: 0 }
    for (;;) {
      const stop = new AbortController()
      const over = Promise.withResolvers<void>()
      // before the state is read, so that later changes are noticed
      const round: Round = { stop, over: over.promise }
      this.#underWay.set(manifestDigest, round)
      let done = before
      try {
        // what came here since the last round is read in place from now on
        await this.#prove(manifestDigest)
        round.exposure = await this.#exposure(manifestDigest)
        stop.signal.throwIfAborted()
        return await fetchArtifact(
          swarm,
          { ...request, ...round.exposure },
          {
            signal: AbortSignal.any([signal, stop.signal]),
            onProgress: (now) => {
              done = {
                blobsDone: before.blobsDone + now.blobsDone,
                verifiedBytes: before.verifiedBytes + now.verifiedBytes
              }
              onProgress({ ...now, ...done, bytesDone: before.verifiedBytes + now.bytesDone })
            },
            clock,
            fillTimeoutMs: settings.fillTimeoutMs,
            lonelyTimeoutMs: lonelyTimeoutMs(settings, { ...round.exposure, hints: request.hints })
          }
        )
      } catch (error) {
        signal.throwIfAborted()
        if (!stop.signal.aborted) throw error
        before = done
      } finally {
        this.#underWay.delete(manifestDigest)
        over.resolve()
      }
    }
  }

  async #exposure(manifestDigest: Sha256Digest): Promise<Required<Exposure>> {
    const { artifacts, settings } = this.#deps
    const state = await artifacts.standing(manifestDigest)
    return {
      upload: heldBackReason(state, settings) === undefined,
      quiet: !verdictOf(state, 'swarm', settings).given
    }
  }
}

/** How long a fetch waits without any source; undefined if a tracker or the DHT may still find one. */
export function lonelyTimeoutMs(
  { dht, trackers, fillTimeoutMs }: SwarmSettings,
  { quiet = false, hints }: { readonly quiet?: boolean; readonly hints: Pick<SwarmHints, 'trackers'> }
): number | undefined {
  const canBeTold = !quiet && (dht || hints.trackers.length > 0 || trackers.length > 0)
  return canBeTold ? undefined : Math.min(LONELY_TIMEOUT_MS, fillTimeoutMs)
}
