import { orAbort } from '@svc/internal-concurrency'
import { abortError } from './errors.ts'
import { oversize } from './pass-hasher.ts'

/** Reads a stream into our own buffers. A chunk is used up before the next one is requested. */
export class StreamReader {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #maxBytes: number | undefined
  readonly #signal: AbortSignal
  #rest: Uint8Array = new Uint8Array(0)
  #received = 0
  ended = false

  constructor(source: AsyncIterable<Uint8Array>, maxBytes: number | undefined, signal: AbortSignal) {
    this.#iterator = source[Symbol.asyncIterator]()
    this.#maxBytes = maxBytes
    this.#signal = signal
  }

  get bytesTaken(): number {
    return this.#received - this.#rest.length
  }

  /** A new buffer with the next bytes, at most `limit`; it is shorter only at the end. */
  async upTo(limit: number): Promise<Uint8Array> {
    const buffer = new Uint8Array(Math.min(limit, this.#maxBytes ?? limit))
    const length = await this.fill(buffer, 0)
    // look one chunk ahead, to know whether the stream ends here: a short stream is ingested in another way.
    if (length === buffer.length) await this.#next()
    return length === buffer.length ? buffer : buffer.slice(0, length)
  }

  /** Fills `target` from offset `length`; returns the length reached, which is short only at the end. */
  async fill(target: Uint8Array, length: number): Promise<number> {
    while (length < target.length) {
      if (this.#rest.length === 0 && !(await this.#next())) break
      const part = this.#rest.subarray(0, target.length - length)
      target.set(part, length)
      length += part.length
      this.#rest = this.#rest.subarray(part.length)
    }
    return length
  }

  /** Ends the source early. Its clean-up may take time; nobody waits for it. */
  breakOff(): void {
    if (this.ended) return
    this.ended = true
    void Promise.resolve(this.#iterator.return?.()).catch(() => undefined)
  }

  async #next(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.ended) {
      const { done, value } = await orAbort(this.#iterator.next(), this.#signal, abortError)
      if (done === true) {
        this.ended = true
        break
      }
      if (!(value instanceof Uint8Array)) throw new TypeError('a source yields Uint8Array chunks')
      this.#received += value.length
      if (this.#maxBytes !== undefined && this.#received > this.#maxBytes) throw oversize(this.#maxBytes)
      this.#rest = value
    }
    return this.#rest.length > 0
  }
}
