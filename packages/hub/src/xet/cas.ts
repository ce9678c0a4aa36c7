import { tryParseContentRange } from '@svc/internal-byte-ranges'
import { Backoff, DownloadError, isIdentity, type Response } from '@svc/internal-http'
import type { HubDocuments } from '../documents.ts'
import type { DownloadOptions } from '../download.ts'
import { readTokenUrl } from '../endpoint.ts'
import type { Net } from '../net.ts'
import { networkFailure, statusFailure } from '../outcome.ts'
import type { HubFile } from '../tree.ts'
import { XetAnswerError } from './answer-error.ts'
import { BodyReader } from './body-reader.ts'
import type { Reconstruction, XorbFetch, XorbRange } from './reconstruction.ts'

/** Access to the chunks of a repository, for a while. */
interface Access {
  readonly cas: URL
  readonly token: string
  readonly untilMs: number
}

type RepoAtCommit = Pick<HubFile, 'repoId' | 'commit'>
/** What a request is about, for messages; the one for a token is about no file. */
type About = RepoAtCommit & Partial<Pick<HubFile, 'path'>>

/** A body with one range of a xorb, or with several, in their order. */
export interface XorbBody {
  readonly reader: BodyReader
  /** Called before each range is read. */
  begin(range: XorbRange): Promise<void>
}

const MAX_TOKEN_ANSWER_BYTES = 64 << 10
/** A token that expires sooner is not used. */
const SAFETY_MS = 60_000
/** Without an answer the file is fetched as a whole, so it is not worth as many tries as a download. */
const TRIES = 3
const MAX_ACCESSES = 16
const MAX_LINE_BYTES = 1_024

/**
 * The service that knows which chunks the hub's files consist of (Xet). Its answers are checked, and decide only where to look for bytes.
 *
 * The hub's token goes only to the hub, which gives one for this service. That one goes only to the service's own address; signed
 * addresses get neither. All of them are dialled on the hub's word, like its redirects, and redirects of theirs are not followed.
 */
export class Cas {
  readonly #net: Net
  readonly #accesses = new Map<string, Promise<Access>>()
  /** Services that do not know version 2. */
  readonly #isFirstVersion = new Set<string>()

  constructor(net: Net) {
    this.#net = net
  }

  /** @param at the commit whose token is asked for @throws XetAnswerError, HubError; on abort the signal's reason */
  async reconstruction(file: HubFile, at: RepoAtCommit, options: DownloadOptions): Promise<Reconstruction> {
    const { cas, token } = await this.#access(at, options)
    const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
    const ask = (version: 1 | 2): Promise<Reconstruction | undefined> => {
      const base = cas.origin + cas.pathname.replace(/\/+$/, '')
      // a service that does not know the parameter says less
      const url = new URL(`${base}/v${version}/reconstructions/${file.xetHash}?chunk_byte_sizes=true`)
      return this.#tried(url, file, options, async () => {
        const response = await this.#net.ask(url, headers, options.signal)
        if (version === 2 && (response.status === 404 || response.status === 501)) {
          void response.discard()
          return undefined
        }
        const { jsonBytes } = this.#net.limits
        return this.#read(response, file, jsonBytes, 'reconstruction', { sizeBytes: file.sizeBytes, from: cas.href })
      })
    }
    const found = this.#isFirstVersion.has(cas.href) ? undefined : await ask(2)
    if (found !== undefined) return found
    const first = await ask(1)
    this.#isFirstVersion.add(cas.href)
    return first!
  }

  /** Fetches what one address was signed for. @throws as {@link reconstruction}, and errors of `read` */
  fetch(
    { url, ranges }: XorbFetch,
    file: HubFile,
    options: DownloadOptions,
    read: (body: XorbBody) => Promise<void>
  ): Promise<void> {
    const at = new URL(url)
    const range = `bytes=${ranges.map(({ from, to }) => `${from}-${to - 1}`).join(',')}`
    return this.#tried(at, file, options, async () => {
      const response = await this.#net.ask(at, { range }, options.signal)
      if (response.status !== 206) throw this.#refused(response, file)
      if (!isIdentity(response.headers)) throw new XetAnswerError('a range of a xorb is encoded')
      const reader = new BodyReader(response)
      try {
        await read({ reader, begin: partsOf(response, reader, ranges.length > 1) })
      } finally {
        await reader.close()
        response.destroy()
      }
    })
  }

  #access(at: RepoAtCommit, options: DownloadOptions): Promise<Access> {
    const key = `${at.repoId}@${at.commit}`
    const isOver = ({ untilMs }: Access): boolean => untilMs - SAFETY_MS <= this.#net.timings.now()
    const asked = (this.#accesses.get(key) ?? Promise.reject()).then(
      (known) => (isOver(known) ? this.#ask(at, options) : known),
      () => this.#ask(at, options)
    )
    this.#accesses.delete(key)
    this.#accesses.set(key, asked)
    asked.catch(() => undefined)
    const [oldest] = this.#accesses.keys()
    if (this.#accesses.size > MAX_ACCESSES) this.#accesses.delete(oldest!)
    return asked
  }

  #ask(at: RepoAtCommit, options: DownloadOptions): Promise<Access> {
    const url = new URL(readTokenUrl(this.#net.endpoint, at.repoId, at.commit))
    return this.#tried(url, at, options, async () => {
      const { signal } = options
      const headers = { accept: 'application/json' }
      const response = await this.#net.walk({ url, headers, signal, sameOriginOnly: true })
      const about = { from: url.href }
      const { casUrl, ...access } = await this.#read(response, at, MAX_TOKEN_ANSWER_BYTES, 'xetToken', about)
      return { ...access, cas: new URL(casUrl) }
    })
  }

  async #read<Kind extends 'reconstruction' | 'xetToken'>(
    response: Response,
    of: About,
    maxBytes: number,
    kind: Kind,
    about: HubDocuments[Kind]['about']
  ): Promise<HubDocuments[Kind]['found']> {
    if (response.status !== 200) throw this.#refused(response, of)
    try {
      if (!isIdentity(response.headers)) throw new XetAnswerError('an answer is encoded')
      return await this.#net.readDocument(kind, await response.bytes(maxBytes), about)
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ERR_TOO_LARGE') throw new XetAnswerError('a response is too large')
      throw error
    } finally {
      response.destroy()
    }
  }

  /** Another attempt helps only if the service is busy. */
  #refused(response: Response, about: About): Error {
    const { status, url } = response
    void response.discard()
    const isBusy = status >= 500 || [408, 425, 429].includes(status)
    return isBusy
      ? statusFailure(response, this.#net.about(about))
      : new XetAnswerError(`${url.origin} answers ${status}`)
  }

  async #tried<T>(
    url: URL,
    about: About,
    { signal, onWaiting }: DownloadOptions,
    attempt: () => Promise<T>
  ): Promise<T> {
    const backoff = new Backoff({ ...this.#net.timings, tries: Math.min(TRIES, this.#net.timings.tries) }, onWaiting)
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        signal?.throwIfAborted()
        await backoff.after(this.#meaning(error, url, about), signal)
      }
    }
  }

  #meaning(error: unknown, url: URL, about: About): unknown {
    if (error instanceof XetAnswerError || error instanceof DownloadError) return error
    const isOfNetwork = typeof (error as { code?: unknown } | null)?.code === 'string'
    return isOfNetwork ? networkFailure(this.#net.refusal(error, url), url, this.#net.about(about)) : error
  }
}

/** Several ranges come as parts with heads of their own (RFC 9110 §14.6). */
function partsOf(response: Response, reader: BodyReader, isMultipart: boolean): XorbBody['begin'] {
  const type = response.header('content-type') ?? ''
  const boundary = /^multipart\/byteranges\s*;\s*boundary="?([!-~]{1,70}?)"?\s*$/i.exec(type)?.[1]
  if (!isMultipart) return async (range) => requireRange(response.header('content-range'), range)
  if (boundary === undefined) throw new XetAnswerError('several ranges of a xorb came without their headers')
  return async (range) => {
    let line = await reader.line(MAX_LINE_BYTES)
    if (line === '') line = await reader.line(MAX_LINE_BYTES)
    if (line !== `--${boundary}`) throw new XetAnswerError('a range of a xorb is missing')
    let said: string | undefined
    for (let lines = 0; (line = await reader.line(MAX_LINE_BYTES)) !== ''; lines++) {
      if (lines > 16) throw new XetAnswerError('a head is too long')
      said ??= /^content-range:\s*(.*)$/i.exec(line)?.[1]
    }
    requireRange(said, range)
  }
}

function requireRange(said: string | undefined, { from, to }: XorbRange): void {
  const range = tryParseContentRange(said)
  if (range?.start !== from || range.end !== to) throw new XetAnswerError('another range of a xorb was sent')
}
