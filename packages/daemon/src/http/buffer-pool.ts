import { loopBudget } from '@svc/internal-concurrency'

/**
 * Bytes per read and write. Measured: over a Unix socket larger reads than 1 MiB are no faster (the row blob of
 * bench/).
 */
const CHUNK_BYTES = 1 << 20
const POOLED_BUFFERS = 16

/**
 * Provides the buffers of blob responses. A response uses at most two. The first sixteen are kept for good; buffers beyond
 * them are created on demand and dropped afterwards, so that idle memory is limited and a slow client never makes another
 * one wait.
 *
 * Each buffer beyond them is a memory mapping of its own, which `resize` releases. Memory from the C library's heap
 * is released only by garbage collection, and even then stays with the heap: measured, 200 slow readers left 250 MiB
 * behind. The kept buffers are not resizable: reading into such a buffer and sending from it costs a quarter more CPU.
 * A release takes 0.3 ms, and hundreds of readers may leave at once.
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

  /** Returns a buffer from {@link take}, whole and once; nobody may use it, or a view of it, afterwards. */
  release(buffer: Buffer): void {
    const memory = buffer.buffer as ArrayBuffer
    if (memory.resizable) loopBudget.later('blobs', () => memory.resize(0))
    else this.#idle.push(buffer)
  }
}

const mapped = (sizeBytes: number): Buffer =>
  Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes)
