/**
 * Bytes per read and write. Measured: over a Unix socket larger reads than 1 MiB are no faster (the row blob of
 * bench/).
 */
const CHUNK_BYTES = 1 << 20
const POOLED_BUFFERS = 16

/**
 * Lends the buffers of blob responses. A response holds at most two; buffers beyond the pool's bound are made as needed
 * and dropped afterwards, so that idle memory is bounded and a slow reader never makes another one wait.
 *
 * Each buffer is a mapping of its own, which `resize` empties at once. What comes from the C library's heap is freed when it is collected,
 * and stays with the heap even then: measured, 200 slow readers left 250 MiB behind.
 */
export class BufferPool {
  readonly #idle: Buffer[] = []
  readonly #chunkBytes: number

  /** Smaller chunks where strangers decide how many responses there are. */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes
  }

  take(): Buffer {
    return this.#idle.pop() ?? mapped(this.#chunkBytes)
  }

  /** Takes a buffer back that {@link take} gave, whole and once; nobody may use it, or a view of it, afterwards. */
  give(buffer: Buffer): void {
    if (this.#idle.length < POOLED_BUFFERS) this.#idle.push(buffer)
    else unmap(buffer)
  }
}

const mapped = (sizeBytes: number): Buffer =>
  Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes)

const unmap = ({ buffer }: Buffer): void => (buffer as ArrayBuffer).resize(0)
