import { DownloadError, HttpClient, type HttpClientOptions, RedirectError, type Response } from '@svc/internal-http'
import { DialGuard, type DialPolicy, type DownloadLimit, isRefusedAddress, policyFrom } from '@svc/internal-net'
import type { ReadHubDocument } from './documents.ts'
import { type Endpoint, printableUrl } from './endpoint.ts'
import { HubError } from './errors.ts'
import type { HubLimits, RetryTimings } from './limits.ts'
import type { OutcomeContext } from './outcome.ts'
import { RangeThreads } from './range-threads.ts'

export interface NetOptions {
  readonly endpoint: Endpoint
  readonly token: string | undefined
  readonly tokenName: string
  readonly userAgent: string
  readonly dispatcher: HttpClientOptions['dispatcher']
  readonly policy: DialPolicy | undefined
  readonly threadNice: number
  readonly downloads: DownloadLimit | undefined
  readonly limits: HubLimits
  readonly timings: RetryTimings
  readonly readDocument: ReadHubDocument
}

export interface WalkRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
  /** Accept responses of the API from the hub's own origin only. */
  readonly sameOriginOnly?: boolean
  /** Called with every answer, including redirects; throws to refuse. */
  readonly onHop?: (response: Response) => void
  /** Stop before requesting an address at another origin than the hub's: the result then is the address. */
  readonly stopElsewhere?: boolean
}

/** How a URL is requested: its headers, and on whose word. */
interface Hop {
  readonly headers: Readonly<Record<string, string>>
  readonly policy: DialPolicy
}

interface FailedRequest {
  readonly repoId: string
  /** Or another revision; undefined for the default branch. */
  readonly commit?: string | undefined
  /** Of a file. */
  readonly path?: string
}

/** Values that a thread can send in a header unescaped. */
const SENDABLE = /^[\x20-\x7e]*$/

/** Whether undici would take a proxy from the environment. */
const hasProxy = (env: NodeJS.ProcessEnv): boolean =>
  ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'].some((name) => Boolean(env[name]))

/**
 * What all calls of one hub object share: connections, and where redirects may lead. The token goes to the hub's own origin (scheme, host,
 * port) and to no other. A redirect leads only where the endpoint's own address lets it name one (see DialPolicy).
 */
export class Net {
  readonly endpoint: Endpoint
  readonly tokenName: string
  readonly hasToken: boolean
  readonly limits: HubLimits
  readonly timings: RetryTimings
  readonly ranges: RangeThreads
  readonly readDocument: ReadHubDocument
  readonly #options: NetOptions
  readonly #client: HttpClient
  readonly #policyOf: (url: URL) => Promise<DialPolicy>

  constructor(options: NetOptions) {
    const { endpoint, token, tokenName, limits, timings, userAgent, dispatcher, downloads } = options
    this.endpoint = endpoint
    this.tokenName = tokenName
    this.hasToken = token !== undefined
    this.limits = limits
    this.readDocument = options.readDocument
    this.timings = timings
    this.ranges = new RangeThreads(options.threadNice, downloads)
    this.#options = options
    this.#policyOf = policyFrom(new URL(endpoint.origin), options.policy)
    const connections = limits.ranges + limits.smallFiles
    this.#client = new HttpClient({ ...timings, userAgent, dispatcher, connections, downloads })
  }

  /** Requests a URL, and follows its redirects. @throws DownloadError for one that is refused; errors of the network */
  async walk(request: WalkRequest & { readonly stopElsewhere?: false }): Promise<Response>
  async walk(request: WalkRequest): Promise<Response | URL>
  async walk({ url, headers, signal, sameOriginOnly, stopElsewhere, onHop }: WalkRequest): Promise<Response | URL> {
    let at = url
    try {
      return await this.#client.follow(url, {
        signal,
        redirects: this.limits.redirects,
        hop: async (next) => {
          at = next
          const isElsewhere = next.origin !== this.endpoint.origin
          if (isElsewhere && sameOriginOnly === true) throw new RedirectError(next, 'redirects to another origin')
          return isElsewhere && stopElsewhere === true ? undefined : this.#hop(next, headers)
        },
        ...(onHop && { onAnswer: onHop })
      })
    } catch (error) {
      signal?.throwIfAborted()
      throw this.refusal(error, at)
    }
  }

  /** Requests an address that the hub named, without the token, under the rules of `walk`; does not follow redirects. @throws errors of the network */
  async ask(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal | undefined): Promise<Response> {
    return this.#client.send({ url, headers, signal, policy: await this.#policyOf(url) })
  }

  /**
   * How a thread may request this address by itself, under the same rules as `walk`; undefined if only `walk` can,
   * because the connection is not ours to make (a proxy, the caller's dispatcher). @throws DownloadError for a refused
   * address
   */
  async directly(url: URL): Promise<Hop | undefined> {
    const { dispatcher, userAgent } = this.#options
    if (dispatcher !== undefined || hasProxy(process.env) || !SENDABLE.test(userAgent)) return undefined
    const hop = await this.#hop(url, { 'user-agent': userAgent, 'accept-encoding': 'identity' })
    try {
      new DialGuard(hop.policy).check(url.hostname)
      return hop
    } catch (error) {
      throw this.refusal(error, url)
    }
  }

  /** Makes a refused address the hub's failure; returns other errors unchanged. */
  refusal(error: unknown, at: URL): unknown {
    const redirect = error instanceof RedirectError ? error : undefined
    if (redirect === undefined && !isRefusedAddress(error)) return error
    const where = printableUrl(redirect?.url ?? at)
    const what = redirect?.message ?? 'redirects to a loopback or private address'
    const message = `the hub ${what} (${where}), which is refused; check the endpoint`
    return new DownloadError(
      'final',
      new HubError('E_SOURCE_UNAVAILABLE', 'refused-redirect', message, { url: where }, error)
    )
  }

  /** What messages of failures say beside the answer. */
  about({ repoId, commit, path }: FailedRequest): OutcomeContext {
    const { endpoint, hasToken, tokenName, timings } = this
    return { endpoint, hasToken, tokenName, repoId, revision: commit, path, nowMs: timings.now() }
  }

  async close(): Promise<void> {
    await this.ranges.close()
    await this.#client.close()
  }

  async #hop(url: URL, headers: Readonly<Record<string, string>>): Promise<Hop> {
    const { token } = this.#options
    const isHub = url.origin === this.endpoint.origin
    return {
      policy: await this.#policyOf(url),
      headers: isHub && token !== undefined ? { ...headers, authorization: `Bearer ${token}` } : headers
    }
  }
}
