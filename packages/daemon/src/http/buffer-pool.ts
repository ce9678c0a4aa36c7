/**
 * Bytes per read and write. Measured: over a Unix socket larger reads than 1 MiB are no faster (the row blob of
 * bench/).
 */
const CHUNK_BYTES = 1 << 20
const POOLED_BUFFERS = 16

/**
 * Lends the buffers of blob responses. A response holds at most two; buffers beyond the pool's bound are made as needed
 * and dropped afterwards, so that idle memory is bounded and a slow reader never makes another one wait.
 */
export class BufferPool {
  readonly #idle: Buffer[] = []
  readonly #chunkBytes: number

  /** Smaller chunks where strangers decide how many responses there are. */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes
  }

  take(): Buffer {
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(this.#chunkBytes)
  }

  give(buffer: Buffer): void {
    if (this.#idle.length < POOLED_BUFFERS && buffer.length === this.#chunkBytes) this.#idle.push(buffer)
  }
}
