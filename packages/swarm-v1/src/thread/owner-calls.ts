import type { FromThread } from '../messages.ts'
import type { PieceCalls } from './chunks.ts'

/** Limit of concurrent calls to the owner; further ones wait here, so that peers cannot fill the owner's memory. */
const MAX_CALLS = 64

type MakeMessage = (call: number) => FromThread

/**
 * Calls the owner's storage by messages.
 *
 * Invariant: a call waits in `#queue` only while {@link MAX_CALLS} are in `#waiting`.
 */
export class OwnerCalls {
  readonly #tell: (message: FromThread) => void
  readonly #waiting = new Map<number, (bytes: Uint8Array | undefined) => void>()
  readonly #queue: (() => void)[] = []
  #next = 0

  constructor(tell: (message: FromThread) => void) {
    this.#tell = tell
  }

  /** The storage of one torrent. A failed write gets no answer, since the owner then leaves the torrent. */
  of(id: number): PieceCalls {
    return {
      read: (piece, offset, length) => this.#call((call) => ({ kind: 'get', id, call, piece, offset, length })),
      write: async (piece, bytes) => void (await this.#call((call) => ({ kind: 'put', id, call, piece, bytes })))
    }
  }

  answer(call: number, bytes: Uint8Array | undefined): void {
    this.#waiting.get(call)?.(bytes)
    this.#waiting.delete(call)
    this.#queue.shift()?.()
  }

  #call(ask: MakeMessage): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      const send = (): void => {
        const call = this.#next++
        this.#waiting.set(call, resolve)
        this.#tell(ask(call))
      }
      if (this.#waiting.size < MAX_CALLS) send()
      else this.#queue.push(send)
    })
  }
}
