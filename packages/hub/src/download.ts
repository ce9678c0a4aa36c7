import { cutRanges, gapsOf, totalBytes } from '@svc/internal-byte-ranges'
import type { Gate } from '@svc/internal-concurrency'
import { isRefusedAddress, Pace } from '@svc/internal-net'
import { Body, ENOUGH } from './body.ts'
import { HubError } from './errors.ts'
import type { Flow, ResponseHead } from './exchange.ts'
import { FileAddress, wrongBytes } from './file-address.ts'
import { header, isIdentity } from './headers.ts'
import type { Net } from './net.ts'
import { networkTrouble, statusTrouble } from './outcome.ts'
import type { RangeProgress } from './range-protocol.ts'
import { type Buffers, RangeWriter, SinkFailure } from './range-writer.ts'
import { Retry, type Waiting } from './retry.ts'
import type { DirectSink, HubSink } from './sink.ts'
import type { HubFile } from './tree.ts'
import { Trouble } from './trouble.ts'

/** How to fetch one file. An abort rejects with the signal's reason, and the sink keeps what it has. */
export interface DownloadOptions {
  readonly signal?: AbortSignal
  /** Called with the total of bytes in the sink, not a delta. */
  readonly onProgress?: (bytesDone: number) => void
  readonly onWaiting?: (waiting: Waiting) => void
}

/** State that the downloads of one hub object share. */
export interface Lanes {
  readonly large: Gate
  readonly small: Gate
  readonly buffers: Buffers
}

/** A range in progress: `start` advances as bytes are written. */
interface Piece {
  start: number
  readonly end: number
}

/** Fetches what `sink` lacks of `[from, to)`. Errors: see `Hub.download`. */
export async function downloadRange(
  net: Net,
  lanes: Lanes,
  file: HubFile,
  sink: HubSink,
  from: number,
  to: number,
  options: DownloadOptions
): Promise<void> {
  if (sink.sizeBytes !== file.sizeBytes) {
    throw new TypeError(`the sink holds ${sink.sizeBytes} bytes, "${file.path}" has ${file.sizeBytes}`)
  }
  await new Download(net, lanes, file, sink, from, to, options).run()
}

/** One call of `download`. Invariant: when `run` has settled, no request and no write of it is under way. */
class Download {
  readonly #net: Net
  readonly #lanes: Lanes
  readonly #file: HubFile
  readonly #sink: HubSink
  readonly #from: number
  readonly #to: number
  readonly #options: DownloadOptions
  readonly #address: FileAddress
  #bytesDone = 0
  #wrongAnswers = 0
  /**
   * Cleared when the source's responses are not of the plain form that threads read, or threads cannot write to the
   * sink.
   */
  #threadsServe = true
  #restarted = false

  constructor(
    net: Net,
    lanes: Lanes,
    file: HubFile,
    sink: HubSink,
    from: number,
    to: number,
    options: DownloadOptions
  ) {
    this.#net = net
    this.#lanes = lanes
    this.#file = file
    this.#sink = sink
    this.#from = from
    this.#to = to
    this.#options = options
    this.#address = new FileAddress(net, file)
  }

  async run(): Promise<void> {
    let oneStream = false
    for (;;) {
      this.#options.signal?.throwIfAborted()
      const gaps = this.#gaps()
      if (gaps.length === 0) return
      this.#bytesDone = totalBytes(this.#sink.ranges())
      this.#options.onProgress?.(this.#bytesDone)
      try {
        if (oneStream) await this.#inParallel([{ start: 0, end: this.#to }], 1, true)
        else {
          const { rangeBytes, rangesPerFile } = this.#net.limits
          const pieces = tapered(cutRanges(gaps, rangeBytes), rangesPerFile).map(([start, end]) => ({ start, end }))
          await this.#inParallel(pieces, Math.min(pieces.length, rangesPerFile), false)
        }
        if (this.#gaps().length === 0) return
        const { path } = this.#file
        throw new HubError('E_INTERNAL', 'sink', `the sink does not hold all that was written of "${path}"`, { path })
      } catch (error) {
        if (error instanceof SinkFailure) throw error.cause
        if (!(error instanceof Trouble)) throw error
        if (error.kind === 'no-ranges') oneStream = true
        else if (error.kind === 'changed' && !this.#restarted) {
          this.#restarted = true
          this.#sink.unmark(0, this.#sink.sizeBytes)
        } else throw error.error
      }
    }
  }

  #gaps(): [number, number][] {
    return gapsOf(this.#sink.ranges(), this.#from, this.#to)
  }

  /** The first failure stops the others; all have ended when this settles. So has the signal: Node keeps one that is listened to. */
  async #inParallel(pieces: Piece[], count: number, oneStream: boolean): Promise<void> {
    const stop = new AbortController()
    const signal = this.#options.signal ? AbortSignal.any([stop.signal, this.#options.signal]) : stop.signal
    let failure: { error: unknown } | undefined
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    const work = async (_: unknown, worker: number) => {
      try {
        if (worker > 0) await Promise.race([this.#address.ready, stopped])
        for (let piece = pieces.shift(); piece; piece = pieces.shift()) await this.#piece(piece, oneStream, signal)
      } catch (error) {
        failure ??= { error }
        stop.abort(error)
      }
    }
    await Promise.all(Array.from({ length: count }, work)).finally(() => stop.abort())
    this.#options.signal?.throwIfAborted()
    if (failure) throw failure.error
  }

  async #piece(piece: Piece, oneStream: boolean, signal: AbortSignal): Promise<void> {
    const lane = this.#file.sizeBytes <= this.#net.limits.smallFileBytes ? this.#lanes.small : this.#lanes.large
    const retry = new Retry(this.#net.timings, this.#options.onWaiting)
    const pace = new Pace()
    while (oneStream ? this.#gaps().length > 0 : piece.start < piece.end) {
      const before = this.#bytesDone
      const queuedMs = performance.now()
      try {
        await lane.run(signal, () => {
          pace.skip(performance.now() - queuedMs)
          return this.#try(piece, oneStream, signal)
        })
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof Trouble) || error.kind === 'no-ranges' || error.kind === 'changed') throw error
        // Progress of any range shows that the source works; a range that fails on its own uses up its attempts when
        // the others are done. A drip is none: it would go on for ever.
        if (pace.keepsUpWith(this.#bytesDone - before)) retry.progress()
        await retry.after(error, signal)
      }
    }
  }

  async #try(piece: Piece, oneStream: boolean, signal: AbortSignal, mayUseThread = true): Promise<void> {
    const { sizeBytes } = this.#file
    const whole = oneStream || (piece.start === 0 && piece.end === sizeBytes)
    const direct = whole || !mayUseThread || !this.#threadsServe ? undefined : this.#sink.direct
    const byThread = direct !== undefined && piece.end - piece.start >= this.#net.limits.writeBytes
    let asked: URL | undefined
    let body: Body | undefined
    let failure: unknown
    let notTaken = false
    try {
      const { url, head } = await this.#address.get({
        signal,
        headers: whole ? {} : { range: `bytes=${piece.start}-${piece.end - 1}` },
        stopElsewhere: byThread,
        onAnswer: (head, url, flow) => {
          asked = url
          body = this.#body(head, url, piece, whole, oneStream, flow)
          return body
        }
      })
      if (head === undefined) {
        asked = url
        if (await this.#inThread(piece, url, direct!, signal)) return
        notTaken = true
      }
    } catch (error) {
      failure = error
    }
    // The complete client handles responses that a thread does not.
    if (notTaken) return await this.#try(piece, oneStream, signal, false)
    // What arrived before the connection broke is kept: the next attempt continues after it.
    await body?.finish()
    signal.throwIfAborted()
    if (body && !body.missing() && (failure === undefined || failure === ENOUGH)) return
    failure ??= new Error('the body ended early')
    if (failure instanceof SinkFailure) throw failure
    // the hub may know another address, whose server is faster
    if (asked !== undefined && (failure as { code?: unknown } | null)?.code === 'ERR_SLOW') this.#address.forget(asked)
    const trouble = networkTrouble(failure, asked ?? new URL(this.#net.endpoint.origin), this.#context())
    if (!(trouble instanceof Trouble) || !['stale-url', 'wrong', 'changed'].includes(trouble.kind)) throw trouble
    // Several ranges may report the same failure of one address.
    const isNews = asked === undefined || this.#address.forget(asked)
    if (trouble.kind === 'wrong' && isNews && ++this.#wrongAnswers > 1) throw new Trouble('final', trouble.error)
    throw trouble
  }

  /** False if threads cannot read this response; what they wrote before is kept. @throws as {@link #try} does */
  async #inThread(piece: Piece, url: URL, direct: DirectSink, signal: AbortSignal): Promise<boolean> {
    const net = this.#net
    const { sizeBytes } = this.#file
    const how = await net.directly(url)
    if (how === undefined) {
      this.#threadsServe = false
      return false
    }
    const refused = new AbortController()
    const onProgress = (progress: RangeProgress): void => {
      if (refused.signal.aborted) return
      try {
        if ('headers' in progress) {
          this.#partAt({ status: 206, headers: { ...progress.headers } }, url, piece)
          this.#address.answered()
          return
        }
        const { start, end, hashes } = progress
        try {
          direct.markWritten(start, end, hashes)
        } catch (error) {
          throw new SinkFailure(error)
        }
        piece.start = end
        this.#bytesDone += end - start
        this.#options.onProgress?.(this.#bytesDone)
      } catch (error) {
        refused.abort(error)
      }
    }
    const { start, end } = piece
    const { fd, hashing, writeGate } = direct
    const { connectMs, stallMs, slowMs } = net.timings
    const job = { url: url.href, ...how, start, end, sizeBytes, fd, hashing, writeGate, connectMs, stallMs, slowMs }
    try {
      const reply = await net.ranges.fetch(job, AbortSignal.any([signal, refused.signal]), onProgress)
      refused.signal.throwIfAborted()
      if (reply === 'done') return true
      if (reply !== 'status') this.#threadsServe = false
      return false
    } catch (error) {
      refused.signal.throwIfAborted()
      throw isRefusedAddress(error) ? net.refusedInner(url, error) : error
    }
  }

  #context() {
    const { repoId, commit, path } = this.#file
    const { endpoint, hasToken, tokenName, timings } = this.#net
    return { endpoint, hasToken, tokenName, repoId, revision: commit, path, nowMs: timings.now() }
  }

  /** Checks the response's head, and returns the consumer that places its body in the file. */
  #body(head: ResponseHead, url: URL, piece: Piece, whole: boolean, oneStream: boolean, flow: Flow): Body {
    const { path, sizeBytes } = this.#file
    if (head.status !== 200 && head.status !== 206) throw statusTrouble(head, url, this.#context())
    const bad = (what: string) => badAnswer(url, path, what)
    if (!isIdentity(head)) throw bad('sends encoded bytes, which were asked to be plain,')
    if (head.status === 200) {
      const length = header(head.headers, 'content-length')
      if (length !== undefined && Number(length) !== sizeBytes) {
        throw wrongBytes(this.#file, `it has ${length} bytes instead of ${sizeBytes}`)
      }
      // A full response starts at 0: its bytes must not be placed elsewhere.
      if (!whole) throw new Trouble('no-ranges', bad('ignores ranges').error)
      this.#address.checkEtag(head)
      const gaps = oneStream ? this.#gaps() : [[piece.start, piece.end] as [number, number]]
      return this.#into(0, sizeBytes, gaps, oneStream ? undefined : piece, flow)
    }
    if (whole) throw bad('answers with a part of the file where all of it was asked')
    const [start, end] = this.#partAt(head, url, piece)
    return this.#into(start, end, [[start, end]], piece, flow)
  }

  /** The range of the file that the body of a 206 holds. @throws Trouble unless it is the requested one */
  #partAt(head: ResponseHead, url: URL, piece: Piece): [start: number, end: number] {
    const { path, sizeBytes } = this.#file
    const bad = (what: string) => badAnswer(url, path, what)
    const range = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/i.exec(header(head.headers, 'content-range') ?? '')
    if (!range) throw bad('does not say which range it sends')
    const [start, end] = [Number(range[1]), Number(range[2]) + 1]
    if (range[3] !== '*' && Number(range[3]) !== sizeBytes) {
      throw wrongBytes(this.#file, `it has ${range[3]} bytes instead of ${sizeBytes}`)
    }
    if (start !== piece.start || end > piece.end || end <= start) throw bad('sends another range than was asked')
    this.#address.checkEtag(head)
    return [start, end]
  }

  #into(start: number, end: number, gaps: [number, number][], piece: Piece | undefined, flow: Flow): Body {
    const { buffers } = this.#lanes
    const onWritten = (bytes: number) => {
      this.#bytesDone += bytes
      if (piece) piece.start += bytes
      this.#options.onProgress?.(this.#bytesDone)
    }
    const open = (offset: number, length: number) =>
      new RangeWriter(this.#sink, offset, Math.min(length, buffers.sizeBytes), buffers, flow, onWritten)
    return new Body(start, end, gaps, open, flow.abort)
  }
}

const badAnswer = (url: URL, path: string, what: string): Trouble =>
  new Trouble(
    'retry',
    new HubError('E_SOURCE_UNAVAILABLE', 'bad-answer', `${url.origin} ${what} for "${path}"`, { path })
  )

/**
 * Splits the last ranges into quarters, so that they all end at about the same time, and the file's hash soon after.
 */
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
