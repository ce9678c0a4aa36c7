import { Worker } from 'node:worker_threads'
import { inheritedArguments } from './inherited-arguments.ts'
import type { SupervisedData } from './pulse.ts'

/** A thread died, hung, or said what it must not say, and starts again. */
export interface ThreadFault {
  /** Which thread. */
  readonly thread: string
  readonly error: Error
  /** How often so far, this time included. */
  readonly count: number
  /** Until it starts again. */
  readonly pauseMs: number
}

export interface SupervisedThreadOptions<Up> {
  readonly name: string
  /** The module to run; see {@link workerUrl}. It calls `supervisedData` as it begins. */
  readonly url: URL
  /** What the thread gets from `supervisedData`; asked anew for each start. */
  readonly data: () => unknown
  /** Checks a message of the thread. What it throws at counts as a crash: a thread out of order is not believed. */
  readonly parse: (message: unknown) => Up
  readonly received: (message: Up) => void
  /** A new thread knows nothing: what it has to do is posted here. */
  readonly started: () => void
  /** Called once for each crash, before the pause. */
  readonly crashed: (fault: ThreadFault) => void
  /** Default 1 s; doubles with each crash. */
  readonly firstPauseMs?: number
  /** Default 5 minutes. */
  readonly maxPauseMs?: number
  /** A thread that lived so long begins with the first pause again; default 10 minutes. */
  readonly calmMs?: number
  /** A thread whose event loop has not turned for so long hangs: it is ended like one that crashed. Default 30 s. */
  readonly hangMs?: number
}

/** Looks at a thread's pulse before it counts as hanging. Looks are counted, not time: what suspends the process suspends both. */
const LOOKS = 6
/** Beats between two looks. */
const BEATS = 5

/** Heap of one thread. Beyond it V8 ends the thread, and only that. */
const MAX_HEAP_MIB = 512

/**
 * A thread for code that strangers can reach and that we did not write: a defect there ends the thread, and nothing else; so does
 * an endless loop. It starts again after a pause that grows, and is told again what to do. What is posted while it is down is dropped.
 *
 * Invariants: at most one of `#worker` and `#timer` is set; after `close` neither. `#watch` is set while `#worker` is.
 */
export class SupervisedThread<Down, Up> {
  readonly #options: SupervisedThreadOptions<Up>
  #worker: Worker | undefined
  #timer: NodeJS.Timeout | undefined
  #watch: NodeJS.Timeout | undefined
  #pauseMs: number
  #startedAt = 0
  #faults = 0
  #closing: Promise<void> | undefined

  constructor(options: SupervisedThreadOptions<Up>) {
    this.#options = options
    this.#pauseMs = options.firstPauseMs ?? 1_000
    this.#start()
  }

  /** Crashes so far. */
  get faults(): number {
    return this.#faults
  }

  /** False while it is down. */
  get running(): boolean {
    return this.#worker !== undefined
  }

  post(message: Down, transfer: readonly ArrayBuffer[] = []): void {
    this.#worker?.postMessage(message, transfer)
  }

  /** Says `goodbye`, after which the thread ends by itself; ends it after `graceMs`. Idempotent. */
  close(goodbye: Down, graceMs: number): Promise<void> {
    this.#closing ??= this.#close(goodbye, graceMs)
    return this.#closing
  }

  async #close(goodbye: Down, graceMs: number): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const worker = this.#worker
    if (worker === undefined) return
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const timer = setTimeout(() => void worker.terminate(), graceMs)
    worker.postMessage(goodbye)
    await exited
    clearTimeout(timer)
    clearInterval(this.#watch)
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
    this.#startedAt = performance.now()
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

  #watchPulse(worker: Worker, pulse: Int32Array, lookMs: number): NodeJS.Timeout {
    let seen = 0
    let still = 0
    const look = (): void => {
      const beats = Atomics.load(pulse, 0)
      still = beats === seen ? still + 1 : 0
      seen = beats
      if (still >= LOOKS)
        this.#crash(worker, new Error(`the thread's event loop has not turned for ${lookMs * LOOKS} ms`))
    }
    return setInterval(look, lookMs).unref()
  }

  #crash(worker: Worker, error: Error): void {
    // An error is followed by an exit: the first one counts.
    if (this.#worker !== worker || this.#closing !== undefined) return
    this.#worker = undefined
    clearInterval(this.#watch)
    void worker.terminate()
    const { firstPauseMs = 1_000, maxPauseMs = 300_000, calmMs = 600_000 } = this.#options
    if (performance.now() - this.#startedAt >= calmMs) this.#pauseMs = firstPauseMs
    const pauseMs = this.#pauseMs
    this.#pauseMs = Math.min(maxPauseMs, pauseMs * 2)
    this.#faults += 1
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#start()
    }, pauseMs)
    this.#options.crashed({ thread: this.#options.name, error, count: this.#faults, pauseMs })
  }
}
