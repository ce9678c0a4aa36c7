import { type Clock, within } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import { backoffMs, type HttpClient, RedirectError, type Response } from '@svc/internal-http'
import { isRefusedAddress } from '@svc/internal-net'
import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { SwarmError } from '../errors.ts'
import type { Emit } from '../events.ts'
import { guarded, reportDefect } from '../net/guarded.ts'
import { BlockReceiver } from '../peer/block-receiver.ts'
import { type PendingRequest, pendingRequest } from '../peer/requests.ts'
import type { PieceBuffer } from '../piece/piece-buffer.ts'
import { RateMeter } from '../rate-meter.ts'
import type { BlockOrder, BlockSource, Downloader } from './downloader.ts'
import type { FarSources, Sparing, WebseedAllowance } from './far-sources.ts'
import type { PieceRange } from './picker.ts'
import { judgeRange, parseWebseedUrl, webseedUrl } from './webseed-range.ts'

/**
 * Returns additional headers for a request to a webseed, such as a signature; undefined for none. Called before every request, also
 * after a redirect, with the URL requested, and with the torrent's infohash (32 bytes): headers for one host are never sent to
 * another. If it rejects, nothing is requested there for a while.
 */
export type WebseedHeaders = (
  url: URL,
  range: string,
  infohash: Uint8Array
) => Promise<Readonly<Record<string, string>> | undefined>

/** What the webseeds of a torrent share. */
export interface WebseedContext {
  readonly env: {
    readonly clock: Clock
    readonly nextId: () => number
    readonly http: HttpClient
    readonly webseedHeaders: WebseedHeaders | undefined
    readonly random: () => number
  }
  readonly layout: TorrentLayout
  readonly info: { readonly infohash: Uint8Array }
  readonly downloader: Downloader
  /** Whether a peer on that host (an IP address) already delivers so much that a webseed there would add nothing. */
  readonly isServedBy: (host: string) => boolean
  /** Called before each range; undefined: request nothing now. */
  readonly allowance: () => WebseedAllowance | undefined
  /** Told of requests for pieces that no near peer has, and of how long a piece takes. */
  readonly farSources: Pick<FarSources, 'took' | 'brought'>
  /** Pieces that somebody waits for: they come first. */
  readonly hastened: () => readonly PieceRange[]
  readonly emit: Emit<'received' | 'warning'>
}

const MIN_RANGE_BYTES = 1_048_576
const MAX_RANGE_BYTES = 16 * 1_048_576
const MAX_REDIRECTS = 3
const IDLE_MS = 15_000
const PAUSES = { firstDelayMs: 1_000, maxDelayMs: 60_000 }
/** Bytes per second; an answer that takes four times as long as at this rate is aborted. */
const RATE_FLOOR = 16_384

/** Consecutive pieces of one file, fetched by one range request. */
interface Taken {
  readonly file: LayoutFile
  readonly buffers: readonly PieceBuffer[]
}

/** The answer to a range request, whose range begins after `skipBytes`. */
interface RangeAnswer {
  readonly response: Response
  readonly skipBytes: number
}

/**
 * One webseed (BEP 19): fetches contiguous gaps of a file as bounded HTTP ranges, two at a time. While other nodes download
 * as well it starts at a random position; while its use is limited it fetches single pieces that no near peer has. After
 * a piece with a wrong hash it is not used for that file again. It pauses while a peer on the same machine is fast enough.
 *
 * Invariant: every piece taken is either received or released when its range ends.
 */
export class Webseed {
  readonly id: number
  readonly url: string
  readonly down: RateMeter
  readonly #context: WebseedContext
  readonly #userOrigins: ReadonlySet<string>
  readonly #source: BlockSource
  readonly #host: string
  /** Files that it lacks or sent wrong bytes of, by index. */
  readonly #out = new Set<number>()
  readonly #closing = new AbortController()
  #running = 0
  #failures = 0
  #pausedUntil = 0
  #rangeBytes = 2 * MIN_RANGE_BYTES
  #nextFile = 0
  /** Where the next run of pieces starts, while other nodes download as well. */
  #cursor: number

  /** @param userOrigins redirects lead to these and to public ones only @throws SwarmError `E_ADDRESS` */
  constructor(context: WebseedContext, url: string, userOrigins: ReadonlySet<string>) {
    const { env, layout } = context
    this.#host = parseWebseedUrl(url).hostname.replace(/^\[(.*)\]$/, '$1')
    this.id = env.nextId()
    this.url = url
    this.#context = context
    this.#userOrigins = userOrigins
    this.#source = { id: this.id, bits: undefined }
    this.#cursor = Math.floor(env.random() * layout.pieceCount)
    this.down = new RateMeter(env.clock.monotonic())
  }

  get active(): boolean {
    return this.#running > 0
  }

  /** It sent corrupt data of a file: stop using it for that file. */
  banFile(file: LayoutFile): void {
    this.#out.add(file.index)
  }

  pump(): void {
    while (!this.#isClosed && this.#context.env.clock.monotonic() >= this.#pausedUntil) {
      if (this.#context.isServedBy(this.#host)) return
      const allowance = this.#context.allowance()
      if (allowance === undefined || this.#running >= (allowance.sparing ? 1 : 2)) return
      const order = this.#take(allowance)
      if (order === undefined) return
      this.#running += 1
      void this.#fetch(order)
        .catch(reportDefect)
        .finally(
          guarded(() => {
            this.#running -= 1
            this.pump()
          })
        )
    }
  }

  #take({ scattered, sparing }: WebseedAllowance): Taken | undefined {
    const { downloader, layout, farSources, env } = this.#context
    if (sparing !== undefined) {
      const taken = this.#takeRange(scattered, layout.pieceLengthBytes, sparing)
      for (const { piece } of taken?.buffers ?? []) farSources.took(piece, env.clock.monotonic())
      return taken
    }
    const begun = downloader.takeLoose(this.#source, this.#hastened())
    if (begun !== undefined) return this.#alone(begun)
    const taken =
      (scattered ? this.#takeRange(true, this.#rangeBytes, () => true) : undefined) ??
      this.#takeRange(scattered, this.#rangeBytes)
    if (taken !== undefined) return taken
    // no piece is left to start: help with one that others have begun.
    const order = downloader.take(this.#source, 4096)
    return order && this.#alone(order)
  }

  #hastened(): readonly PieceRange[] {
    const { hastened, layout } = this.#context
    return hastened().filter(({ firstPiece }) => !this.#out.has(layout.fileOf(firstPiece).index))
  }

  #alone(order: BlockOrder): Taken | undefined {
    const { downloader, layout } = this.#context
    const file = layout.fileOf(order.buffer.piece)
    if (this.#out.has(file.index)) {
      downloader.release(order.buffer, order.run, this.id)
      return undefined
    }
    return { file, buffers: [order.buffer] }
  }

  #takeRange(scattered: boolean, bytes: number, sparing?: Sparing): Taken | undefined {
    const { layout, downloader } = this.#context
    const { files } = layout
    const source = { ...this.#source, sparing }
    for (const awaited of this.#hastened()) {
      const buffers = downloader.takePieces(source, awaited, bytes)
      if (buffers.length > 0) return { file: layout.fileOf(awaited.firstPiece), buffers }
    }
    const begin = scattered ? layout.fileOf(this.#cursor % layout.pieceCount).index : this.#nextFile
    for (let step = 0; step < files.length; step += 1) {
      const file = files[(begin + step) % files.length]!
      if (file.pieceCount === 0 || this.#out.has(file.index)) continue
      const range = { firstPiece: file.firstPiece, endPiece: file.firstPiece + file.pieceCount }
      const from = scattered && step === 0 ? { from: this.#cursor } : {}
      const buffers = downloader.takePieces(source, { ...range, ...from }, bytes)
      if (buffers.length === 0) continue
      this.#nextFile = file.index
      this.#cursor = buffers.at(-1)!.piece + 1
      return { file, buffers }
    }
    return undefined
  }

  async #fetch({ file, buffers }: Taken): Promise<void> {
    const { layout, downloader, env, farSources } = this.#context
    const begun = env.clock.monotonic()
    const { offset: start } = layout.span(buffers[0]!.piece)
    const last = layout.span(buffers.at(-1)!.piece)
    const end = last.offset + last.lengthBytes
    const pending = buffers.map((buffer) =>
      pendingRequest({ buffer, run: { first: 0, count: buffer.blockCount } }, begun)
    )
    const limitMs = Math.max(IDLE_MS, (4000 * (end - start)) / RATE_FLOOR)
    try {
      await within(env.clock, limitMs, this.#closing.signal, async (signal) => {
        const body = await this.#open(file, start, end, signal)
        if (body === undefined) return
        await this.#receive(body, pending)
        this.#failures = 0
        const tookMs = env.clock.monotonic() - begun
        farSources.brought(tookMs / buffers.length)
        this.#adapt(end - start, tookMs)
      })
    } catch (error) {
      if (!this.#isClosed) this.#failed(file, error as Error)
    } finally {
      for (const request of pending) downloader.release(request.buffer, request.run, this.id)
    }
  }

  /** Receives the pieces of `pending` one after the other, and removes each when it has arrived. */
  async #receive({ response, skipBytes }: RangeAnswer, pending: PendingRequest[]): Promise<void> {
    const { downloader, env, emit } = this.#context
    const receiver = new BlockReceiver(this.id)
    let skip = skipBytes
    let inPiece = 0
    const take = (chunk: Uint8Array): void => {
      let taken = Math.min(skip, chunk.length)
      skip -= taken
      while (taken < chunk.length && pending.length > 0) {
        const request = pending[0]!
        if (inPiece === 0) receiver.start(request)
        const count = Math.min(chunk.length - taken, request.length - inPiece)
        receiver.data(chunk.subarray(taken, taken + count))
        taken += count
        inPiece += count
        if (inPiece < request.length) continue
        receiver.end()
        inPiece = 0
        pending.shift()
        emit({ kind: 'received', bytes: request.length })
        downloader.arrived(request.buffer, request.run, this.id, env.clock.monotonic())
      }
    }
    try {
      // the return closes the connection: nothing is read beyond the requested range, however long the body is.
      for await (const chunk of response) {
        this.down.add(chunk.length)
        take(chunk)
        if (pending.length === 0) return
        // what the body holds meanwhile is bounded, and then its socket is not read.
        if (loopBudget.isOver('webseeds')) await loopBudget.next('webseeds')
      }
    } finally {
      receiver.abandon()
    }
    throw new SwarmError('E_WEBSEED', 'short', 'the body ended early')
  }

  /** Sizes the next range to take about two seconds. */
  #adapt(bytes: number, tookMs: number): void {
    const wanted = (bytes / Math.max(1, tookMs)) * 2000
    this.#rangeBytes = Math.max(MIN_RANGE_BYTES, Math.min(wanted, this.#rangeBytes * 2, MAX_RANGE_BYTES))
  }

  async #open(file: LayoutFile, start: number, end: number, signal: AbortSignal): Promise<RangeAnswer | undefined> {
    const { layout, info, env } = this.#context
    const range = `bytes=${start}-${end - 1}`
    const response = (await env.http.follow(new URL(webseedUrl(this.url, layout, file)), {
      signal,
      redirects: MAX_REDIRECTS,
      hop: async (url) => ({
        headers: { ...(await env.webseedHeaders?.(url, range, info.infohash)), range },
        policy: this.#userOrigins.has(url.origin) ? 'owner' : 'internet'
      })
    })) as Response
    const verdict = judgeRange(response, start, end, file.lengthBytes, env.clock.now())
    if (verdict.kind === 'body') return { response, skipBytes: verdict.skipBytes }
    void response.discard()
    if (verdict.kind === 'no-file') this.#out.add(file.index)
    else this.#pause(verdict.retryAfterMs)
    this.#warn(verdict.reason, file)
    return undefined
  }

  #failed(file: LayoutFile, error: Error): void {
    if (error instanceof RedirectError || isRefusedAddress(error)) {
      this.#out.add(file.index)
      this.#warn(error instanceof RedirectError ? `it ${error.message}` : error.message, file)
      return
    }
    this.#warn(error.message, file)
    this.#pause(undefined)
    this.#rangeBytes = MIN_RANGE_BYTES
  }

  #warn(reason: string, file: LayoutFile): void {
    this.#context.emit({
      kind: 'warning',
      warning: { kind: 'webseed', source: this.url, message: `${file.path}: ${reason}` }
    })
  }

  #pause(askedMs: number | undefined): void {
    const { clock, random } = this.#context.env
    this.#failures += 1
    this.#pausedUntil = clock.monotonic() + (askedMs ?? backoffMs({ ...PAUSES, random }, this.#failures))
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  close(): void {
    this.#closing.abort()
  }
}
