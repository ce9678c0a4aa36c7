import { constants } from 'node:fs'
import { ioError } from './errors.ts'
import type { StoreContext } from './store-context.ts'

/** Sync whenever this many bytes were added. */
const STEP_BYTES = 64 << 20

/**
 * Syncs a growing part file while its later bytes are still being hashed, so that the last fsync has little left to do.
 *
 * Invariants: at most one sync runs at a time; the descriptor belongs to this object alone, so that a write error it
 * observes is also reported to the fsync that publishes the part; no sync begins after `end`.
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

  /** Announces that this many bytes are written, or are about to be. */
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

  /**
   * Waits and closes; idempotent. @throws CasError the failure of a sync, which is final: the part must be discarded
   */
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
    await this.#context.datasync(this.#fd, this.#part, () => !this.#ended)
  }
}
