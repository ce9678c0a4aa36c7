import { Worker } from 'node:worker_threads'
import { type ErrorCodec, plainErrors } from './error-codec.ts'
import { inheritedArguments } from './inherited-arguments.ts'
import type { Calls, ProgressOf, Reply, Request, ThreadCallOptions } from './protocol.ts'

/**
 * The URL of a worker file next to the module that starts it: `.ts` when sources run unbuilt, `.js` in a build. `base`
 * is that module's `import.meta.url`; `path` has no extension.
 */
export const workerUrl = (path: string, base: string): URL =>
  new URL(`${path}${base.endsWith('.ts') ? '.ts' : '.js'}`, base)

export interface WorkerThreadOptions {
  readonly url: URL
  readonly name?: string
  readonly workerData?: unknown
  readonly errors?: ErrorCodec
  /** Bounds its heap: a thread that needs more is ended, and its calls are rejected. */
  readonly oldMib?: number
  /** Bounds its young generation: for threads that allocate little and would keep what a burst left behind. */
  readonly youngMib?: number
}

interface Pending {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
  readonly onProgress: ((progress: never) => void) | undefined
  readonly onBegun: (() => void) | undefined
  /** Removes the listener from the caller's signal. */
  readonly settle: () => void
}

/** One run of the thread, with its own calls: late messages of a dead thread do not affect calls of the next one. */
interface Incarnation {
  readonly worker: Worker
  readonly pending: Map<number, Pending>
}

/** Call ids are unique in the process: late messages to a closed owner do not affect calls of the next one. */
let nextId = 1

/**
 * A worker thread that answers calls (see `serveCalls`). It starts with the first call, and keeps the process alive only
 * while it owes an answer. After it died, the next call restarts it.
 *
 * Invariant: every call is pending in exactly one incarnation until its promise settles.
 */
export class WorkerThread<Of extends Calls<Of>> {
  readonly #options: WorkerThreadOptions
  readonly #errors: ErrorCodec
  #running: Incarnation | undefined
  #closed = false

  constructor(options: WorkerThreadOptions) {
    this.#options = options
    this.#errors = options.errors ?? plainErrors
  }

  get pendingCalls(): number {
    return this.#running?.pending.size ?? 0
  }

  /**
   * Runs one operation in the thread.
   * @throws the handler's error, decoded; the codec's `lost` when the thread dies, its `closed` after {@link close}
   */
  call<Op extends keyof Of>(
    op: Op,
    request: Of[Op]['request'],
    options: ThreadCallOptions<ProgressOf<Of[Op]>> = {}
  ): Promise<Of[Op]['response']> {
    if (this.#closed) return Promise.reject(this.#closedError())
    const { signal, onProgress, onBegun, transfer = [] } = options
    const { worker, pending } = (this.#running ??= this.#start())
    const id = nextId++
    return new Promise((resolve, reject) => {
      const onAbort = (): void => worker.postMessage({ abort: id } satisfies Request)
      const settle = (): void => signal?.removeEventListener('abort', onAbort)
      if (pending.size === 0) worker.ref()
      pending.set(id, { resolve, reject, onProgress, onBegun, settle })
      try {
        const watched = onBegun !== undefined
        const message: Request = { id, op, request, abortable: signal !== undefined, watched }
        worker.postMessage(message, transfer)
      } catch (error) {
        // the request could not be cloned, so it was never sent.
        pending.delete(id)
        if (pending.size === 0) worker.unref()
        reject(error)
        return
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      if (signal?.aborted) onAbort()
    })
  }

  /** Starts the thread ahead of its first call. */
  warm(): void {
    if (!this.#closed) this.#running ??= this.#start()
  }

  /** Ends the thread if it owes no answer, to free its memory; the next call restarts it. */
  rest(): void {
    if (this.#running === undefined || this.#running.pending.size > 0) return
    const { worker } = this.#running
    this.#running = undefined
    void worker.terminate()
  }

  /** Ends the thread for good and rejects pending calls; resolves when it has ended. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    const running = this.#running
    this.#running = undefined
    if (running === undefined) return
    await running.worker.terminate()
    this.#fail(running, this.#closedError())
  }

  #start(): Incarnation {
    const { url, name, workerData, youngMib, oldMib } = this.#options
    const worker = new Worker(url, {
      workerData,
      execArgv: inheritedArguments(),
      // threads share descriptors: one that ends must not close numbers that others may be using by then.
      trackUnmanagedFds: false,
      resourceLimits: {
        ...(youngMib !== undefined && { maxYoungGenerationSizeMb: youngMib }),
        ...(oldMib !== undefined && { maxOldGenerationSizeMb: oldMib })
      },
      ...(name !== undefined && { name })
    })
    const started: Incarnation = { worker, pending: new Map() }
    worker.on('message', (reply: Reply) => {
      const call = started.pending.get(reply.id)
      if (call === undefined) return
      if ('progress' in reply) return call.onProgress?.(reply.progress as never)
      if ('begun' in reply) return call.onBegun?.()
      started.pending.delete(reply.id)
      if (started.pending.size === 0) worker.unref()
      call.settle()
      if ('error' in reply) call.reject(this.#errors.decode(reply.error as never))
      else call.resolve(reply.result as never)
    })
    worker.on('messageerror', (error) => this.#lose(started, error))
    worker.on('error', (error) => this.#lose(started, error))
    worker.on('exit', () => this.#lose(started, undefined))
    worker.unref()
    return started
  }

  /** A thread that threw is about to end: the next call must not go to it. Nothing is left to do at its `exit`. */
  #lose(lost: Incarnation, cause: unknown): void {
    if (this.#running !== lost) return
    this.#running = undefined
    void lost.worker.terminate()
    this.#fail(lost, this.#errors.lost?.(cause) ?? new Error('a worker thread ended unexpectedly', { cause }))
  }

  #fail({ pending }: Incarnation, error: Error): void {
    const calls = [...pending.values()]
    pending.clear()
    for (const call of calls) {
      call.settle()
      call.reject(error)
    }
  }

  #closedError(): Error {
    return this.#errors.closed?.() ?? new Error('the worker thread is closed')
  }
}
