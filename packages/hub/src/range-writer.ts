import { writevSync } from 'node:fs'
import { type Clock, systemClock } from '@svc/internal-clock'

/** Bytes of one write. */
const WRITE_BYTES = 1 << 18
/** Written bytes are reported together up to this many: each report wakes the caller's thread and the hash of the file. */
const REPORT_BYTES = 8 << 20
/** A slow source's bytes are reported this often. */
const REPORT_MS = 100

/** Writing to the file failed; the sink's own `write` will report why. */
export class WriteFailure extends Error {
  override readonly name = 'WriteFailure'
}

/** Where a range goes. */
export interface RangeTarget {
  readonly fd: number
  readonly start: number
  readonly end: number
  /** See `DirectSink`. */
  readonly writeGate?: Int32Array | undefined
}

/**
 * Writes the bytes of one range in a worker thread, and reports them when they are written. Writes are synchronous: a slow disk blocks this
 * thread's sockets, which is the backpressure.
 *
 * Invariant: `[start, reported)` is written and reported, `[reported, at)` is written; what follows waits.
 */
export class RangeWriter {
  readonly #target: RangeTarget
  readonly #onWritten: (start: number, end: number) => void
  readonly #clock: Pick<Clock, 'monotonic'>
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #at: number
  #reported: number
  #reportedAtMs: number

  constructor(target: RangeTarget, onWritten: (start: number, end: number) => void, clock = systemClock) {
    this.#target = target
    this.#onWritten = onWritten
    this.#clock = clock
    this.#at = this.#reported = target.start
    this.#reportedAtMs = clock.monotonic()
  }

  /** Bytes that are still missing. */
  get leftBytes(): number {
    return this.#target.end - this.#at - this.#waitingBytes
  }

  /** Takes the next bytes, of which there are no more than are missing. @throws WriteFailure */
  take(bytes: Uint8Array): void {
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes < WRITE_BYTES && this.leftBytes > 0) return
    this.#write()
    if (this.#at - this.#reported >= REPORT_BYTES || this.#clock.monotonic() - this.#reportedAtMs >= REPORT_MS)
      this.#report()
  }

  /**
   * Resolves when more may be taken: not while the sink takes bytes sooner than its disk keeps them. What is written already can be made
   * durable meanwhile. Undefined: now.
   */
  room(): Promise<void> | undefined {
    const { writeGate } = this.#target
    if (writeGate === undefined || Atomics.load(writeGate, 0) === 0) return undefined
    this.#report()
    return untilOpen(writeGate)
  }

  /** Writes and reports the rest; the writer must not be used afterwards. @throws WriteFailure */
  end(): void {
    try {
      this.#write()
    } finally {
      this.#report()
    }
  }

  #write(): void {
    if (this.#waitingBytes === 0) return
    const [chunks, bytes] = [this.#waiting, this.#waitingBytes]
    this.#waiting = []
    this.#waitingBytes = 0
    try {
      const count = writevSync(this.#target.fd, chunks, this.#at)
      if (count < bytes) throw new Error(`${count} of ${bytes} bytes were written`)
    } catch (cause) {
      throw new WriteFailure('the file could not be written', { cause })
    }
    this.#at += bytes
  }

  #report(): void {
    const start = this.#reported
    if (start === this.#at) return
    this.#reported = this.#at
    this.#reportedAtMs = this.#clock.monotonic()
    this.#onWritten(start, this.#at)
  }
}

async function untilOpen(gate: Int32Array): Promise<void> {
  while (Atomics.load(gate, 0) !== 0) await Atomics.waitAsync(gate, 0, 1).value
}
