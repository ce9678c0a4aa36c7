import { loopBudget } from '@svc/internal-concurrency'

/** Measured: over a Unix socket, reads of more than 1 MiB are no faster (the row blob of bench/). */
const CHUNK_BYTES = 1 << 20
const POOLED_BUFFERS = 16

/**
 * The buffers of blob responses, at most two each. Sixteen are kept for good; more are created on demand and dropped
 * afterwards, so that idle memory is limited and no slow client makes another wait. Those are memory mappings, which
 * `resize` releases at once: measured, 200 slow readers left 250 MiB behind in the C library's heap. The kept ones are
 * not resizable, which would cost a quarter more CPU. A release takes 0.3 ms, and hundreds of readers may leave at
 * once.
 */
export class BufferPool {
  readonly #idle: Buffer[] = []
  readonly #chunkBytes: number
  #kept = 0

  /** Use smaller chunks where strangers decide how many responses there are. */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes
  }

  acquire(): Buffer {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    if (this.#kept === POOLED_BUFFERS) return mapped(this.#chunkBytes)
    this.#kept++
    return Buffer.allocUnsafeSlow(this.#chunkBytes)
  }

  /** Returns a buffer from {@link acquire}, whole and once; it must not be used afterwards, nor a view of it. */
  release(buffer: Buffer): void {
    const memory = buffer.buffer as ArrayBuffer
    if (memory.resizable) loopBudget.later('blobs', () => memory.resize(0))
    else this.#idle.push(buffer)
  }
}

const mapped = (sizeBytes: number): Buffer =>
  Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes)
