import type { Flow } from './exchange.ts'
import type { HubSink } from './sink.ts'

/** The caller's sink failed: its error is passed on unchanged, without a retry. */
export class SinkFailure extends Error {
  override readonly name = 'SinkFailure'

  constructor(cause: unknown) {
    super('the sink failed', { cause })
  }
}

/** Write buffers are reused: allocating megabytes per range costs more than copying into them. */
export class Buffers {
  readonly sizeBytes: number
  readonly #kept: Uint8Array[] = []

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes
  }

  take(atMostBytes: number): Uint8Array {
    if (atMostBytes < this.sizeBytes / 2) return new Uint8Array(Math.max(1, atMostBytes))
    return this.#kept.pop() ?? new Uint8Array(this.sizeBytes)
  }

  give(buffer: Uint8Array): void {
    if (buffer.length === this.sizeBytes && this.#kept.length < 32) this.#kept.push(buffer)
  }
}

/**
 * Collects the body of one response into large writes: one buffer is filled while another is written. Invariant: at
 * most two buffers per writer; `#late` holds bytes only while both are full, and the flow is then paused.
 */
export class RangeWriter {
  readonly #sink: HubSink
  readonly #buffers: Buffers
  readonly #flow: Flow
  readonly #onWritten: (bytes: number) => void
  readonly #limitBytes: number
  #offset: number
  #buffer: Uint8Array | undefined
  #filled = 0
  #writing: Promise<void> | undefined
  #late: Uint8Array[] = []
  #failure: SinkFailure | undefined

  /** For short ranges `limitBytes` limits the buffers. */
  constructor(
    sink: HubSink,
    offset: number,
    limitBytes: number,
    buffers: Buffers,
    flow: Flow,
    onWritten: (bytes: number) => void
  ) {
    this.#sink = sink
    this.#offset = offset
    this.#limitBytes = limitBytes
    this.#buffers = buffers
    this.#flow = flow
    this.#onWritten = onWritten
  }

  push(chunk: Uint8Array): void {
    if (this.#failure) return
    if (this.#late.length > 0) this.#late.push(chunk)
    else this.#take(chunk)
  }

  #take(chunk: Uint8Array): void {
    let rest = chunk
    while (rest.length > 0) {
      this.#buffer ??= this.#buffers.take(this.#limitBytes)
      const count = Math.min(rest.length, this.#buffer.length - this.#filled)
      this.#buffer.set(count === rest.length ? rest : rest.subarray(0, count), this.#filled)
      this.#filled += count
      rest = rest.subarray(count)
      if (this.#filled < this.#buffer.length) return
      if (this.#writing) {
        if (rest.length > 0) this.#late.unshift(rest)
        this.#flow.pause()
        return
      }
      this.#write()
    }
  }

  #write(): void {
    const buffer = this.#buffer
    const filled = this.#filled
    if (!buffer || filled === 0) return
    const offset = this.#offset
    this.#offset += filled
    this.#buffer = undefined
    this.#filled = 0
    this.#writing = this.#sink.write(offset, filled === buffer.length ? buffer : buffer.subarray(0, filled)).then(
      () => {
        this.#writing = undefined
        this.#buffers.give(buffer)
        this.#onWritten(filled)
        this.#catchUp()
      },
      (error: unknown) => {
        this.#writing = undefined
        this.#failure = new SinkFailure(error)
        this.#late = []
        this.#flow.abort(this.#failure)
      }
    )
  }

  #catchUp(): void {
    if (this.#buffer && this.#filled === this.#buffer.length) this.#write()
    const late = this.#late
    this.#late = []
    for (const chunk of late) {
      if (this.#late.length > 0) this.#late.push(chunk)
      else this.#take(chunk)
    }
    if (this.#late.length === 0 && !(this.#buffer && this.#filled === this.#buffer.length)) this.#flow.resume()
  }

  /** Writes what was collected, also after a response that broke off: those bytes are valid. @throws SinkFailure */
  async finish(): Promise<void> {
    while (this.#writing || this.#filled > 0 || this.#late.length > 0) {
      if (this.#failure) break
      if (this.#writing) await this.#writing
      else this.#write()
    }
    if (this.#failure) throw this.#failure
  }
}
