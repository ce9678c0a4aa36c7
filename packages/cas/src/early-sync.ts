import { constants } from 'node:fs'
import { ioError } from './errors.ts'
import type { StoreContext } from './store-context.ts'

/** Sync after so many new bytes. */
const STEP_BYTES = 64 << 20

/**
 * Syncs a growing part while its later bytes are still being hashed, so that little is left for the last fsync.
 * Invariants: one sync is under way at most; the descriptor is this object's own, so that a write error that it sees is
 * also reported to the fsync that publishes the part; after `end` no sync begins.
 */
export class EarlySync {
  readonly #context: StoreContext
  readonly #part: string
  #syncedBytes = 0
  #fd: number | undefined
  #running: Promise<void> | undefined
  #failure: unknown
  #ended = false

  constructor(context: StoreContext, part: string) {
    this.#context = context
    this.#part = part
  }

  /** That many bytes are written, or about to be. */
  advance(bytes: number): void {
    if (this.#ended || this.#failure !== undefined || this.#running !== undefined) return
    if (bytes - this.#syncedBytes < STEP_BYTES) return
    this.#syncedBytes = bytes
    this.#running = this.#sync()
      .catch((error: unknown) => {
        this.#failure = error
      })
      .finally(() => {
        this.#running = undefined
      })
  }

  /** Waits and closes; idempotent. @throws CasError what a sync failed with: that is final, the part must be discarded */
  async end(): Promise<void> {
    this.#ended = true
    await this.#running
    const fd = this.#fd
    this.#fd = undefined
    if (fd !== undefined)
      await this.#context.port.close(fd).catch((error: unknown) => (this.#failure ??= ioError(error, 'sync part')))
    if (this.#failure !== undefined) throw this.#failure
  }

  async #sync(): Promise<void> {
    try {
      this.#fd ??= await this.#context.port.open(this.#part, constants.O_RDONLY | constants.O_NOFOLLOW)
    } catch (error) {
      throw ioError(error, 'sync part', this.#part)
    }
    if (!this.#ended) await this.#context.threads.datasync(this.#fd)
  }
}
