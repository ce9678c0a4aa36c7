import { type Clock, systemClock } from '@svc/internal-clock'
import { Gate, type Rank, type Release } from '@svc/internal-concurrency'

/** How many requests a host gets at once. */
export interface PaceLimits {
  /** While nothing is known of the host. Default 4. */
  readonly first?: number
  readonly most: number
}

const FIRST = 4
/** Time over which the rate of a number of requests is measured, at least. */
const LOOK_MS = 500
/** Reports of bytes, for each request, without which a rate says nothing. */
const LOOK_REPORTS = 2
/** The part of the places that may be free, over a measurement, without spoiling it. */
const FREE_PART = 0.1
/** An answer counts as at least so many bytes: who fetches small ones waits for their heads. */
const ANSWER_BYTES = 256 << 10
/** Requests that were added pay if each brings this part of what the others brought on average. */
const PAYING_PART = 0.25
/** Requests that were taken away did harm if the others bring so many times what all brought. */
const BETTER = 1.1
/** After a trial that failed; twice as long after each one more. */
const TRIAL_PAUSE_MS = 10_000
const MAX_TRIAL_PAUSE_MS = 300_000
/** Who redirects names hosts: the longest unused are forgotten. */
const MAX_HOSTS = 64

/** A request that was stopped since its host is faster with fewer. It says nothing about the range. */
class CutError extends Error {
  override readonly name = 'CutError'
}

interface HostPlace {
  readonly release: Release
  readonly turn: HostTurn
}

/** A number of requests that is tried: what was before. */
interface Trial {
  readonly from: number
  /** Bytes per millisecond. */
  readonly rate: number
}

/**
 * How many requests one host gets at once, as it bears them. The number doubles while that pays, then grows by one now and then. It falls
 * back where more brought no more, and where fewer bring more; a refusal takes its place with it, but at most half of the places in one
 * measurement. Rates are measured only while all places are taken.
 *
 * Invariant: at least one place.
 */
class HostPace {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #most: number
  readonly #gate: Gate
  /** From the oldest to the youngest. */
  readonly #places = new Set<HostPlace>()
  #width: number
  #trial: Trial | undefined
  #doubles = true
  /** The next trial is of fewer. */
  #triesFewer = false
  /** Bytes per millisecond, at this width. */
  #rate: number | undefined
  #nextTrialMs = 0
  #trialPauseMs = TRIAL_PAUSE_MS
  /** A refusal takes no more before `untilMs`. */
  #least = { width: 1, untilMs: 0 }
  #look = { sinceMs: 0, bytes: 0, reports: 0, freeMs: 0 }
  /** When the number of places taken last changed. */
  #countedMs = 0

  constructor({ first = FIRST, most }: PaceLimits, clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#most = most
    this.#width = Math.max(1, Math.min(first, most))
    this.#gate = new Gate(this.#width)
  }

  get isIdle(): boolean {
    return this.#gate.idle
  }

  async enter(turn: HostTurn, signal: AbortSignal, rank: Rank | undefined): Promise<HostPlace> {
    const release = await this.#gate.enter(signal, rank)
    const place = { release, turn }
    this.#count()
    if (this.#places.size === 0) {
      this.#unused()
      this.#begin()
    }
    this.#places.add(place)
    return place
  }

  leave(place: HostPlace): void {
    this.#count()
    this.#places.delete(place)
    place.release()
  }

  took(bytes: number): void {
    this.#look.bytes += bytes
    this.#look.reports++
    this.#judge()
  }

  answered(bytes: number): void {
    this.#look.bytes += Math.max(0, ANSWER_BYTES - bytes)
    this.#judge()
  }

  /** Gives up a place that brought a refusal. @param waitMs how long the host asked to be left alone */
  refused(place: HostPlace, waitMs: number): void {
    this.#count()
    this.#places.delete(place)
    const nowMs = this.#clock.monotonic()
    const isFirst = nowMs >= this.#least.untilMs
    // a host that refuses its only request does not say that this is too many
    const grows = isFirst && this.#width > 1
    if (isFirst) this.#least = { width: Math.ceil(this.#width / 2), untilMs: nowMs + LOOK_MS }
    this.#trial = undefined
    this.#doubles = false
    this.#resize(Math.min(this.#width, Math.max(this.#least.width, this.#places.size)))
    this.#wait(Math.min(waitMs, MAX_TRIAL_PAUSE_MS), grows)
    this.#begin()
    place.release()
  }

  /** Adds the time for which places were free. */
  #count(): void {
    const nowMs = this.#clock.monotonic()
    this.#look.freeMs += Math.max(0, this.#width - this.#places.size) * (nowMs - this.#countedMs)
    this.#countedMs = nowMs
  }

  #begin(): void {
    const sinceMs = this.#clock.monotonic()
    this.#look = { sinceMs, bytes: 0, reports: 0, freeMs: 0 }
    this.#countedMs = sinceMs
  }

  #judge(): void {
    const nowMs = this.#clock.monotonic()
    const tookMs = nowMs - this.#look.sinceMs
    if (tookMs < LOOK_MS) return
    this.#count()
    const { bytes, reports, freeMs } = this.#look
    const rate = bytes / tookMs
    if (freeMs > FREE_PART * this.#width * tookMs) this.#unused()
    else if (this.#trial !== undefined && rate < this.#trial.rate / 2) this.#back(this.#trial)
    else if (reports < LOOK_REPORTS * this.#width) return
    else if (this.#trial === undefined) this.#measured(rate)
    else if (pays(this.#trial, this.#width, rate)) this.#keep(this.#trial, rate)
    // still too many, perhaps
    else if (1 < this.#width && this.#width < this.#trial.from && rate >= this.#trial.rate / BETTER)
      this.#resize(half(this.#width))
    else this.#back(this.#trial)
    this.#begin()
  }

  /** There is not enough to do for a measurement. */
  #unused(): void {
    if (this.#trial !== undefined) this.#resize(this.#trial.from)
    this.#trial = undefined
  }

  #measured(rate: number): void {
    // perhaps it bears fewer than before
    if (this.#rate !== undefined && rate < this.#rate / 2) this.#triesFewer = true
    this.#rate = rate
    this.#try(rate)
  }

  #keep({ from }: Trial, rate: number): void {
    this.#trial = undefined
    this.#rate = rate
    this.#triesFewer = this.#width < from
    this.#trialPauseMs = TRIAL_PAUSE_MS
    this.#nextTrialMs = 0
    this.#try(rate)
  }

  #back({ from, rate }: Trial): void {
    const wasMore = this.#width > from
    if (wasMore) {
      this.#triesFewer = this.#doubles
      this.#doubles = false
      this.#wait(0, true)
    }
    this.#trial = undefined
    this.#rate = rate
    this.#resize(from)
  }

  #try(rate: number): void {
    const from = this.#width
    if (this.#triesFewer && from > 1) this.#resize(half(from))
    else if (from < this.#most && this.#gate.waiting > 0 && this.#clock.monotonic() >= this.#nextTrialMs)
      this.#resize(this.#doubles ? Math.min(this.#most, 2 * from) : from + 1)
    this.#triesFewer = false
    if (this.#width !== from) this.#trial = { from, rate }
  }

  #wait(atLeastMs: number, grows: boolean): void {
    const untilMs = this.#clock.monotonic() + Math.max(this.#trialPauseMs, atLeastMs)
    this.#nextTrialMs = Math.max(this.#nextTrialMs, untilMs)
    if (grows) this.#trialPauseMs = Math.min(2 * this.#trialPauseMs, MAX_TRIAL_PAUSE_MS)
  }

  /** Stops the youngest requests beyond a smaller width: they have brought the least. */
  #resize(width: number): void {
    this.#count()
    this.#width = width
    this.#gate.resize(width)
    let over = this.#places.size - width
    for (const { turn } of [...this.#places].reverse()) if (over > 0 && turn.cut()) over--
  }
}

const half = (width: number): number => Math.floor(width / 2)

const pays = ({ from, rate: before }: Trial, width: number, rate: number): boolean =>
  width > from ? rate - before >= (PAYING_PART * before * (width - from)) / from : rate >= BETTER * before

/** What is known of the hosts that requests go to: how many each bears at once. Shared by all who ask them. */
export class Paces {
  readonly #limits: PaceLimits
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #hosts = new Map<string, HostPace>()

  constructor(limits: PaceLimits, clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#limits = limits
    this.#clock = clock
  }

  /** For one request. @param rank among those that wait for the same host */
  turn(rank?: Rank): HostTurn {
    return new HostTurn((host) => this.#of(host), rank)
  }

  #of(host: string): HostPace {
    const known = this.#hosts.get(host) ?? new HostPace(this.#limits, this.#clock)
    this.#hosts.delete(host)
    this.#hosts.set(host, known)
    for (const [name, pace] of this.#hosts) {
      if (this.#hosts.size <= MAX_HOSTS) break
      if (pace !== known && pace.isIdle) this.#hosts.delete(name)
    }
    return known
  }
}

/** A request's place at the host that it asks, one host after the other. Whoever has it calls {@link end}. */
export class HostTurn {
  readonly #paceOf: (host: string) => HostPace
  readonly #rank: Rank | undefined
  readonly #cut = new AbortController()
  #at: { readonly pace: HostPace; readonly place: HostPlace } | undefined
  #tookBytes = 0
  /** It would have to start again at the first byte. */
  keepsOn = false

  constructor(paceOf: (host: string) => HostPace, rank: Rank | undefined) {
    this.#paceOf = paceOf
    this.#rank = rank
  }

  /** Aborted when the place is wanted back: try again. */
  get signal(): AbortSignal {
    return this.#cut.signal
  }

  /** Waits for a place, and gives up the one at another host. @throws on abort the signal's reason */
  async at(host: string, signal: AbortSignal): Promise<void> {
    const pace = this.#paceOf(host)
    if (this.#at?.pace === pace) return
    this.end('failed')
    this.#at = { pace, place: await pace.enter(this, signal, this.#rank) }
  }

  took(bytes: number): void {
    this.#tookBytes += bytes
    this.#at?.pace.took(bytes)
  }

  /** @param refusal the host refuses requests for now, and how long, if it said so; one that brought bytes was none */
  end(outcome: 'done' | 'failed' | { readonly refusedMs: number }): void {
    if (this.#at === undefined) return
    const { pace, place } = this.#at
    this.#at = undefined
    if (typeof outcome === 'object' && this.#tookBytes === 0) return pace.refused(place, outcome.refusedMs)
    pace.leave(place)
    if (outcome === 'done') pace.answered(this.#tookBytes)
  }

  /** False if it is not to be stopped. */
  cut(): boolean {
    if (this.keepsOn) return false
    this.#cut.abort(new CutError('the host is faster with fewer requests'))
    return true
  }
}
