import { plainErrors, WorkerPool, workerUrl } from '@svc/internal-workers'
import { SwarmError } from '../errors.ts'
import type { ExpectedHash } from './piece-hashes.ts'

export interface VerifyJob {
  readonly buffer: SharedArrayBuffer
  readonly sizeBytes: number
  /** Undefined: only the leaves are computed. */
  readonly expected?: ExpectedHash
  /** Where right bytes are written; undefined: nowhere. */
  readonly write?: { readonly fd: number; readonly position: number } | undefined
}

export interface VerifyReply {
  /** `failed`: the hash was right, but writing failed. */
  readonly outcome: 'right' | 'wrong' | 'failed'
  /** 32 bytes per block. */
  readonly leaves: Uint8Array
  /** The system's error. Some have no name in Node, such as a full quota, and are known by their number. */
  readonly error?: Pick<NodeJS.ErrnoException, 'message' | 'code' | 'errno' | 'syscall'>
}

export interface VerifyData {
  readonly nice: number
}

export interface VerifyCalls {
  verify: { request: VerifyJob; response: VerifyReply }
}

const IDLE_MS = 10_000

/** Threads that hash and write pieces. They start with the first job and stop after ten idle seconds. */
export class Verifier extends WorkerPool<VerifyCalls> {
  constructor(threads: number, nice = 0) {
    super({
      url: workerUrl(import.meta.url.endsWith('.ts') ? '../verify-worker' : './verify-worker', import.meta.url),
      threads,
      workerData: { nice } satisfies VerifyData,
      idleMs: IDLE_MS,
      youngMib: 3,
      errors: { ...plainErrors, closed: closedError, lost: (cause) => (cause instanceof Error ? cause : closedError()) }
    })
  }

  /** Rejects with `E_CLOSED` after `close`, or with the thread's error if it dies. */
  submit(job: VerifyJob): Promise<VerifyReply> {
    return this.call('verify', job)
  }
}

const closedError = (): SwarmError => new SwarmError('E_CLOSED', 'closed', 'the engine is closed')
