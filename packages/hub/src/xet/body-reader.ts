import { XetAnswerError } from './answer-error.ts'

/** Reads a body in pieces of known lengths. It holds no more than the longest piece and one chunk of the network. */
export class BodyReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held: Uint8Array = new Uint8Array(0)

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#chunks = body[Symbol.asyncIterator]()
  }

  /** Valid until the next call. @throws XetAnswerError if the body ends first; errors of the network */
  async take(count: number): Promise<Uint8Array> {
    if (this.#held.length < count) {
      const parts = [this.#held]
      let length = this.#held.length
      while (length < count) {
        const { value, done } = await this.#chunks.next()
        if (done === true) throw new XetAnswerError('a body ends early')
        parts.push(value)
        length += value.length
      }
      this.#held = Buffer.concat(parts)
    }
    const taken = this.#held.subarray(0, count)
    this.#held = this.#held.subarray(count)
    return taken
  }

  /** A line without its end. @throws XetAnswerError for one of more than `maxBytes` */
  async line(maxBytes: number): Promise<string> {
    let line = ''
    for (;;) {
      const byte = (await this.take(1))[0]!
      if (byte === 0x0a) return line.replace(/\r$/, '')
      line += String.fromCharCode(byte)
      if (line.length > maxBytes) throw new XetAnswerError('a head is too long')
    }
  }

  /** Stops reading, at any point. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }
}
