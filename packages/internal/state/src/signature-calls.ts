import { type Clock, systemClock } from '@svc/internal-clock'
import { LimitedThread, plainErrors, workerUrl } from '@svc/internal-workers'
import type { SignedModel, Trust } from '@svc/signature'
import { LibraryError } from './library-error.ts'

export interface SignatureCalls {
  verify: {
    request: {
      readonly bytes: Uint8Array
      /** Each of them has to hold. */
      readonly trusts: readonly Trust[]
      readonly nowMs: number
    }
    response: { readonly model: SignedModel } | { /** For people. */ readonly refused: string }
  }
}

const LIMIT_MS = 10_000
const HEAP_MIB = 256

/** A signature is read in a thread with a time limit: whoever sends one chooses how long reading it takes. */
export class SignatureReader {
  readonly #thread: LimitedThread<SignatureCalls>

  constructor(name: string, clock: Pick<Clock, 'after'> = systemClock) {
    this.#thread = new LimitedThread({
      url: workerUrl('./signature-worker', import.meta.url),
      name,
      oldMib: HEAP_MIB,
      limitMs: LIMIT_MS,
      late: () => new Error(`reading it took more than ${LIMIT_MS / 1000} s`),
      clock,
      errors: {
        ...plainErrors,
        lost: (cause) => new Error('the thread that read it ended', { cause }),
        closed: () => new LibraryError('E_CLOSED', 'the library is closed')
      }
    })
  }

  /** What a signature says, or why it is refused. @throws LibraryError `E_CLOSED` */
  async verify(request: SignatureCalls['verify']['request']): Promise<SignatureCalls['verify']['response']> {
    try {
      return await this.#thread.call('verify', request)
    } catch (error) {
      if (error instanceof LibraryError) throw error
      return { refused: (error as Error).message }
    }
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}
