import { setTimeout as delay } from 'node:timers/promises'

/** What {@link Clock.after} and {@link Clock.every} started. */
export interface Timer {
  /** Idempotent, also after it fired. */
  cancel(): void
}

/**
 * Time, for whatever measures it or waits for it. Rooms take a clock with their dependencies, so that a test passes its own and decides
 * when time passes. CPU budgets and socket timeouts do not use it: both are about the machine.
 */
export interface Clock {
  /** The time of day in milliseconds since 1970. An administrator may set it, also back. */
  now(): number
  /** Milliseconds since some moment; never goes back. */
  monotonic(): number
  /** Calls `run` once. Does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer
  /** Calls `run` once per period. Does not keep the process alive. */
  every(periodMs: number, run: () => void): Timer
  /** Keeps the process alive. Rejects with the signal's reason when that is aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

class SystemTimer implements Timer {
  readonly #timer: NodeJS.Timeout

  constructor(timer: NodeJS.Timeout) {
    this.#timer = timer.unref()
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }
}

/** {@link Clock.now} as UTC, RFC 3339. */
export const timestampOf = (clock: Pick<Clock, 'now'>, laterMs = 0): string =>
  new Date(clock.now() + laterMs).toISOString()

/** Does work whose signal is aborted after the limit, with a `TimeoutError`, or by `outer`, with its reason. */
export async function within<T>(
  clock: Pick<Clock, 'after'>,
  limitMs: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const late = new AbortController()
  const timer = clock.after(limitMs, () =>
    late.abort(new DOMException(`not done within ${limitMs / 1000} s`, 'TimeoutError'))
  )
  try {
    return await work(outer === undefined ? late.signal : AbortSignal.any([outer, late.signal]))
  } finally {
    timer.cancel()
  }
}

/** The clock of this process. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, run) => new SystemTimer(setTimeout(run, delayMs)),
  every: (periodMs, run) => new SystemTimer(setInterval(run, periodMs)),
  sleep: async (delayMs, signal) => {
    try {
      await delay(delayMs, undefined, { signal })
    } catch (error) {
      throw signal?.reason ?? error
    }
  }
}
