import { type ByteRanges, cutRanges, gapsOf, totalBytes } from '@svc/internal-byte-ranges'
import { forEachLimited, type Gate, orAbort, type Rank } from '@svc/internal-concurrency'
import { Backoff, type BackoffTimings, DownloadError, type RetryWait } from './backoff.ts'
import { BodyRangeError, type ByteSpan, bodyRange } from './body-range.ts'
import { MinRate } from './min-rate.ts'
import type { HostTurn, Paces } from './pace.ts'
import type { Response } from './response.ts'

/** A file under construction, written in any order, that knows what it holds. */
export interface RangeSink {
  readonly sizeBytes: number
  /** The ranges that need not be fetched. */
  ranges(): ByteRanges
  /** The caller may reuse the bytes when it resolves. There are concurrent calls at different offsets. */
  write(offset: number, bytes: Uint8Array): Promise<void>
  /** Forgets `[start, end)`, which is then fetched again. Needed for sources whose bytes may change. */
  unmark?(start: number, end: number): void
}

/** Who has the bytes, in the terms of its protocol. */
export interface RangeSource {
  /**
   * Requests a span, or the whole file. Undefined: the source has fetched the span by itself, and called `written` for what it wrote, in
   * order.
   * @param turn to be taken at each host before it is asked, if the download has a pace
   */
  open(
    span: ByteSpan | undefined,
    signal: AbortSignal,
    written: (end: number) => void,
    turn: HostTurn | undefined
  ): Promise<Response | undefined>
  /** @throws DownloadError for an answer other than a 200 or 206, or one that is refused */
  check?(response: Response): void
  /** What any other failure means: a DownloadError, or what ends the download. `url` is undefined if nobody answered. */
  failure(error: unknown, url: URL | undefined): unknown
  /** Resolves after the first answer: until then one request at a time is enough. */
  readonly ready?: Promise<unknown>
}

interface DownloadSettings {
  readonly signal?: AbortSignal | undefined
  readonly timings: BackoffTimings
  /** Called with the total of bytes in the sink, not a delta. */
  readonly onProgress?: ((bytesDone: number) => void) | undefined
  readonly onWaiting?: ((waiting: RetryWait) => void) | undefined
  /** Size of one range request. Default: what is missing in one place. */
  readonly rangeBytes?: number
  /** Ranges at once. Default 1. */
  readonly parallel?: number
  /** Bytes collected before a write to the sink. Default 1 MiB. */
  readonly writeBytes?: number
  /** Each request takes a place in it. */
  readonly lane?: Gate | undefined
  /** Of the hosts that the source asks: in it, each request takes a place there too. */
  readonly paces?: Paces | undefined
  /** Among those that wait for a place. */
  readonly rank?: Rank | undefined
}

/** The caller's sink failed: its error is passed on unchanged, without a retry. */
export class SinkFailure extends Error {
  override readonly name = 'SinkFailure'

  constructor(cause: unknown) {
    super('the sink failed', { cause })
  }
}

/** The sink does not hold all that was written to it. */
export class ForgetfulSinkError extends Error {
  override readonly name = 'ForgetfulSinkError'
}

const WRITE_BYTES = 1 << 20

/**
 * Fetches what a sink lacks of `span`, in ranges, and tries again for as long as there is progress. The bytes are not verified.
 * @throws errors of the source, of the sink as they are; on abort the signal's reason
 */
export const download = (
  source: RangeSource,
  sink: RangeSink,
  settings: DownloadSettings,
  span: ByteSpan = { start: 0, end: sink.sizeBytes }
): Promise<void> => new Download(source, sink, settings, span).run()

/** A range under way: `start` advances as bytes are written. */
interface Piece {
  start: number
  readonly end: number
}

/** Invariant: when `run` has settled, no request and no write of it is under way. */
class Download {
  readonly #source: RangeSource
  readonly #sink: RangeSink
  readonly #settings: DownloadSettings
  readonly #span: ByteSpan
  #bytesDone = 0
  /** The server ignores ranges. */
  #oneStream = false

  constructor(source: RangeSource, sink: RangeSink, settings: DownloadSettings, span: ByteSpan) {
    this.#source = source
    this.#sink = sink
    this.#settings = settings
    this.#span = span
  }

  async run(): Promise<void> {
    const { signal, rangeBytes = Number.POSITIVE_INFINITY, parallel = 1 } = this.#settings
    for (let restarted = false; ; ) {
      signal?.throwIfAborted()
      const gaps = this.#gaps()
      if (gaps.length === 0) return
      this.#bytesDone = totalBytes(this.#sink.ranges())
      this.#settings.onProgress?.(this.#bytesDone)
      try {
        const ranges = this.#oneStream ? [[0, this.#span.end] as const] : tapered(cutRanges(gaps, rangeBytes), parallel)
        await this.#inParallel(
          ranges.map(([start, end]) => ({ start, end })),
          parallel
        )
        if (this.#gaps().length > 0) throw new SinkFailure(new ForgetfulSinkError())
        return
      } catch (error) {
        if (error instanceof SinkFailure) throw error.cause
        if (!(error instanceof DownloadError)) throw error
        if (error.kind === 'no-ranges' && !this.#oneStream) this.#oneStream = true
        else if (error.kind === 'changed') {
          // nobody knows which of the bytes are of which file, also later
          this.#sink.unmark?.(0, this.#sink.sizeBytes)
          if (restarted) throw error.error
          restarted = true
        } else throw error.error
      }
    }
  }

  #gaps(): [number, number][] {
    return gapsOf(this.#sink.ranges(), this.#span.start, this.#span.end)
  }

  #inParallel(pieces: readonly Piece[], count: number): Promise<void> {
    const { ready } = this.#source
    return forEachLimited(pieces, count, this.#settings.signal, async (piece, signal) => {
      if (piece !== pieces[0] && ready) await orAbort(ready, signal, () => signal.reason)
      await this.#piece(piece, signal)
    })
  }

  async #piece(piece: Piece, signal: AbortSignal): Promise<void> {
    const { timings, onWaiting, lane, rank, paces } = this.#settings
    const backoff = new Backoff(timings, onWaiting)
    const rate = new MinRate()
    while (this.#oneStream ? this.#gaps().length > 0 : piece.start < piece.end) {
      const before = this.#bytesDone
      const begin = rate.pause()
      const attempt = (): Promise<void> => {
        begin()
        return this.#inTurn(piece, signal, paces?.turn(rank))
      }
      try {
        await (lane === undefined ? attempt() : lane.run(signal, attempt, rank))
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof DownloadError) || error.kind === 'no-ranges' || error.kind === 'changed') throw error
        // progress of any range shows that the source works; a range that fails on its own uses up its attempts when
        // the others are done. A trickle does not count: it would never end.
        if (rate.keepsUpWith(this.#bytesDone - before)) backoff.progress()
        await backoff.after(error, signal)
      }
    }
  }

  /** An attempt that ends early, without an error, if its host is to get fewer requests. */
  async #inTurn(piece: Piece, outer: AbortSignal, turn: HostTurn | undefined): Promise<void> {
    if (turn === undefined) return this.#attempt(piece, outer, turn)
    turn.keepsOn = this.#oneStream
    let outcome: Parameters<HostTurn['end']>[0] = 'failed'
    try {
      await this.#attempt(piece, AbortSignal.any([outer, turn.signal]), turn)
      outcome = 'done'
    } catch (error) {
      if (turn.signal.aborted && error === turn.signal.reason) return
      if (error instanceof DownloadError && (error.kind === 'busy' || error.kind === 'wait'))
        outcome = { refusedMs: error.waitMs ?? 0 }
      throw error
    } finally {
      turn.end(outcome)
    }
  }

  async #attempt(piece: Piece, signal: AbortSignal, turn: HostTurn | undefined): Promise<void> {
    const { sizeBytes } = this.#sink
    const span = this.#oneStream || (piece.start === 0 && piece.end === sizeBytes) ? undefined : { ...piece }
    let response: Response | undefined
    try {
      response = await this.#source.open(span, signal, (end) => this.#wrote(piece, end, turn), turn)
      if (response === undefined) return
      this.#source.check?.(response)
      const body = bodyRange(response, span ?? { start: 0, end: sizeBytes }, sizeBytes)
      if (span !== undefined && response.status === 200) this.#takeOneStream()
      if (span === undefined && body.end < sizeBytes)
        throw new BodyRangeError('range', 'sends a part of the file, although all of it was requested')
      await this.#fill(piece, body, response, turn)
    } catch (error) {
      void response?.discard()
      signal.throwIfAborted()
      if (error instanceof SinkFailure || error instanceof DownloadError) throw error
      throw this.#source.failure(error, response?.url)
    }
  }

  /** The server ignores ranges: one answer has all that is missing. @throws DownloadError when others are under way */
  #takeOneStream(): void {
    if ((this.#settings.parallel ?? 1) > 1) throw new DownloadError('no-ranges', new Error('ranges are ignored'))
    this.#oneStream = true
  }

  #wrote(piece: Piece, end: number, turn: HostTurn | undefined): void {
    const count = end - piece.start
    this.#bytesDone += count
    turn?.took(count)
    piece.start = end
    this.#settings.onProgress?.(this.#bytesDone)
  }

  /** Puts the bytes of a body into the gaps that need them. What came before a failure is written: the next attempt goes on after it. */
  async #fill(piece: Piece, body: ByteSpan, response: Response, turn: HostTurn | undefined): Promise<void> {
    const gaps: [number, number][] = this.#oneStream ? this.#gaps() : [[body.start, body.end]]
    const largest = Math.max(...gaps.map(([start, end]) => end - start))
    const buffer = new Uint8Array(Math.min(this.#settings.writeBytes ?? WRITE_BYTES, largest))
    let filled = 0
    let at = body.start
    const flush = async (): Promise<void> => {
      const count = filled
      filled = 0
      if (count === 0) return
      await this.#sink.write(at - count, buffer.subarray(0, count)).catch((error: unknown) => {
        throw new SinkFailure(error)
      })
      this.#bytesDone += count
      if (!this.#oneStream) piece.start += count
      this.#settings.onProgress?.(this.#bytesDone)
    }
    try {
      for await (const chunk of response) {
        turn?.took(chunk.length)
        if (at + chunk.length > body.end) throw new Error('the body is longer than its header says')
        for (let rest = chunk; rest.length > 0; ) {
          const [from, to] = gaps[0] ?? [body.end, body.end]
          if (from === body.end) return
          const count = Math.min(rest.length, (at < from ? from : to) - at, buffer.length - filled)
          if (at >= from) {
            buffer.set(rest.subarray(0, count), filled)
            filled += count
          }
          at += count
          rest = rest.subarray(count)
          if (filled === buffer.length || at === to) await flush()
          if (at === to) gaps.shift()
        }
      }
    } finally {
      await flush()
    }
    if (gaps.length > 0) throw new Error('the body ended early')
  }
}

/** Splits the last ranges into quarters, so that they all end at about the same time, and the file's hash soon after. */
function tapered(ranges: [number, number][], atOnce: number): [number, number][] {
  if (ranges.length <= 2 * atOnce) return ranges
  const last = ranges.splice(-atOnce)
  for (const [start, end] of last) {
    const step = Math.max(BLOCK_STEP, Math.ceil((end - start) / 4 / BLOCK_STEP) * BLOCK_STEP)
    for (let at = start; at < end; at += step) ranges.push([at, Math.min(end, at + step)])
  }
  return ranges
}

/** Ranges start at multiples of this where possible, so that hashers of blocks get whole ones. */
const BLOCK_STEP = 1 << 20
