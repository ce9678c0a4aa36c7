/** What a receiver takes at once, where it can choose: all that wait then get equal shares. */
export const TURN_BYTES = 65_536

/** Nobody waits for less: timers are no more exact. */
const SLACK_MS = 20
/** As much as this long brings may come at once after a pause. */
const CREDIT_MS = 100
/** Who waits looks again after this long: the limit may have changed. */
const LOOK_MS = 250

const RATE = 0
const TAKEN = 1
const BASE = 2
const SINCE = 3

const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n)

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
  /** Bytes per second; bytes taken, and allowed at a time, since the start; that time in µs. */
  readonly #words: BigInt64Array

  constructor(memory = new SharedArrayBuffer(4 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
  }

  /** 0: no limit. Set by one thread. */
  get bytesPerSecond(): number {
    return this.#word(RATE)
  }

  set bytesPerSecond(bytesPerSecond: number) {
    const allowed = this.#allowed(nowUs())
    Atomics.store(this.#words, BASE, BigInt(this.limited ? Math.floor(allowed) : this.#word(TAKEN)))
    Atomics.store(this.#words, SINCE, BigInt(nowUs()))
    Atomics.store(this.#words, RATE, BigInt(Math.floor(bytesPerSecond)))
  }

  get limited(): boolean {
    return this.bytesPerSecond > 0
  }

  take(bytes: number): number {
    if (!this.limited) return 0
    const least = BigInt(Math.floor(this.#allowed(nowUs()) - (this.bytesPerSecond * CREDIT_MS) / 1_000))
    for (;;) {
      const before = Atomics.load(this.#words, TAKEN)
      const after = (before > least ? before : least) + BigInt(bytes)
      if (Atomics.compareExchange(this.#words, TAKEN, before, after) === before) return Number(after)
    }
  }

  waitMs(turn: number): number {
    if (!this.limited) return 0
    const aheadMs = ((turn - this.#allowed(nowUs())) / this.bytesPerSecond) * 1_000
    return aheadMs > SLACK_MS ? Math.min(aheadMs, LOOK_MS) : 0
  }

  #allowed(us: number): number {
    return this.#word(BASE) + ((us - this.#word(SINCE)) / 1e6) * this.bytesPerSecond
  }

  #word(index: number): number {
    return Number(Atomics.load(this.#words, index))
  }
}
