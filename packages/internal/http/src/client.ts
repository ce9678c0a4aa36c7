import { systemClock } from '@svc/internal-clock'
import { Lazy } from '@svc/internal-concurrency'
import { DialGuard, type DialPolicy } from '@svc/internal-net'
import type { Dispatcher } from 'undici'
import { SLOW_MS } from './min-rate.ts'
import { followRedirects } from './redirect.ts'
import { type Response, ResponseHandler, type ResponseTimings } from './response.ts'

/**
 * undici, loaded with the first request: most processes make none. The only place that loads it. It is CommonJS, which a bundle
 * has as its default export alone.
 */
const undici = async (): Promise<typeof import('undici')> =>
  ((await import('undici')) as unknown as { default: typeof import('undici') }).default

/** The part of undici's dispatchers that is used. */
interface Dispatching {
  dispatch(request: object, handler: ResponseHandler): boolean
}

export interface HttpClientOptions extends Partial<ResponseTimings> {
  readonly userAgent?: string
  /** At once, for each origin. Default 8. */
  readonly connections?: number
  readonly connectMs?: number
  /** Whether the proxy of the environment is used. Default true. */
  readonly proxy?: boolean
  /** Replaces the connection pools, the proxy and the guard; it is not closed. */
  readonly dispatcher?: Dispatching | undefined
}

interface HttpRequest {
  readonly url: URL
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT'
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined
  readonly signal?: AbortSignal | undefined
  /** On whose word the URL is requested. */
  readonly policy: DialPolicy
}

/** How one URL is requested, on a walk along redirects. */
type HopRequest = Pick<HttpRequest, 'headers' | 'policy'>

interface RedirectOptions {
  readonly signal?: AbortSignal | undefined
  /** Most redirects in a row. */
  readonly redirects: number
  /**
   * How a URL is requested. Called for the first URL and for each redirect, so that what is meant for one origin is sent to no
   * other. Undefined ends the walk before the URL.
   */
  readonly hop: (url: URL) => HopRequest | undefined | Promise<HopRequest | undefined>
  /** Called with each answer, including redirects; throws to refuse. */
  readonly onAnswer?: (response: Response) => void
}

const CONNECT_MS = 10_000
const STALL_MS = 30_000
const MAX_HEADER_BYTES = 32_768

/**
 * Requests to other machines. What is dialled is judged by a policy ({@link DialGuard}), each policy has its own connections, bodies come
 * unencoded, and a server that stalls or drips is given up.
 */
export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #agents = new Map<DialPolicy, Lazy<Dispatcher>>()

  constructor(options: HttpClientOptions = {}) {
    this.#options = options
  }

  /**
   * One request; redirects are answers. @throws errors of the network, with their codes; `ERR_REFUSED_ADDRESS`, `ERR_STALLED`; an error of the
   * disk that the client could not be loaded from; on abort the signal's reason
   */
  async send({ url, method = 'GET', headers, body, signal, policy }: HttpRequest): Promise<Response> {
    const { dispatcher, userAgent = 'svc' } = this.#options
    const { stallMs = STALL_MS, slowMs = SLOW_MS, clock = systemClock, downloads } = this.#options
    signal?.throwIfAborted()
    const guard = new DialGuard(policy)
    guard.check(url.hostname)
    const agent = dispatcher ?? (await this.#agent(guard))
    // a stream is sent for as long as it takes; undici watches its progress, and then waits for the head
    const isStream = body !== undefined && !(body instanceof Uint8Array)
    const exchange = new ResponseHandler(url, { stallMs, slowMs, clock, downloads }, signal, isStream)
    try {
      agent.dispatch(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method,
          headers: { 'user-agent': userAgent, 'accept-encoding': 'identity', ...headers },
          ...(body !== undefined && { body: body as Uint8Array }),
          headersTimeout: isStream ? stallMs : 0,
          bodyTimeout: 0
        },
        exchange
      )
    } catch (error) {
      exchange.fail(error)
    }
    return exchange.head
  }

  /**
   * The answer at the end of redirects, or the URL before which the walk ended. @throws RedirectError; errors of {@link send}, `hop` and
   * `onAnswer`
   */
  async follow(first: URL, { signal, redirects, hop, onAnswer }: RedirectOptions): Promise<Response | URL> {
    return followRedirects(first, redirects, async (url) => {
      const how = await hop(url)
      if (how === undefined) return undefined
      const response = await this.send({ url, signal, ...how })
      try {
        onAnswer?.(response)
        return response
      } catch (error) {
        response.destroy()
        throw error
      }
    })
  }

  /** Aborts what is under way. */
  async close(): Promise<void> {
    for (const made of this.#agents.values()) await (await made.made)?.destroy()
  }

  #agent({ policy, lookup }: DialGuard): Promise<Dispatcher> {
    const { connections = 8, connectMs = CONNECT_MS, proxy = true } = this.#options
    const made =
      this.#agents.get(policy) ??
      new Lazy<Dispatcher>(async () => {
        const { Agent, EnvHttpProxyAgent } = await undici()
        // HTTP/2 is off: its flow-control windows throttle streams with a long round trip.
        const options = { allowH2: false, pipelining: 1, connections, maxHeaderSize: MAX_HEADER_BYTES }
        const connect = { timeout: connectMs, lookup }
        return proxy ? new EnvHttpProxyAgent({ ...options, connect }) : new Agent({ ...options, connect })
      })
    this.#agents.set(policy, made)
    return made.get()
  }
}
