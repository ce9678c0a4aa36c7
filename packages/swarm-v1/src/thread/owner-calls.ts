import type { FromThread } from '../messages.ts'
import type { PieceCalls } from './chunks.ts'

/** Limit of concurrent calls to the owner; further ones wait here, so that peers cannot fill the owner's memory. */
const MAX_CALLS = 64

type MakeMessage = (call: number) => FromThread

interface OwnerCall {
  readonly torrent: number
  readonly make: MakeMessage
  readonly resolve: (bytes: Uint8Array | undefined) => void
}

/**
 * Calls the owner's storage by messages.
 *
 * Invariant: a call waits in `#queue` only while {@link MAX_CALLS} are in `#waiting`; in both are calls of joined torrents only.
 */
export class OwnerCalls {
  readonly #tell: (message: FromThread) => void
  readonly #joined = new Set<number>()
  readonly #waiting = new Map<number, OwnerCall>()
  #queue: OwnerCall[] = []
  #next = 0

  constructor(tell: (message: FromThread) => void) {
    this.#tell = tell
  }

  /** The storage of one torrent. A failed write gets no answer, since the owner then leaves the torrent. */
  of(id: number): PieceCalls {
    this.#joined.add(id)
    return {
      read: (piece, offset, length) => this.#call(id, (call) => ({ kind: 'get', id, call, piece, offset, length })),
      write: async (piece, bytes) => void (await this.#call(id, (call) => ({ kind: 'put', id, call, piece, bytes })))
    }
  }

  answer(call: number, bytes: Uint8Array | undefined): void {
    this.#waiting.get(call)?.resolve(bytes)
    this.#waiting.delete(call)
    this.#sendNext()
  }

  /** The torrent was left: the owner answers none of its calls any more, and others get their places. */
  left(id: number): void {
    this.#joined.delete(id)
    this.#queue = this.#queue.filter(({ torrent }) => torrent !== id)
    for (const [call, { torrent }] of this.#waiting) if (torrent === id) this.#waiting.delete(call)
    this.#sendNext()
  }

  #call(torrent: number, make: MakeMessage): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      if (!this.#joined.has(torrent)) return
      this.#queue.push({ torrent, make, resolve })
      this.#sendNext()
    })
  }

  #sendNext(): void {
    while (this.#queue.length > 0 && this.#waiting.size < MAX_CALLS) {
      const next = this.#queue.shift()!
      const call = this.#next++
      this.#waiting.set(call, next)
      this.#tell(next.make(call))
    }
  }
}
