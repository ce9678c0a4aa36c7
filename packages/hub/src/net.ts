import { Lazy } from '@svc/internal-concurrency'
import { DialGuard, type DialPolicy, isRefusedAddress, loadHttpClient, policyOfNamer } from '@svc/internal-net'
import type { Dispatcher } from 'undici'
import { type Endpoint, printableUrl } from './endpoint.ts'
import { HubError } from './errors.ts'
import { type BodyConsumer, exchange, type Flow, type ResponseHead } from './exchange.ts'
import { header } from './headers.ts'
import type { HubLimits, RetryTimings } from './limits.ts'
import { RangeThreads } from './range-threads.ts'
import { Trouble } from './trouble.ts'

/** State that all calls of one hub object share. */
export interface Net {
  readonly endpoint: Endpoint
  readonly hasToken: boolean
  /** The token's name in messages. */
  readonly tokenName: string
  readonly limits: HubLimits
  readonly timings: RetryTimings
  walk(request: WalkRequest): Promise<WalkResult>
  /**
   * How a thread may request this address by itself, under the same rules as `walk`; undefined if only `walk` can,
   * because the connection is not ours to make (a proxy, the caller's dispatcher). @throws Trouble for a refused
   * address
   */
  directly(
    url: URL
  ): Promise<{ readonly headers: Readonly<Record<string, string>>; readonly policy: DialPolicy } | undefined>
  readonly ranges: RangeThreads
  /** The failure for a name in `url` whose address was refused. */
  refusedInner(url: URL, error: unknown): Trouble
  close(): Promise<void>
}

interface WalkRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
  /** Accept responses of the API from the hub's own origin only. */
  readonly sameOriginOnly?: boolean
  /** Called with every head, including those of redirects; throws to refuse. */
  readonly onHop?: (head: ResponseHead, url: URL) => void
  /** Stop before requesting an address at another origin than the hub's: the result then has no head. */
  readonly stopElsewhere?: boolean
  /** Returns the consumer of the final response's body. */
  readonly onAnswer: (head: ResponseHead, url: URL, flow: Flow) => BodyConsumer | undefined
}
export interface WalkResult {
  readonly url: URL
  /** Absent if the walk stopped before this address. */
  readonly head: ResponseHead | undefined
}

export interface NetOptions {
  readonly endpoint: Endpoint
  readonly token: string | undefined
  readonly tokenName: string
  readonly userAgent: string
  readonly dispatcher: Dispatcher | undefined
  readonly publicOnly: boolean
  readonly threadNice: number
  readonly limits: HubLimits
  readonly timings: RetryTimings
}

/** Values that a thread can send in a header unescaped. */
const SENDABLE = /^[\x20-\x7e]*$/

/** Whether undici would take a proxy from the environment. */
const hasProxy = (env: NodeJS.ProcessEnv): boolean =>
  ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'].some((name) => Boolean(env[name]))

/** Loaded with the first request. */
const undici = (): Promise<typeof import('undici')> => loadHttpClient(import.meta.url)

const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * Connections and redirects. The token goes to the hub's own origin (scheme, host, port) and to no other. A redirect
 * never leads from https to http, and only where the endpoint's own address lets it name one (see DialPolicy).
 */
export function createNet(options: NetOptions): Net {
  const { endpoint, token, userAgent, publicOnly, limits, timings } = options
  // HTTP/2 is off: its flow-control windows throttle streams with a long round trip. Loaded with the first request.
  const agent = async ({ lookup }: DialGuard): Promise<Dispatcher> => {
    const { EnvHttpProxyAgent } = await undici()
    return new EnvHttpProxyAgent({
      allowH2: false,
      pipelining: 1,
      connections: limits.ranges + limits.smallFiles,
      connect: { timeout: timings.connectMs, lookup }
    })
  }
  const agents = new Map<DialPolicy, Lazy<Dispatcher>>()
  let forRedirects: Promise<DialPolicy> | undefined

  /** What may be dialled for `url`. @throws Trouble if the host alone shows that it may not */
  const guardOf = async (url: URL): Promise<DialGuard> => {
    const policy = publicOnly
      ? 'internet'
      : url.origin === endpoint.origin
        ? 'owner'
        : await (forRedirects ??= policyOfNamer(new URL(endpoint.origin).hostname))
    const guard = new DialGuard(policy)
    try {
      guard.check(url.hostname)
    } catch (error) {
      throw refused(url, 'a loopback or private address', error)
    }
    return guard
  }

  const dispatcherFor = (guard: DialGuard): Promise<Dispatcher> | Dispatcher => {
    if (options.dispatcher !== undefined) return options.dispatcher
    const made = agents.get(guard.policy) ?? new Lazy(() => agent(guard))
    agents.set(guard.policy, made)
    return made.get()
  }

  const headersFor = (url: URL): Record<string, string> => ({
    'user-agent': userAgent,
    'accept-encoding': 'identity',
    ...(url.origin === endpoint.origin && token !== undefined ? { authorization: `Bearer ${token}` } : {})
  })

  const refused = (url: URL, what: string, cause?: unknown) =>
    new Trouble(
      'final',
      new HubError(
        'E_SOURCE_UNAVAILABLE',
        'refused-redirect',
        `the hub redirects to ${what} (${printableUrl(url)}), which is refused; check the endpoint`,
        { url: printableUrl(url) },
        cause
      )
    )

  async function hop(request: WalkRequest, url: URL): Promise<{ head: ResponseHead; location: string | undefined }> {
    const dispatcher = await dispatcherFor(await guardOf(url))
    let location: string | undefined
    try {
      const head = await exchange(
        dispatcher,
        {
          url,
          headers: { ...request.headers, ...headersFor(url) },
          signal: request.signal,
          stallMs: timings.stallMs,
          slowMs: timings.slowMs
        },
        (head, flow) => {
          request.onHop?.(head, url)
          if (REDIRECTS.has(head.status)) location = header(head.headers, 'location')
          return location === undefined ? request.onAnswer(head, url, flow) : undefined
        }
      )
      return { head, location }
    } catch (error) {
      request.signal?.throwIfAborted()
      if (isRefusedAddress(error)) throw refused(url, 'a loopback or private address', error)
      throw error
    }
  }

  async function walk(request: WalkRequest): Promise<WalkResult> {
    let url = request.url
    for (let hops = 0; hops <= limits.redirects; hops++) {
      if (request.stopElsewhere && url.origin !== endpoint.origin) return { url, head: undefined }
      const { head, location } = await hop(request, url)
      if (location === undefined) return { url, head }
      const next = URL.parse(location, url.href)
      if (next === null || !['http:', 'https:'].includes(next.protocol) || next.username + next.password !== '') {
        throw refused(url, 'something that is no plain http or https URL')
      }
      if (url.protocol === 'https:' && next.protocol === 'http:') throw refused(next, 'an unencrypted address')
      if (request.sameOriginOnly && next.origin !== endpoint.origin) throw refused(next, 'another origin')
      next.hash = ''
      url = next
    }
    throw refused(request.url, `more than ${limits.redirects} addresses in a row`)
  }

  const direct = options.dispatcher === undefined && !hasProxy(process.env) && SENDABLE.test(userAgent)
  const ranges = new RangeThreads(undefined, options.threadNice)

  return {
    directly: async (url) => (direct ? { policy: (await guardOf(url)).policy, headers: headersFor(url) } : undefined),
    ranges,
    refusedInner: (url, error) => refused(url, 'a loopback or private address', error),
    endpoint,
    hasToken: token !== undefined,
    tokenName: options.tokenName,
    limits,
    timings,
    walk,
    close: async () => {
      await ranges.close()
      for (const made of agents.values()) await (await made.made)?.destroy()
    }
  }
}
