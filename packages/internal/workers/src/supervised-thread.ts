import { Worker } from 'node:worker_threads'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import { inheritedArguments } from './inherited-arguments.ts'
import type { SupervisedData } from './pulse.ts'

/** A thread died, hung, or sent an invalid message, and will be restarted. */
export interface ThreadFault {
  readonly thread: string
  readonly error: Error
  /** Number of faults so far, including this one. */
  readonly count: number
  /** Time until the restart. */
  readonly pauseMs: number
}

interface SupervisedThreadOptions<Up> {
  readonly name: string
  /** The module to run; see {@link workerUrl}. It has to call `supervisedData` first. */
  readonly url: URL
  /** The start parameters, returned by `supervisedData` in the thread; called for each start. */
  readonly data: () => unknown
  /** Validates a message from the thread. If it throws, that counts as a crash: a defective thread is not trusted. */
  readonly parse: (message: unknown) => Up
  readonly received: (message: Up) => void
  /** A new thread has no state: post its work here. */
  readonly started: () => void
  /** Called once per fault, before the pause. */
  readonly crashed: (fault: ThreadFault) => void
  /** A thread whose event loop has not turned for this long hangs, and is ended as if it had crashed. Default 30 s. */
  readonly hangMs?: number
  readonly clock?: Clock
}

/**
 * Number of checks without a pulse after which a thread counts as hanging. Checks are counted rather than time, since
 * suspending the process suspends both sides.
 */
const LOOKS = 6
/** Pulses between two checks. */
const BEATS = 5

/** The pause before a restart; it doubles with each crash. */
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 300_000
/** A thread that ran for this long starts again with the first pause. */
const CALM_MS = 600_000

/** Heap limit of one thread. Beyond it V8 ends the thread, and nothing else. */
const MAX_HEAP_MIB = 512

/**
 * A thread for third-party code that handles input from strangers: a defect or an endless loop there ends only the
 * thread. After a pause that grows it is restarted, and given its work again. Messages posted meanwhile are dropped.
 *
 * Invariants: at most one of `#worker` and `#timer` is set; after `close` neither. `#watch` is set while `#worker` is.
 */
export class SupervisedThread<Down, Up> {
  readonly #options: SupervisedThreadOptions<Up>
  #worker: Worker | undefined
  readonly #clock: Clock
  #timer: Timer | undefined
  #watch: Timer | undefined
  #pauseMs = FIRST_PAUSE_MS
  #startedAt = 0
  #faults = 0
  #closing: Promise<void> | undefined

  constructor(options: SupervisedThreadOptions<Up>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#start()
  }

  /** False while it is down. */
  get running(): boolean {
    return this.#worker !== undefined
  }

  post(message: Down): void {
    this.#worker?.postMessage(message)
  }

  /** Posts `goodbye`, after which the thread should end by itself; ends it after `graceMs`. Idempotent. */
  close(goodbye: Down, graceMs: number): Promise<void> {
    this.#closing ??= this.#close(goodbye, graceMs)
    return this.#closing
  }

  async #close(goodbye: Down, graceMs: number): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    const worker = this.#worker
    if (worker === undefined) return
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const timer = this.#clock.after(graceMs, () => void worker.terminate())
    worker.postMessage(goodbye)
    await exited
    timer.cancel()
    this.#watch?.cancel()
    this.#worker = undefined
  }

  #start(): void {
    const { name, url, data, hangMs = 30_000 } = this.#options
    const lookMs = hangMs / LOOKS
    const pulse = new Int32Array(new SharedArrayBuffer(4))
    const begun: SupervisedData = { data: data(), pulse, beatMs: lookMs / BEATS }
    const worker = new Worker(url, {
      name,
      workerData: begun,
      execArgv: inheritedArguments(),
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB }
    })
    this.#worker = worker
    this.#startedAt = this.#clock.monotonic()
    this.#watch = this.#watchPulse(worker, pulse, lookMs)
    worker.on('message', (message: unknown) => {
      if (this.#worker !== worker) return
      let up: Up
      try {
        up = this.#options.parse(message)
      } catch (error) {
        this.#crash(worker, error as Error)
        return
      }
      this.#options.received(up)
    })
    worker.on('messageerror', (error: Error) => this.#crash(worker, error))
    worker.on('error', (error: unknown) =>
      this.#crash(worker, error instanceof Error ? error : new Error(String(error)))
    )
    worker.on('exit', (code) => this.#crash(worker, new Error(`the thread ended with ${code}`)))
    this.#options.started()
  }

  #watchPulse(worker: Worker, pulse: Int32Array, lookMs: number): Timer {
    let seen = 0
    let still = 0
    const look = (): void => {
      const beats = Atomics.load(pulse, 0)
      still = beats === seen ? still + 1 : 0
      seen = beats
      if (still >= LOOKS)
        this.#crash(worker, new Error(`the thread's event loop has not turned for ${lookMs * LOOKS} ms`))
    }
    return this.#clock.every(lookMs, look)
  }

  #crash(worker: Worker, error: Error): void {
    // an error is followed by an exit: only the first counts.
    if (this.#worker !== worker || this.#closing !== undefined) return
    this.#worker = undefined
    this.#watch?.cancel()
    void worker.terminate()
    if (this.#clock.monotonic() - this.#startedAt >= CALM_MS) this.#pauseMs = FIRST_PAUSE_MS
    const pauseMs = this.#pauseMs
    this.#pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)
    this.#faults += 1
    this.#timer = this.#clock.after(pauseMs, () => {
      this.#timer = undefined
      this.#start()
    })
    this.#options.crashed({ thread: this.#options.name, error, count: this.#faults, pauseMs })
  }
}
