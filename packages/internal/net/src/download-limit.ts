/** What a receiver takes at once, where it can choose: all that wait then get equal shares. */
export const TURN_BYTES = 65_536

/** Nobody waits for less: timers are no more exact. */
const SLACK_MS = 20
/** As much as this long brings may come at once after a pause. */
const CREDIT_MS = 100
/** Who waits looks again after this long: the limit may have changed. */
const LOOK_MS = 250

const TAKEN = 0
/** How often the limit was set. The terms of each version follow, in the place of those before the last. */
const VERSION = 1
const TERMS = 2
const WORDS = 8

/** A limit as it was set: bytes per second, and how many were allowed by a time, in µs. */
interface Terms {
  readonly rate: number
  readonly base: number
  readonly since: number
}

/** The same in all threads. */
const monotonicUs = (): number => Number(process.hrtime.bigint() / 1_000n)

/**
 * A limit of the bytes that a process receives in a second, over all of its connections. Each receiver takes what has come,
 * or what it requests, and then waits until its turn is paid for, first come first served.
 */
export interface DownloadLimit {
  /** For {@link SharedDownloadLimit} in a thread. */
  readonly memory: SharedArrayBuffer
  readonly limited: boolean
  /** @returns the turn, for {@link waitMs} */
  take(bytes: number): number
  /** How long to wait before asking again; 0: the turn is paid for. */
  waitMs(turn: number): number
}

/** The state is in shared memory, so that threads have the same limit. */
export class SharedDownloadLimit implements DownloadLimit {
  readonly memory: SharedArrayBuffer
  /** Bytes taken; the version; the terms of two versions. */
  readonly #words: BigInt64Array
  readonly #nowUs: () => number

  constructor(memory = new SharedArrayBuffer(WORDS * BigInt64Array.BYTES_PER_ELEMENT), nowUs = monotonicUs) {
    this.memory = memory
    this.#nowUs = nowUs
    this.#words = new BigInt64Array(memory)
  }

  /** 0: no limit. Set by one thread. */
  get bytesPerSecond(): number {
    return this.#terms().rate
  }

  set bytesPerSecond(bytesPerSecond: number) {
    const now = this.#nowUs()
    const before = this.#terms()
    const base = before.rate > 0 ? allowedAt(now, before) : Number(Atomics.load(this.#words, TAKEN))
    const version = Atomics.load(this.#words, VERSION) + 1n
    for (const [at, value] of [bytesPerSecond, base, now].entries())
      Atomics.store(this.#words, placeOf(version) + at, BigInt(Math.floor(value)))
    // in one step, so that nobody counts what is allowed twice
    Atomics.store(this.#words, VERSION, version)
  }

  get limited(): boolean {
    return this.bytesPerSecond > 0
  }

  take(bytes: number): number {
    const terms = this.#terms()
    if (terms.rate === 0) return 0
    const least = BigInt(Math.floor(allowedAt(this.#nowUs(), terms) - (terms.rate * CREDIT_MS) / 1_000))
    for (;;) {
      const before = Atomics.load(this.#words, TAKEN)
      const after = (before > least ? before : least) + BigInt(bytes)
      if (Atomics.compareExchange(this.#words, TAKEN, before, after) === before) return Number(after)
    }
  }

  waitMs(turn: number): number {
    const terms = this.#terms()
    if (terms.rate === 0) return 0
    const aheadMs = ((turn - allowedAt(this.#nowUs(), terms)) / terms.rate) * 1_000
    return aheadMs > SLACK_MS ? Math.min(aheadMs, LOOK_MS) : 0
  }

  #terms(): Terms {
    for (;;) {
      const version = Atomics.load(this.#words, VERSION)
      const [rate, base, since] = [0, 1, 2].map((at) => Number(Atomics.load(this.#words, placeOf(version) + at)))
      // else it was set twice meanwhile
      if (Atomics.load(this.#words, VERSION) === version) return { rate: rate!, base: base!, since: since! }
    }
  }
}

const placeOf = (version: bigint): number => TERMS + 3 * Number(version % 2n)

const allowedAt = (us: number, { rate, base, since }: Terms): number => base + ((us - since) / 1e6) * rate
