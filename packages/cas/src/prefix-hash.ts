import { abortError, CasError, shortPart } from './errors.ts'
import type { HashThreads } from './hash-threads.ts'
import type { SessionResult, SessionSpec } from './thread-protocol.ts'

/** Fewer bytes are not worth a message. */
const STEP_BYTES = 2 << 20
const MAX_STEP_BYTES = 64 << 20

interface PrefixSession {
  readonly id: number
  readonly begun: Promise<void>
}

/**
 * Hashes the growing contiguous prefix of a file, in the thread for such files.
 *
 * Invariants: the current session has read `[0, position)` exactly once; at most one run is active, and it stops at
 * `target`. A restart discards the session and all its pending answers.
 */
export class PrefixHash {
  readonly #threads: HashThreads
  readonly #spec: SessionSpec
  readonly #fd: number
  #prefixEnd = 0
  #position = 0
  #target = 0
  #session: PrefixSession | undefined
  #running: Promise<void> | undefined
  #error: unknown
  /** Dropped sessions whose threads may still use the descriptor. */
  readonly #dropping = new Set<Promise<unknown>>()

  constructor(threads: HashThreads, fd: number, spec: SessionSpec) {
    this.#threads = threads
    this.#fd = fd
    this.#spec = spec
  }

  /** Bytes before this were read, or are being read: after a change to them call {@link restart}. */
  get target(): number {
    return this.#target
  }

  /** Announces that `[0, prefixEnd)` is written; hashing continues up to there. */
  advance(prefixEnd: number): void {
    this.#prefixEnd = prefixEnd
    if (this.#due(STEP_BYTES)) this.#start(STEP_BYTES)
  }

  restart(): void {
    const session = this.#session
    this.#session = undefined
    this.#running = undefined
    this.#error = undefined
    this.#position = 0
    this.#target = 0
    this.#prefixEnd = 0
    if (session === undefined) return
    const dropped = this.#threads.follower.call('drop', { session: session.id }).catch(() => undefined)
    this.#dropping.add(dropped)
    void dropped.then(() => this.#dropping.delete(dropped))
  }

  /**
   * Hashes up to `sizeBytes`, all of which is written, and ends the session. @throws the error that hashing failed with
   */
  async finish(sizeBytes: number, signal: AbortSignal): Promise<SessionResult> {
    const onAbort = (): void => {
      this.restart()
      this.#error = abortError(signal)
    }
    if (signal.aborted) throw abortError(signal)
    signal.addEventListener('abort', onAbort)
    try {
      this.#prefixEnd = sizeBytes
      while (this.#error === undefined && this.#position < sizeBytes) {
        if (this.#prefixEnd < sizeBytes)
          throw new CasError('E_INCOMPLETE', 'bytes were invalidated while they were hashed', { sizeBytes })
        this.#start(1)
        await this.#running
      }
      if (this.#error !== undefined) throw this.#error
      const session = this.#begin()
      await session.begun
      const result = await this.#threads.follower.call('finish', { session: session.id })
      this.#session = undefined
      return result
    } catch (error) {
      this.restart()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Resolves when no thread uses the descriptor. */
  async stop(): Promise<void> {
    this.restart()
    await Promise.all(this.#dropping)
  }

  #begin(): PrefixSession {
    if (this.#session !== undefined) return this.#session
    const id = this.#threads.nextSession()
    const begun = this.#threads.follower.call('begin', { session: id, spec: this.#spec })
    begun.catch(() => undefined)
    return (this.#session = { id, begun })
  }

  #due(least: number): boolean {
    return this.#prefixEnd - this.#position >= least
  }

  #start(least: number): void {
    if (this.#running !== undefined || this.#error !== undefined) return
    const session = this.#begin()
    // set before the thread begins: from here on a change of these bytes means a restart.
    this.#target = Math.min(this.#prefixEnd, this.#position + MAX_STEP_BYTES)
    const running = this.#run(session, least).catch((error: unknown) => {
      if (this.#session === session) this.#error = error
    })
    this.#running = running
    void running.then(() => {
      if (this.#running === running) this.#running = undefined
    })
  }

  async #run(session: PrefixSession, least: number): Promise<void> {
    await session.begun
    while (this.#session === session && this.#due(least)) {
      const start = this.#position
      const end = Math.min(this.#prefixEnd, start + MAX_STEP_BYTES)
      this.#target = end
      const { bytes } = await this.#threads.follower.call('pump', { session: session.id, fd: this.#fd, start, end })
      if (this.#session !== session) return
      if (bytes !== end - start) throw shortPart()
      this.#position = end
    }
  }
}
