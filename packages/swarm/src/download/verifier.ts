import { plainErrors, WorkerPool, workerUrl } from '@svc/internal-workers'
import { SwarmError } from '../errors.ts'

/** Sent to a verify worker. */
export interface VerifyJob {
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
  /** `failed`: the hash was right, writing failed. */
  readonly outcome: 'right' | 'wrong' | 'failed'
  /** 32 bytes for each block. */
  readonly leaves: Uint8Array
  readonly error?: { readonly message: string; readonly code: string | undefined; readonly syscall: string | undefined }
}

/** What the threads do. */
export interface VerifyCalls {
  verify: { request: VerifyJob; response: VerifyReply }
}

/** Idle threads are ended after this. */
const IDLE_MS = 10_000

/** Threads that hash and write pieces. Started with the first job, stopped after ten idle seconds. */
export class Verifier {
  readonly #threads: WorkerPool<VerifyCalls>

  constructor(threads: number) {
    this.#threads = new WorkerPool({
      url: workerUrl(import.meta.url.endsWith('.ts') ? '../verify-worker' : './verify-worker', import.meta.url),
      threads,
      idleMs: IDLE_MS,
      reusable: () => true,
      errors: { ...plainErrors, closed: closedError, lost: (cause) => (cause instanceof Error ? cause : closedError()) }
    })
  }

  /** Rejects with `E_CLOSED` after `close`, with the thread's error when it dies. */
  submit(job: VerifyJob): Promise<VerifyReply> {
    return this.#threads.call('verify', job)
  }

  /** Starts the threads ahead of the first job. */
  warm(): void {
    this.#threads.warm()
  }

  /** Waits for the threads to be gone; jobs under way are rejected. Idempotent. */
  close(): Promise<void> {
    return this.#threads.close()
  }
}

const closedError = (): SwarmError => new SwarmError('E_CLOSED', 'closed', 'the engine is closed')
