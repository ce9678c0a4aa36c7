import { yieldToEventLoop } from '@svc/internal-concurrency'
import { type FilePort, writeFullySync } from '@svc/internal-files'
import { type BlockPipe, PipeSender, PipeTaker, READ_BYTES } from './block-pipe.ts'
import { abortError, ioError } from './errors.ts'
import { discardPart, NEW_PART } from './part-file.ts'
import { oversize, PassHasher } from './pass-hasher.ts'
import type { SessionResult, SessionSpec } from './thread-protocol.ts'

const PROGRESS_BYTES = 4 << 20

export interface PumpSource {
  readonly fd: number
  /** Default 0. */
  readonly start?: number | undefined
  /** Default: the end of the file. */
  readonly end?: number | undefined
  /** Receives each block as well. */
  readonly forward?: BlockPipe | undefined
  /** Called with the count of bytes, every few megabytes. */
  readonly onProgress?: ((bytes: number) => void) | undefined
}

/** This thread's read buffer. All sessions share it, so none may use it across an await. */
let scratch: Uint8Array | undefined

/**
 * One pass over a blob in a worker thread.
 *
 * Invariants: bytes arrive in order; `part` exists on disk and `#partFd` is open from `begin` until `finish` (which
 * hands the descriptor over) or `drop` (which closes and deletes).
 */
export class HashSession {
  readonly #port: FilePort
  readonly #spec: SessionSpec
  readonly #hasher: PassHasher
  #partFd: number | undefined
  #dropped = false
  #failure: unknown
  #pumping: Promise<unknown> | undefined
  #from: PipeTaker | undefined

  private constructor(port: FilePort, spec: SessionSpec, hasher: PassHasher) {
    this.#port = port
    this.#spec = spec
    this.#hasher = hasher
  }

  static async begin(port: FilePort, spec: SessionSpec, from?: BlockPipe): Promise<HashSession> {
    const session = new HashSession(port, spec, await PassHasher.create(spec))
    if (spec.part !== undefined) {
      try {
        session.#partFd = port.openSync(spec.part, NEW_PART, 0o600)
      } catch (error) {
        throw ioError(error, 'create part', spec.part)
      }
    }
    if (from !== undefined) session.#from = new PipeTaker(from, (bytes) => session.feed(bytes))
    return session
  }

  /** Takes the next bytes. After a failure no more are accepted. */
  feed(bytes: Uint8Array): void {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#dropped) throw abortError()
    try {
      const { maxBytes, part } = this.#spec
      const position = this.#hasher.sizeBytes
      if (maxBytes !== undefined && position + bytes.length > maxBytes) throw oversize(maxBytes)
      this.#hasher.update(bytes)
      if (this.#partFd !== undefined) this.#write(this.#partFd, bytes, position, part)
    } catch (error) {
      this.#failure = error
      throw error
    }
  }

  #write(fd: number, bytes: Uint8Array, position: number, part: string | undefined): void {
    try {
      writeFullySync(this.#port, fd, bytes, position)
    } catch (error) {
      throw ioError(error, 'write part', part)
    }
  }

  /** Reads a descriptor into the session; returns the number of bytes. */
  async pump(from: PumpSource): Promise<number> {
    const run = this.#pump(from)
    this.#pumping = run.catch(() => undefined)
    return run
  }

  async #pump({ fd, start = 0, end, forward, onProgress }: PumpSource): Promise<number> {
    const sender = forward === undefined ? undefined : new PipeSender(forward)
    let position = start
    let told = start
    try {
      while (end === undefined || position < end) {
        if (this.#dropped) throw abortError()
        const block = sender === undefined ? (scratch ??= new Uint8Array(READ_BYTES)) : await sender.next()
        const want = end === undefined ? block.length : Math.min(block.length, end - position)
        let count: number
        try {
          count = this.#port.readSync(fd, block, 0, want, position)
        } catch (error) {
          throw ioError(error, 'read source')
        }
        if (count === 0) break
        const bytes = block.subarray(0, count)
        sender?.send(count)
        this.feed(bytes)
        position += count
        if (onProgress !== undefined && position - told >= PROGRESS_BYTES) {
          told = position
          onProgress(position - start)
        }
        // yield, so that an abort, or small files queued behind a large one, need not wait for its end. After a short
        // read only the end of the file is left, so small files pass without yielding.
        if (count === want) await yieldToEventLoop()
      }
      await sender?.drain()
      return position - start
    } finally {
      sender?.close()
    }
  }

  /** Ends the pass; the caller takes over the part's descriptor. */
  finish(): SessionResult {
    if (this.#failure !== undefined) throw this.#failure
    const result = this.#hasher.finish()
    const partFd = this.#partFd
    this.#partFd = undefined
    this.#from?.close()
    return { ...result, partFd }
  }

  /** Stops and cleans up; never throws. */
  async drop(): Promise<void> {
    this.#dropped = true
    await this.#pumping
    this.#from?.close()
    if (this.#partFd === undefined) return
    const fd = this.#partFd
    this.#partFd = undefined
    discardPart(this.#port, fd, this.#spec.part)
  }
}
