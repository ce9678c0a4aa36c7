import { Buffer } from 'node:buffer'

/** A reader of bytes as they come: a generator that goes on when there are more. */
export type ByteScript<T> = Generator<void, T>

/** The bytes of the other side that a {@link ByteScript} has not taken yet. */
export class IncomingBytes {
  #held: Buffer = Buffer.alloc(0)

  get held(): Buffer {
    return this.#held
  }

  add(bytes: Uint8Array): void {
    this.#held = Buffer.concat([this.#held, bytes])
  }

  *take(count: number): ByteScript<Buffer> {
    while (this.#held.length < count) yield
    const taken = this.#held.subarray(0, count)
    this.#held = this.#held.subarray(count)
    return taken
  }

  takeAll(): Buffer {
    const all = this.#held
    this.#held = Buffer.alloc(0)
    return all
  }
}
