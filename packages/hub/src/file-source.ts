import {
  BodyRangeError,
  type ByteSpan,
  bodyRange,
  DownloadError,
  type HostTurn,
  headerOf,
  type RangeSource,
  type Response,
  SinkFailure
} from '@svc/internal-http'
import { isRefusedAddress } from '@svc/internal-net'
import { digestHex } from '@svc/ref'
import { resolveUrl } from './endpoint.ts'
import { HubError } from './errors.ts'
import type { Net } from './net.ts'
import { badAnswer, networkFailure, type ResponseHead, statusFailure } from './outcome.ts'
import type { RangeProgress } from './range-protocol.ts'
import type { DirectSink } from './sink.ts'
import type { HubFile } from './tree.ts'

/**
 * One file of the hub. The hub is asked for its address once; the signed URL that it returns serves every range until it expires. Threads
 * fetch large ranges where they can. Invariant: at most one resolving request runs at a time, and the others wait for its result.
 */
export class HubFileSource implements RangeSource {
  readonly #net: Net
  readonly #file: HubFile
  readonly #direct: DirectSink | undefined
  #found: URL | undefined
  #etag: string | undefined
  #resolving: Promise<void> | undefined
  #wrongAnswers = 0
  /**
   * Cleared when the source's responses are not of the plain form that threads read, or threads cannot write to the
   * sink.
   */
  #threadsServe = true
  readonly #ready = Promise.withResolvers<void>()
  readonly ready = this.#ready.promise

  constructor(net: Net, file: HubFile, direct: DirectSink | undefined) {
    this.#net = net
    this.#file = file
    this.#direct = direct
  }

  async open(
    span: ByteSpan | undefined,
    signal: AbortSignal,
    written: (end: number) => void,
    turn: HostTurn | undefined
  ): Promise<Response | undefined> {
    const headers: Record<string, string> = span === undefined ? {} : { range: `bytes=${span.start}-${span.end - 1}` }
    const found = this.#found ?? (await this.#resolve(headers, signal, turn))
    if (!(found instanceof URL)) return found
    await turn?.at(found.host, signal)
    const isForThread =
      span !== undefined &&
      this.#direct !== undefined &&
      this.#threadsServe &&
      span.end - span.start >= this.#net.limits.writeBytes
    try {
      if (isForThread && (await this.#inThread(span, found, this.#direct!, written, signal))) return undefined
    } catch (error) {
      signal.throwIfAborted()
      throw this.failure(error, found)
    }
    // the complete client handles responses that a thread does not.
    const response = await this.#net.walk({ url: found, headers, signal })
    if (response.status < 300) this.#ready.resolve()
    return response
  }

  check(response: Response): void {
    const { status, url } = response
    if (status !== 200 && status !== 206) {
      void response.discard()
      throw this.failure(statusFailure(response, this.#net.about(this.#file)), url)
    }
    this.#checkEtag(response, url)
  }

  failure(error: unknown, url: URL | undefined): unknown {
    if (error instanceof SinkFailure) return error
    const { path } = this.#file
    const origin = new URL(this.#net.endpoint.origin)
    const failure = !(error instanceof BodyRangeError)
      ? networkFailure(error, url ?? origin, this.#net.about(this.#file))
      : error.defect === 'size'
        ? wrongBytes(this.#file, `it ${error.message}`)
        : badAnswer(`${(url ?? origin).origin} ${error.message}, for "${path}"`, { path })
    // the hub may know another address, whose server is faster
    if (url !== undefined && (error as { code?: unknown } | null)?.code === 'ERR_SLOW') this.#forget(url)
    if (!(failure instanceof DownloadError) || !['stale-url', 'wrong', 'changed'].includes(failure.kind)) return failure
    // several ranges may report the same failure of one address.
    const isNews = url === undefined || this.#forget(url)
    return failure.kind === 'wrong' && isNews && ++this.#wrongAnswers > 1
      ? new DownloadError('final', failure.error)
      : failure
  }

  /** The hub's own answer, or the address that it names. */
  async #resolve(
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    turn: HostTurn | undefined
  ): Promise<Response | URL> {
    while (this.#resolving) await this.#resolving
    signal.throwIfAborted()
    if (this.#found !== undefined) return this.#found
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resolving = promise
    try {
      const { repoId, commit, path } = this.#file
      const url = new URL(resolveUrl(this.#net.endpoint, repoId, commit, path))
      await turn?.at(url.host, signal)
      const onHop = (hop: Response): void => this.#checkHop(hop)
      const result = await this.#net.walk({ url, headers, signal, stopElsewhere: true, onHop })
      if (result instanceof URL || result.status < 300) {
        this.#found = result instanceof URL ? result : result.url
        this.#etag = undefined
      }
      if (!(result instanceof URL) && result.status < 300) this.#ready.resolve()
      return result
    } finally {
      this.#resolving = undefined
      resolve()
    }
  }

  /** False if threads cannot read this response; what they wrote before is kept. */
  async #inThread(
    span: ByteSpan,
    url: URL,
    direct: DirectSink,
    written: (end: number) => void,
    signal: AbortSignal
  ): Promise<boolean> {
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
          const head = { status: 206, headers: progress.headers }
          bodyRange(head, span, sizeBytes)
          this.#checkEtag(head, url)
          this.#ready.resolve()
          return
        }
        const { start, end } = progress
        try {
          direct.markWritten(start, end)
        } catch (error) {
          throw new SinkFailure(error)
        }
        written(end)
      } catch (error) {
        refused.abort(error)
      }
    }
    const { start, end } = span
    const { fd, writeGate } = direct
    const { connectMs, stallMs, slowMs } = net.timings
    const job = { url: url.href, ...how, start, end, sizeBytes, fd, writeGate, connectMs, stallMs, slowMs }
    try {
      const reply = await net.ranges.fetch(job, AbortSignal.any([signal, refused.signal]), onProgress)
      refused.signal.throwIfAborted()
      if (reply === 'done') return true
      if (reply !== 'status') this.#threadsServe = false
      return false
    } catch (error) {
      refused.signal.throwIfAborted()
      throw isRefusedAddress(error) ? net.refusal(error, url) : error
    }
  }

  /** Discards an address, so that the next range asks the hub for a new one. False if another range has already done so. */
  #forget(url: URL): boolean {
    if (this.#found?.href !== url.href) return false
    this.#found = undefined
    return true
  }

  /** Requires the same ETag on all responses of an address: another one means that the bytes do not belong together. */
  #checkEtag({ headers }: ResponseHead, url: URL): void {
    const etag = headerOf(headers, 'etag')
    if (etag === undefined) return
    this.#etag ??= etag
    if (etag === this.#etag) return
    const { path } = this.#file
    const message = `"${path}" keeps changing at its source while it is fetched; try again later`
    throw this.failure(new DownloadError('changed', badAnswer(message, { path }).error), url)
  }

  /** The metadata on the hub's own redirect must match the listing before any byte is accepted. */
  #checkHop({ url, status, headers }: Response): void {
    if (url.origin !== this.#net.endpoint.origin || status >= 400) return
    const { commit, sha256, sizeBytes } = this.#file
    const says = (name: string, expected: string) => {
      const value = headerOf(headers, name)?.replace(/^(?:W\/)?"(.*)"$/, '$1')
      return value !== undefined && value !== expected
    }
    const isSha256 = /^"?[0-9a-f]{64}"?$/.test(headerOf(headers, 'x-linked-etag') ?? '')
    if (
      says('x-repo-commit', commit) ||
      says('x-linked-size', String(sizeBytes)) ||
      (sha256 !== undefined && isSha256 && says('x-linked-etag', digestHex(sha256)))
    ) {
      throw this.failure(wrongBytes(this.#file, 'the hub now names other bytes than it listed'), undefined)
    }
  }
}

const wrongBytes = (file: HubFile, what: string): DownloadError<HubError> =>
  new DownloadError(
    'wrong',
    new HubError(
      'E_NOT_IMPORTABLE',
      'wrong-bytes',
      `"${file.path}" of "${file.repoId}" is not what the hub lists (${what}), in two attempts`,
      { path: file.path }
    )
  )
