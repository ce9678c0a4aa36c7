import { Worker } from 'node:worker_threads'
import { SwarmError } from '../errors.ts'

/** Sent to a verify worker. */
export interface VerifyJob {
  readonly id: number
  readonly buffer: SharedArrayBuffer
  readonly sizeBytes: number
  /** Hash that the leaves fold to over `levels`; undefined: leaves only. */
  readonly expected: Uint8Array | undefined
  readonly levels: number
  /** Where to write the bytes when they are right; undefined: nowhere. */
  readonly fd: number | undefined
  readonly position: number
}

export interface VerifyReply {
  readonly id: number
  /** `failed`: the hash was right, writing failed. */
  readonly outcome: 'right' | 'wrong' | 'failed'
  /** 32 bytes for each block. */
  readonly leaves: Uint8Array
  readonly error?: { readonly message: string; readonly code: string | undefined; readonly syscall: string | undefined }
}

type Task = Omit<VerifyJob, 'id'>
interface Waiting {
  readonly task: Task
  readonly resolve: (reply: VerifyReply) => void
  readonly reject: (error: Error) => void
}
interface Lane {
  readonly worker: Worker
  readonly jobs: Map<number, Waiting>
}

/** Jobs under way per thread: one runs, one waits in the thread's port so that it never idles. */
const DEPTH = 2

/**
 * Threads that hash and write pieces. Started with the first job, stopped after ten idle seconds.
 * Invariant: every job is in exactly one lane or in the queue until its promise settles.
 */
export class Verifier {
  readonly #threads: number
  readonly #lanes: Lane[] = []
  readonly #queue: Waiting[] = []
  #nextId = 1
  #idle: NodeJS.Timeout | undefined
  #closed = false

  constructor(threads: number) {
    this.#threads = threads
  }

  /** Rejects with `E_CLOSED` after `close`, with the thread's error when it dies. */
  submit(task: Task): Promise<VerifyReply> {
    if (this.#closed) return Promise.reject(closedError())
    if (this.#idle !== undefined) clearTimeout(this.#idle)
    this.#idle = undefined
    return new Promise((resolve, reject) => {
      this.#queue.push({ task, resolve, reject })
      this.#dispatch()
    })
  }

  /** Starts the threads ahead of the first job. */
  warm(): void {
    while (!this.#closed && this.#lanes.length < this.#threads) this.#start()
    this.#armIdle()
  }

  #dispatch(): void {
    while (this.#queue.length > 0) {
      let lane = this.#lanes.reduce<Lane | undefined>(
        (best, other) => (best === undefined || other.jobs.size < best.jobs.size ? other : best),
        undefined
      )
      if ((lane === undefined || lane.jobs.size > 0) && this.#lanes.length < this.#threads) lane = this.#start()
      if (lane === undefined || lane.jobs.size >= DEPTH) return
      const next = this.#queue.shift()!
      const id = this.#nextId
      this.#nextId += 1
      lane.jobs.set(id, next)
      lane.worker.postMessage({ id, ...next.task } satisfies VerifyJob)
    }
  }

  #start(): Lane {
    const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
    const base = import.meta.url.endsWith('.ts') ? '../' : './'
    const worker = new Worker(new URL(`${base}verify-worker${extension}`, import.meta.url), {
      execArgv: inheritedArguments()
    })
    const lane: Lane = { worker, jobs: new Map() }
    worker.on('message', (reply: VerifyReply) => {
      const job = lane.jobs.get(reply.id)
      lane.jobs.delete(reply.id)
      this.#dispatch()
      job?.resolve(reply)
      this.#armIdle()
    })
    worker.on('error', (error) => this.#lost(lane, error as Error))
    worker.on('exit', () => this.#lost(lane, closedError()))
    this.#lanes.push(lane)
    return lane
  }

  #lost(lane: Lane, error: Error): void {
    const at = this.#lanes.indexOf(lane)
    if (at >= 0) this.#lanes.splice(at, 1)
    for (const job of lane.jobs.values()) job.reject(error)
    lane.jobs.clear()
    if (!this.#closed) this.#dispatch()
  }

  #armIdle(): void {
    if (this.#queue.length > 0 || this.#lanes.some((lane) => lane.jobs.size > 0) || this.#idle !== undefined) return
    this.#idle = setTimeout(() => {
      this.#idle = undefined
      const lanes = this.#lanes.splice(0)
      for (const lane of lanes) void lane.worker.terminate()
    }, 10_000)
    this.#idle.unref()
  }

  /** Waits for the threads to be gone; jobs under way are rejected. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#idle !== undefined) clearTimeout(this.#idle)
    for (const waiting of this.#queue.splice(0)) waiting.reject(closedError())
    await Promise.all(
      this.#lanes.splice(0).map(async (lane) => {
        await lane.worker.terminate()
        for (const job of lane.jobs.values()) job.reject(closedError())
        lane.jobs.clear()
      })
    )
  }

  checkInvariants(): void {
    for (const lane of this.#lanes) if (lane.jobs.size > DEPTH) throw new Error('a thread has too many jobs')
    if (this.#lanes.length > this.#threads) throw new Error('too many threads')
  }
}

/** The process's own options, but those that name its program: a thread would take its file for it. */
function inheritedArguments(): string[] {
  const kept: string[] = []
  for (let at = 0; at < process.execArgv.length; at += 1) {
    const argument = process.execArgv[at]!
    if (['-e', '--eval', '-p', '--print', '-pe'].includes(argument)) at += 1
    else if (!/^--(?:input-type|eval|print)\b/.test(argument)) kept.push(argument)
  }
  return kept
}

const closedError = (): SwarmError => new SwarmError('E_CLOSED', 'closed', 'the engine is closed')
