import type { Timer } from '@svc/internal-clock'
import {
  type ArtifactState,
  type EvictionCandidate,
  isEvictable,
  keptFact,
  type Library,
  LibraryError,
  noSpace,
  planEviction,
  spokenBytes
} from '@svc/internal-state'
import { formatShortRef, type Sha256Digest } from '@svc/ref'
import { type Copies, newestMs } from './copies.ts'
import type { Evictions, Freed } from './evict.ts'
import type { Work } from './work.ts'

const HOUR_MS = 3600_000
/** Limit of the sources asked for one decision. */
const MAX_ASKED = 64
/** How often a plan is made: a model in it may come into use meanwhile. */
const MAX_ROUNDS = 4

/** How large the store may become. */
interface RoomLimits {
  readonly maxBytes?: number | undefined
  /** Free on its disk. */
  readonly minFreeBytes: number
}

export interface RoomDeps
  extends Pick<Library, 'clock' | 'store' | 'artifacts' | 'documents' | 'repos' | 'needed' | 'usage' | 'log'> {
  readonly limits: RoomLimits
  /** Starts an eviction for the quota, which nobody waits for. @throws if it is refused now */
  readonly inBackground: (evict: (work: Pick<Work, 'signal'>) => Promise<Evicted>) => void
}

export interface MakeRoom {
  /** Whether the owner agreed to evictions. */
  readonly mayEvict: boolean
  readonly signal: AbortSignal
}

export interface Evicted extends Freed {
  readonly evicted: Sha256Digest[]
}

interface Evictors {
  readonly evictions: Pick<Evictions, 'evict' | 'keptBy' | 'views' | 'limits'>
  readonly copies: Pick<Copies, 'prove'>
}

/** Keeps the store within its quota, and makes room for imports. */
export class Room {
  readonly #deps: RoomDeps
  #evictors: Evictors | undefined
  #timer: Timer | undefined

  constructor(deps: RoomDeps) {
    this.#deps = deps
  }

  /** Sets the means to ask sources and to evict, and enforces the quota from now on, until `close`. */
  open(evictors: Evictors): void {
    this.#evictors = evictors
    const { clock, limits } = this.#deps
    if (limits.maxBytes !== undefined || limits.minFreeBytes > 0)
      this.#timer = clock.every(HOUR_MS, () => void this.settle())
  }

  close(): void {
    this.#timer?.cancel()
  }

  /** How much space `neededBytes` more would lack; not positive if they fit. @throws CasError `E_IO` */
  async shortBytes(neededBytes: number): Promise<number> {
    const { store, limits } = this.#deps
    const { maxBytes, minFreeBytes } = limits
    const onDisk = neededBytes + minFreeBytes - (await store.freeBytes())
    if (maxBytes === undefined) return onDisk
    let usedBytes = 0
    for await (const { sizeBytes } of store.list()) usedBytes += sizeBytes
    return Math.max(onDisk, usedBytes + neededBytes - maxBytes)
  }

  /**
   * Makes sure that `neededBytes` more fit: evicts artifacts that can be fetched again, if the owner agreed.
   * @throws LibraryError `E_NO_SPACE`, with the evictable references as candidates if these are enough
   */
  async require(neededBytes: number, { mayEvict, signal }: MakeRoom): Promise<Evicted> {
    const evicted: Sha256Digest[] = []
    const done = { blobs: 0, bytes: 0, evicted }
    for (let round = 0; ; round++) {
      const shortBytes = await this.shortBytes(neededBytes)
      if (shortBytes <= 0) return done
      const evictors = this.#evictors
      const plan = evictors && round < MAX_ROUNDS ? await this.#plan(evictors, shortBytes, signal) : undefined
      const going = plan?.evicted ?? []
      // an import would not fit anyway, but a quota is better kept in part than not at all
      if (going.length === 0 || (neededBytes > 0 && plan!.freedBytes < shortBytes))
        throw await this.#noSpace(neededBytes)
      if (!mayEvict) throw await this.#wouldGo(neededBytes, going)
      for (const manifest of going) {
        const freed = await evictors!.evictions.evict(manifest, { force: false, signal }).catch(ofKept)
        if (freed === undefined) continue
        done.blobs += freed.blobs
        done.bytes += freed.bytes
        evicted.push(manifest)
        this.#deps.log.info({ manifest, bytes: freed.bytes }, 'evicted to make room')
      }
    }
  }

  /** Evicts models for the quota, in the background. If too few are evictable, it logs that and does not fail. */
  async settle(): Promise<void> {
    const { inBackground, log } = this.#deps
    try {
      if ((await this.shortBytes(0)) <= 0) return
      inBackground(({ signal }) => this.require(0, { mayEvict: true, signal }))
    } catch (error) {
      log.warn({ err: error }, 'the quota of the store cannot be enforced now')
    }
  }

  /** The models to evict, least recently used first. Sources are asked until these are enough. */
  async #plan(
    evictors: Evictors,
    shortBytes: number,
    signal: AbortSignal
  ): Promise<ReturnType<typeof planEviction> | undefined> {
    const { limits } = evictors.evictions
    const found = await this.#candidates(evictors)
    const oldest = found.filter(({ kept, blobs }) => kept === undefined && blobs.length > 0)
    oldest.sort((a, b) => a.usedMs - b.usedMs)
    // models not reached yet stay, and so do the blobs that they share
    const decided = new Map<Sha256Digest, EvictionCandidate>(
      found.map((each) => [each.manifest, { ...each, kept: each.kept ?? 'in-use' }])
    )
    let asked = 0
    let plan: ReturnType<typeof planEviction> | undefined
    for (const each of oldest) {
      let { provenMs } = each
      if (keptFact(each, limits) === 'unproven' && asked++ < MAX_ASKED)
        provenMs = (await evictors.copies.prove(each.manifest, signal)).provenMs
      decided.set(each.manifest, { ...each, provenMs })
      plan = planEviction([...decided.values()], shortBytes, { ...limits, nowMs: this.#deps.clock.now() })
      if (plan.freedBytes >= shortBytes) break
    }
    return plan
  }

  async #candidates({ evictions }: Evictors): Promise<EvictionCandidate[]> {
    const { store, artifacts, documents, needed, usage } = this.#deps
    const here = new Map<Sha256Digest, number>()
    for await (const { digest, sizeBytes } of store.list()) here.set(digest, sizeBytes)
    const views = await evictions.views()
    const candidates: EvictionCandidate[] = []
    for await (const state of artifacts.list(() => undefined, { cached: true })) {
      const { manifestDigest: manifest } = state
      const kept = (await evictions.keptBy(manifest, { views }))?.fact
      if ((state.away === true && kept !== 'viewed') || !(await needed.has(manifest))) continue
      const { files = [] } = (await documents.manifest(manifest, { scan: true })) ?? {}
      const blobs = files.filter((file) => isEvictable(file) && here.has(file.digest))
      candidates.push({
        manifest,
        blobs: blobs.map(({ digest }) => ({ digest, sizeBytes: here.get(digest)! })),
        usedMs: usedMsOf(state, usage.lastUsedAt(manifest)),
        kept,
        provenMs: newestMs(state.copies)
      })
    }
    return candidates
  }

  async #noSpace(neededBytes: number): Promise<LibraryError> {
    const { store, limits } = this.#deps
    const { maxBytes, minFreeBytes } = limits
    const freeBytes = await store.freeBytes()
    if (neededBytes > freeBytes) return noSpace(neededBytes, freeBytes)
    const limit =
      neededBytes + minFreeBytes > freeBytes
        ? `the limit of ${minFreeBytes} bytes that stay free, with ${spokenBytes(freeBytes)} free on the disk`
        : `the limit of ${maxBytes} bytes for the store`
    const what = neededBytes === 0 ? 'the store violates' : `${spokenBytes(neededBytes)} more would violate`
    return new LibraryError('E_NO_SPACE', `${what} ${limit}, and no more can be evicted`, {
      advice: { to: 'free-space' }
    })
  }

  async #wouldGo(neededBytes: number, going: readonly Sha256Digest[]): Promise<LibraryError> {
    const names = await this.#names()
    const candidates = going.map((manifest) => names.get(manifest) ?? manifest)
    return new LibraryError(
      'E_NO_SPACE',
      `${spokenBytes(neededBytes)} do not fit; ${candidates.join(', ')} can be fetched again: evicting them would make room`,
      { candidates, advice: { to: 'agree-to-evict', refs: candidates } }
    )
  }

  async #names(): Promise<ReadonlyMap<Sha256Digest, string>> {
    const { repos, documents } = this.#deps
    const names = new Map<Sha256Digest, string>()
    for await (const { ns, name, state } of repos.list(() => undefined)) {
      // the present ones first, then the older versions that upgrades kept
      for (const [tag, index] of [[undefined, state.index] as const, ...state.tags]) {
        if (index === undefined) continue
        const { members } = await documents.index(index, { scan: true }).catch(() => ({ members: [] }))
        for (const { manifest, quant } of members)
          if (!names.has(manifest)) names.set(manifest, formatShortRef({ ns, name, quant, ...(tag && { tag }) }))
      }
    }
    return names
  }
}

/** Swallows the error for a model that something needs by now. */
function ofKept(error: unknown): undefined {
  if (!(error instanceof LibraryError) || error.code !== 'E_KEPT') throw error
}

/** Models that only a mirror's clients fetched count as never used: they go first, so that strangers cost the owner no model. */
const usedMsOf = ({ importedAt = '', source }: ArtifactState, lastUsedAt = ''): number =>
  Math.max(
    0,
    ...[source.onDemand === true ? '' : importedAt, lastUsedAt]
      .map((at) => Date.parse(at))
      .filter((ms) => !Number.isNaN(ms))
  )
