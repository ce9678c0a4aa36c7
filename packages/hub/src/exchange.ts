import type { IncomingHttpHeaders } from 'node:http'
import { leastBytesIn } from '@svc/internal-net'
import type { Dispatcher } from 'undici'

export interface ResponseHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** A body's consumer controls the stream with these. */
export interface Flow {
  pause(): void
  resume(): void
  /** Ends the response; the exchange rejects with this error. */
  abort(error: Error): void
}

export interface BodyConsumer {
  /** May still be called after `pause`, with bytes that had already arrived. The consumer owns the chunk. */
  onData(chunk: Uint8Array): void
}

export interface ExchangeRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
  /** Longest time without a byte, before the head and within the body. */
  readonly stallMs: number
  /** In each span of this length, the body must bring {@link leastBytesIn} it. */
  readonly slowMs: number
}

class StallError extends Error {
  override readonly name = 'StallError'
  readonly code: 'ERR_STALLED' | 'ERR_SLOW'

  constructor(code: StallError['code'], bytes: number, spanMs: number) {
    super(`${bytes} bytes in ${spanMs / 1000} s`)
    this.code = code
  }
}

/** Unwanted bodies are read up to this length, so that the connection can be reused, and cut off there. */
const DRAIN_BYTES = 65_536

/**
 * One GET, without redirects or retries. `onHead` returns the consumer of the body (undefined: none); if it throws, the
 * response is aborted. Resolves after the last byte; rejects with the network's error, the consumer's, or the signal's
 * reason.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  onHead: (head: ResponseHead, flow: Flow) => BodyConsumer | undefined
): Promise<ResponseHead> {
  const { url, headers, signal, stallMs, slowMs } = request
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let settled = false
    let head: ResponseHead | undefined
    let consumer: BodyConsumer | undefined
    let drained = 0
    let paused = false
    let stall: NodeJS.Timeout | undefined
    let slow: NodeJS.Timeout | undefined
    let arrived = 0
    // while the consumer is full nothing is read, which is not the source's fault
    let wasPaused = false

    const settle = (error: unknown) => {
      if (settled) return
      settled = true
      clearTimeout(stall)
      clearInterval(slow)
      signal?.removeEventListener('abort', onAbort)
      if (error === undefined && head) resolve(head)
      else reject(error)
    }
    const breakOff = (error: unknown) => {
      settle(error)
      controller?.abort(error instanceof Error ? error : new Error('aborted', { cause: error }))
    }
    const onAbort = () => breakOff(signal?.reason)
    if (signal?.aborted) return settle(signal.reason)
    signal?.addEventListener('abort', onAbort, { once: true })

    const flow: Flow = {
      pause: () => {
        paused = wasPaused = true
        controller?.pause()
      },
      resume: () => {
        if (settled || !paused) return
        paused = false
        stall?.refresh()
        controller?.resume()
      },
      abort: breakOff
    }

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(given) {
        controller = given
        if (settled) return given.abort(new Error('no longer wanted'))
        // Started here rather than at the dispatch: waiting for a free connection is not a stall, nor is a consumer
        // that is full.
        stall = setTimeout(
          () => (paused ? stall?.refresh() : breakOff(new StallError('ERR_STALLED', 0, stallMs))),
          stallMs
        )
      },
      onResponseStart(_controller, status, responseHeaders) {
        // 1xx responses precede the final one.
        if (settled || status < 200) return
        stall?.refresh()
        head = { status, headers: responseHeaders }
        slow = setInterval(() => {
          if (!wasPaused && arrived < leastBytesIn(slowMs)) breakOff(new StallError('ERR_SLOW', arrived, slowMs))
          arrived = 0
          wasPaused = paused
        }, slowMs)
        try {
          consumer = onHead(head, flow)
        } catch (error) {
          breakOff(error)
        }
      },
      onResponseData(_controller, chunk) {
        if (settled) return
        stall?.refresh()
        arrived += chunk.length
        if (consumer) {
          try {
            consumer.onData(chunk)
          } catch (error) {
            breakOff(error)
          }
          return
        }
        drained += chunk.length
        if (drained > DRAIN_BYTES) {
          settle(undefined)
          controller?.abort(new Error('body not wanted'))
        }
      },
      onResponseEnd: () => settle(head ? undefined : new Error('the response ended before its head')),
      onResponseError: (_controller, error) => settle(error)
    }
    dispatcher.dispatch(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'GET',
        headers: { ...headers },
        headersTimeout: 0,
        bodyTimeout: 0
      },
      handler
    )
  })
}
