/** Of answers and of what they are known by. */
const MAX_BYTES = 32 << 20

/**
 * Answers that are long and the same for everybody, as they are sent. Whoever reads one slowly holds bytes that all the others share.
 * The least recently asked for goes first.
 */
export class Rendered {
  readonly #known = new Map<string, Buffer>()
  readonly #making = new Map<string, Promise<Buffer>>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** `render` is called once for all who ask at the same time. @throws what it throws */
  async get(key: string, render: () => Promise<unknown>): Promise<Buffer> {
    const known = this.#known.get(key)
    if (known !== undefined) {
      this.#known.delete(key)
      this.#known.set(key, known)
      return known
    }
    const making = this.#making.get(key) ?? this.#make(key, render)
    this.#making.set(key, making)
    try {
      return await making
    } finally {
      this.#making.delete(key)
    }
  }

  async #make(key: string, render: () => Promise<unknown>): Promise<Buffer> {
    const bytes = Buffer.from(JSON.stringify(await render()))
    this.#known.set(key, bytes)
    this.#bytes += key.length + bytes.length
    for (const [oldest, { length }] of this.#known) {
      if (this.#bytes <= this.#maxBytes) break
      this.#known.delete(oldest)
      this.#bytes -= oldest.length + length
    }
    return bytes
  }
}
