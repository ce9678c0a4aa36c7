/** Limit of the responses and their keys together. */
const MAX_BYTES = 32 << 20

/**
 * Caches long responses that are the same for every client, as they are sent, so that slow clients share the same
 * bytes. The least recently used are evicted first.
 */
export class Rendered {
  readonly #known = new Map<string, Buffer>()
  readonly #making = new Map<string, Promise<Buffer>>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** `render` is called once for all concurrent requests. @throws its errors */
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
