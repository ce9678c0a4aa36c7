import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock, Timer } from '@svc/internal-clock'
import type { DownloadLimit } from '@svc/internal-net'
import { type Headers, headerOf } from './headers.ts'
import { leastBytesIn } from './min-rate.ts'

export interface ResponseTimings {
  /** Longest time without a byte: from the request until the head has come as a whole, and within the body. */
  readonly stallMs: number
  /** In each span of this length the body must bring {@link leastBytesIn} it. */
  readonly slowMs: number
  /** Measures both, and the time for a whole body. */
  readonly clock: Clock
  /** Of bodies; those that are read whole are small, and do not wait. Absent: none. */
  readonly downloads?: DownloadLimit | undefined
}

class StallError extends Error {
  override readonly name = 'StallError'
  readonly code: 'ERR_STALLED' | 'ERR_SLOW'

  constructor(code: StallError['code'], bytes: number, spanMs: number) {
    super(`${bytes} bytes in ${spanMs / 1000} s`)
    this.code = code
  }
}

class TooLargeError extends Error {
  override readonly name = 'TooLargeError'
  readonly code = 'ERR_TOO_LARGE'

  constructor(maxBytes: number) {
    super(`answered with more than ${maxBytes} bytes`)
  }
}

/** The part of undici's running request that is used: public types must not name a bundled package. */
interface Controller {
  abort(reason: Error): void
  pause(): void
  resume(): void
}

/** A reader that is behind by this much holds the connection back. */
const HIGH_WATER_BYTES = 1 << 20
/** The same under a limit of downloads: what may not come yet stays with the server. */
const LIMITED_WATER_BYTES = 1
/** Unwanted bodies are read up to this length, so that the connection can be used again, and cut off there. */
const DISCARD_BYTES = 65_536
const DISCARD_MS = 10_000

/**
 * The answer to a request. Its body is read by iterating, once, or by {@link bytes}; whoever does not read it calls {@link discard} or
 * {@link destroy}. A reader that falls behind pauses the connection, and that time is not the server's.
 */
export class Response implements AsyncIterable<Uint8Array> {
  readonly url: URL
  readonly status: number
  readonly headers: Headers
  readonly #body: ResponseHandler
  readonly #clock: Clock

  constructor(url: URL, status: number, headers: Headers, body: ResponseHandler, clock: Clock) {
    this.url = url
    this.status = status
    this.headers = headers
    this.#body = body
    this.#clock = clock
  }

  header(name: string): string | undefined {
    return headerOf(this.headers, name)
  }

  /** The bytes that came before a failure are given before it is thrown; after an abort none are. */
  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    return this.#chunks((turn) => this.#body.paid(turn))
  }

  async *#chunks(wait: ((turn: number) => Promise<void>) | undefined): AsyncGenerator<Uint8Array, void, void> {
    try {
      for (;;) {
        const chunk = await this.#body.next()
        if (chunk === undefined) {
          // only then does undici have the connection for the next request, instead of opening another
          await nextTurn()
          return
        }
        const turn = this.#body.take(chunk.length)
        yield chunk
        await wait?.(turn)
      }
    } finally {
      this.destroy()
    }
  }

  /** All of a small body. @throws an error of code `ERR_TOO_LARGE`; errors of the network */
  async bytes(maxBytes: number, withinMs?: number): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    let length = 0
    const timer =
      withinMs === undefined
        ? undefined
        : this.#clock.after(withinMs, () => this.destroy(new StallError('ERR_SLOW', length, withinMs)))
    try {
      if (Number(this.header('content-length')) > maxBytes) throw new TooLargeError(maxBytes)
      for await (const chunk of this.#chunks(undefined)) {
        length += chunk.length
        if (length > maxBytes) throw new TooLargeError(maxBytes)
        chunks.push(chunk)
      }
    } finally {
      timer?.cancel()
      this.destroy()
    }
    return Buffer.concat(chunks)
  }

  /** For a body that is not wanted. Never rejects. */
  async discard(): Promise<void> {
    await this.bytes(DISCARD_BYTES, DISCARD_MS).catch(() => undefined)
  }

  /** Closes the connection, unless the body has come as a whole. Whoever reads gets the error. */
  destroy(error: Error = new Error('the body is not wanted')): void {
    this.#body.fail(error, true)
  }
}

/** One request under way, from the connection to the last byte of the body. */
export class ResponseHandler {
  readonly #url: URL
  readonly #timings: ResponseTimings
  readonly #signal: AbortSignal | undefined
  readonly #isUpload: boolean
  readonly #head = Promise.withResolvers<Response>()
  #controller: Controller | undefined
  readonly #chunks: Uint8Array[] = []
  #queuedBytes = 0
  #paused = false
  #wasPaused = false
  /** Bytes of the body: in this span, and in total. */
  #arrivedBytes = 0
  #heardBytes = 0
  #isEnded = false
  #error: { readonly error: unknown } | undefined
  #wake: (() => void) | undefined
  #stall: Timer | undefined
  #slow: Timer | undefined

  /** @param isUpload the request may take as long as it needs: no stall before the head has come */
  constructor(url: URL, timings: ResponseTimings, signal: AbortSignal | undefined, isUpload: boolean) {
    this.#url = url
    this.#timings = timings
    this.#signal = signal
    this.#isUpload = isUpload
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (signal?.aborted === true) this.#onAbort()
  }

  /** @throws errors of the network, with their codes; `ERR_STALLED`; on abort the signal's reason */
  get head(): Promise<Response> {
    return this.#head.promise
  }

  /** Ends it with an error. @param forgets drops bytes that have not been read */
  fail(error: unknown, forgets = false): void {
    if (forgets) this.#chunks.length = 0
    if (this.#isEnded || this.#error !== undefined) return
    this.#error = { error }
    this.#settle()
    this.#head.reject(error)
    this.#controller?.abort(error instanceof Error ? error : new Error('aborted', { cause: error }))
  }

  /** The next bytes; undefined after the last. */
  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) {
        this.#queuedBytes -= chunk.length
        if (this.#paused && this.#queuedBytes <= this.#highWaterBytes / 2) this.#resume()
        return chunk
      }
      if (this.#error !== undefined) throw this.#error.error
      if (this.#isEnded) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Charges bytes to the limit of downloads. @returns the turn, for {@link paid} */
  take(bytes: number): number {
    return this.#timings.downloads?.take(bytes) ?? 0
  }

  /** Resolves when more may come under the limit of downloads, or the answer has failed. */
  async paid(turn: number): Promise<void> {
    const { downloads, clock } = this.#timings
    for (;;) {
      const waitMs = downloads?.waitMs(turn) ?? 0
      if (waitMs === 0 || this.#error !== undefined) return
      this.#wasPaused = true
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      const timer = clock.after(waitMs, resolve)
      await promise
      timer.cancel()
    }
  }

  get #highWaterBytes(): number {
    return this.#timings.downloads?.limited === true ? LIMITED_WATER_BYTES : HIGH_WATER_BYTES
  }

  // started here rather than at the dispatch: waiting for a free connection is not a stall.
  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#error !== undefined) return controller.abort(new Error('no longer wanted'))
    if (!this.#isUpload) this.#watch()
  }

  onResponseStart(_controller: Controller, status: number, headers: Headers): void {
    // 1xx responses precede the final one.
    if (status < 200 || this.#error !== undefined) return
    this.#watch()
    const { slowMs, clock } = this.#timings
    this.#slow = clock.every(slowMs, () => {
      if (!this.#wasPaused && this.#arrivedBytes < leastBytesIn(slowMs))
        this.fail(new StallError('ERR_SLOW', this.#arrivedBytes, slowMs))
      this.#arrivedBytes = 0
      this.#wasPaused = this.#paused
    })
    this.#head.resolve(new Response(this.#url, status, headers, this, clock))
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    if (this.#error !== undefined) return
    this.#watch()
    this.#arrivedBytes += chunk.length
    this.#heardBytes += chunk.length
    this.#queuedBytes += chunk.length
    this.#chunks.push(chunk)
    if (!this.#paused && this.#queuedBytes >= this.#highWaterBytes) {
      this.#paused = true
      if (this.#queuedBytes >= HIGH_WATER_BYTES) this.#wasPaused = true
      controller.pause()
    }
    this.#wake?.()
  }

  onResponseEnd(): void {
    if (this.#error !== undefined) return
    this.#isEnded = true
    this.#settle()
    this.#head.reject(new Error('the response ended before its head'))
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.fail(error)
  }

  #watch(): void {
    if (this.#isEnded || this.#error !== undefined) return
    const { stallMs, clock } = this.#timings
    this.#stall?.cancel()
    this.#stall = clock.after(stallMs, () => {
      const heardBytes = this.#heardBytes
      // a thread that was held up first reads what has come meanwhile
      setImmediate(() => {
        if (this.#paused) this.#watch()
        else if (this.#heardBytes === heardBytes) this.fail(new StallError('ERR_STALLED', 0, stallMs))
      })
    })
  }

  #resume(): void {
    this.#paused = false
    this.#watch()
    this.#controller?.resume()
  }

  #settle(): void {
    this.#stall?.cancel()
    this.#slow?.cancel()
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#wake?.()
  }

  readonly #onAbort = (): void => this.fail(this.#signal?.reason, true)
}
