import { abortError, CasError } from './errors.ts'
import type { HashThread } from './hash-thread.ts'
import type { HashThreads } from './hash-threads.ts'
import type { SessionResult, SessionSpec } from './thread-protocol.ts'

/** Fewer bytes are not worth a message. */
const STEP_BYTES = 2 << 20
const MAX_STEP_BYTES = 64 << 20

/** Smaller pieces are read from the file together: a message costs as much as reading 256 KiB. */
const MIN_HELD_BYTES = 1 << 20
/**
 * Bound, over all stores of the process, on held bytes after a gap: the writers need memory to fill the gap with. Bytes
 * that directly follow the prefix are held without this bound, because hashing them needs nothing else. A writer that is
 * faster than the hashing thread therefore waits for it.
 */
const MAX_AHEAD_BYTES = 16 << 20
/** Calls in flight, so that the thread has work while an answer is on its way. */
const FEEDS = 4
let aheadBytes = 0

/** Bytes of the file that are still in shared memory, so that they need not be read. */
interface Held {
  readonly start: number
  readonly end: number
  readonly block: SharedArrayBuffer
  /** Gives the memory back to the writer. Idempotent. */
  readonly release: () => void
}

interface Session {
  readonly id: number
  readonly thread: HashThread
  readonly begun: Promise<void>
}

/**
 * Hashes the growing contiguous prefix of a file, in the thread for such files: from the writer's memory while it is
 * held, otherwise from the file.
 *
 * Invariants: the current session has read `[0, position)` exactly once; at most one run is active, and it stops at
 * `target`; a piece in `#held` was not read yet. A restart discards the session and all its pending answers.
 */
export class PrefixHash {
  readonly #threads: HashThreads
  readonly #spec: SessionSpec
  readonly #fd: number
  #prefixEnd = 0
  #position = 0
  #target = 0
  #session: Session | undefined
  #running: Promise<void> | undefined
  #error: unknown
  /** By start offset. */
  readonly #held = new Map<number, Held>()
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

  /**
   * Holds the bytes at `start`, which the file has as well, until they are hashed; the promise resolves then. Undefined
   * if they are not needed. To be called before {@link advance} to their end.
   */
  hold(start: number, bytes: Uint8Array): Promise<void> | undefined {
    const { buffer, byteOffset, length } = bytes
    if (!(buffer instanceof SharedArrayBuffer) || byteOffset !== 0 || length < MIN_HELD_BYTES) return undefined
    if (start < this.#target || this.#held.has(start) || this.#error !== undefined) return undefined
    // A resumed file has a long prefix to be read first: nobody's memory waits for that.
    if (start - this.#position > MAX_STEP_BYTES) return undefined
    const ahead = start > this.#prefixEnd ? length : 0
    if (ahead > 0 && Math.max(start - this.#prefixEnd, aheadBytes + ahead) > MAX_AHEAD_BYTES) return undefined
    aheadBytes += ahead
    return new Promise((resolve) => {
      let isHeld = true
      const release = (): void => {
        if (isHeld) aheadBytes -= ahead
        isHeld = false
        resolve()
      }
      this.#held.set(start, { start, end: start + length, block: buffer, release })
    })
  }

  /** Releases what is held of `[start, end)`. */
  letGo(start: number, end: number): void {
    for (const held of this.#held.values()) {
      if (held.end <= start || held.start >= end) continue
      this.#held.delete(held.start)
      held.release()
    }
  }

  restart(): void {
    const session = this.#session
    this.#session = undefined
    this.#running = undefined
    this.#error = undefined
    this.#position = 0
    this.#target = 0
    this.#prefixEnd = 0
    this.letGo(0, Number.POSITIVE_INFINITY)
    if (session === undefined) return
    const dropped = session.thread.call('drop', { session: session.id }).catch(() => undefined)
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
          throw new CasError('E_INCOMPLETE', 'bytes were taken back while they were hashed', { sizeBytes })
        this.#start(1)
        await this.#running
      }
      if (this.#error !== undefined) throw this.#error
      const session = this.#begin()
      await session.begun
      const result = await session.thread.call('finish', { session: session.id })
      this.#session = undefined
      return result
    } catch (error) {
      this.restart()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Resolves when no thread uses the descriptor any longer. */
  async stop(): Promise<void> {
    this.restart()
    await Promise.all(this.#dropping)
  }

  #begin(): Session {
    if (this.#session !== undefined) return this.#session
    const { thread, release } = this.#threads.takeFollower()
    const id = this.#threads.nextSession()
    const begun = thread.call('begin', { session: id, spec: this.#spec })
    begun.catch(() => undefined)
    // An idle session does not count as load on its thread.
    release()
    return (this.#session = { id, thread, begun })
  }

  /** Whether there is enough to hash to be worth a message. */
  #due(least: number): boolean {
    return this.#prefixEnd - this.#position >= least || this.#isHeld(this.#position)
  }

  #isHeld(position: number): boolean {
    const held = this.#held.get(position)
    return held !== undefined && held.end <= this.#prefixEnd
  }

  #start(least: number): void {
    if (this.#running !== undefined || this.#error !== undefined) return
    const session = this.#begin()
    // Set before the thread begins: from here on a change of these bytes means a restart.
    this.#target = Math.min(this.#prefixEnd, this.#position + MAX_STEP_BYTES)
    const running = this.#run(session, least).catch((error: unknown) => {
      if (this.#session !== session) return
      this.#error = error
      this.letGo(0, Number.POSITIVE_INFINITY)
    })
    this.#running = running
    void running.then(() => {
      if (this.#running === running) this.#running = undefined
    })
  }

  async #run(session: Session, least: number): Promise<void> {
    session.thread.passes++
    try {
      await session.begun
      while (this.#session === session && this.#due(least)) {
        const end = await (this.#isHeld(this.#position) ? this.#feed(session) : this.#pump(session))
        if (this.#session !== session) return
        this.#position = end
      }
    } finally {
      session.thread.passes--
    }
  }

  /** Hashes the held bytes that follow the position; returns where they end. */
  async #feed(session: Session): Promise<number> {
    const feeds: Promise<void>[] = []
    let end = this.#position
    while (this.#session === session && this.#isHeld(end)) {
      const held = this.#held.get(end) as Held
      this.#held.delete(end)
      end = held.end
      this.#target = Math.max(this.#target, end)
      const request = { session: session.id, block: held.block, length: held.end - held.start }
      const feed = session.thread.call('feed', request).finally(held.release)
      feed.catch(() => undefined)
      feeds.push(feed)
      if (feeds.length === FEEDS) await feeds.shift()
    }
    await Promise.all(feeds)
    return end
  }

  /** Hashes from the file, up to the next held bytes; returns where they begin. */
  async #pump(session: Session): Promise<number> {
    const start = this.#position
    let end = Math.min(this.#prefixEnd, start + MAX_STEP_BYTES)
    for (const held of this.#held.values()) if (held.start > start) end = Math.min(end, held.start)
    this.#target = end
    const { bytes } = await session.thread.call('pump', { session: session.id, fd: this.#fd, start, end })
    if (this.#session === session && bytes !== end - start)
      throw new CasError('E_IO', 'the part file is shorter than what was written to it', { operation: 'read part' })
    return end
  }
}
