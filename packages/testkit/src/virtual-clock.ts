import { setImmediate } from 'node:timers/promises'
import type { Clock, Timer } from '@svc/internal-clock'

/**
 * A clock that stands until a test lets time pass: a binary heap over typed arrays, so that millions of events stay cheap. Events of
 * the same time happen in the order in which they were set.
 */
export class VirtualClock implements Clock {
  readonly #epochMs: number
  #nowMs = 0
  #times = new Float64Array(1024)
  #ids = new Int32Array(1024)
  #orders = new Float64Array(1024)
  #size = 0
  #nextOrder = 0
  readonly #actions: ((() => void) | undefined)[] = []
  readonly #free: number[] = []

  /** @param epochMs the time of day at the beginning */
  constructor(epochMs = Date.UTC(2026, 0)) {
    this.#epochMs = epochMs
  }

  now(): number {
    return this.#epochMs + this.#nowMs
  }

  monotonic(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): Timer {
    // an own function each time: its id may be of another event by the time it is cancelled.
    const action = (): void => run()
    const id = this.at(this.#nowMs + Math.max(0, delayMs), action)
    // its place in the heap stays until its time: only the action goes.
    return { cancel: () => void (this.#actions[id] === action && (this.#actions[id] = undefined)) }
  }

  every(periodMs: number, run: () => void): Timer {
    let timer: Timer
    const arm = (): void => {
      timer = this.after(periodMs, () => {
        arm()
        run()
      })
    }
    arm()
    return { cancel: () => timer.cancel() }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const aborted = (): void => {
        timer.cancel()
        reject(signal!.reason)
      }
      const timer = this.after(delayMs, () => {
        signal?.removeEventListener('abort', aborted)
        resolve()
      })
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  /** Something happens at `timeMs` of {@link monotonic}. @returns its id, until it has happened */
  at(timeMs: number, action: () => void): number {
    const id = this.#free.pop() ?? this.#actions.length
    this.#actions[id] = action
    if (this.#size === this.#times.length) this.#grow()
    let at = this.#size
    this.#size += 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#times[parent]! <= timeMs) break
      this.#move(parent, at)
      at = parent
    }
    this.#times[at] = timeMs
    this.#ids[at] = id
    this.#orders[at] = this.#nextOrder++
    return id
  }

  #grow(): void {
    const [times, ids, orders] = [this.#times, this.#ids, this.#orders]
    this.#times = new Float64Array(times.length * 2)
    this.#ids = new Int32Array(ids.length * 2)
    this.#orders = new Float64Array(orders.length * 2)
    this.#times.set(times)
    this.#ids.set(ids)
    this.#orders.set(orders)
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from]!
    this.#ids[to] = this.#ids[from]!
    this.#orders[to] = this.#orders[from]!
  }

  #comesBefore(a: number, b: number): boolean {
    return (
      this.#times[a]! < this.#times[b]! || (this.#times[a] === this.#times[b] && this.#orders[a]! < this.#orders[b]!)
    )
  }

  /** The next event happens at once; false when there is none. */
  step(): boolean {
    this.#dropCancelled()
    if (this.#size === 0) return false
    const id = this.#ids[0]!
    const action = this.#actions[id]!
    this.#nowMs = this.#times[0]!
    this.#removeFirst()
    this.#actions[id] = undefined
    this.#free.push(id)
    action()
    return true
  }

  #removeFirst(): void {
    this.#size -= 1
    const last = this.#size
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= last) break
      if (child + 1 < last && this.#comesBefore(child + 1, child)) child += 1
      if (!this.#comesBefore(child, last)) break
      this.#move(child, at)
      at = child
    }
    this.#move(last, at)
  }

  #dropCancelled(): void {
    while (this.#size > 0 && this.#actions[this.#ids[0]!] === undefined) {
      this.#free.push(this.#ids[0]!)
      this.#removeFirst()
    }
  }

  /** Events that will happen, cancelled ones not counted. */
  get pending(): number {
    return this.#actions.reduce((count, action) => count + (action === undefined ? 0 : 1), 0)
  }

  /** Lets time pass: what is due happens in its order, and what promises and sockets have to say in between. */
  async advance(byMs: number): Promise<void> {
    const until = this.#nowMs + byMs
    await setImmediate()
    for (;;) {
      this.#dropCancelled()
      if (this.#size === 0 || this.#times[0]! > until) break
      this.step()
      await setImmediate()
    }
    this.#nowMs = until
    await setImmediate()
  }
}
