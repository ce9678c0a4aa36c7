import { DialGuard, type DialPolicy, diskErrorOf, loadHttpClient, policyOfNamer } from '@svc/internal-net'
import type { Dispatcher } from 'undici'
import { OciError } from './errors.ts'

const CONNECT_TIMEOUT_MS = 10_000
/** A request that receives no byte for this long is aborted. */
const STALL_MS = 30_000
/** For the head of a response, and for a whole document; at a byte now and then an import would never end. */
const HEAD_MS = 60_000
const DOCUMENT_MS = 120_000
const CONNECTIONS = 8
const MAX_HEADER_BYTES = 32_768

const undici = (): Promise<typeof import('undici')> => loadHttpClient(import.meta.url)

/** One request to a registry, or to a server that it redirects to. */
export interface Call {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined
  readonly signal?: AbortSignal | undefined
}

/** A response whose body is unread. The receiver must read or dump the body. */
export type Answer = Dispatcher.ResponseData

/** HTTP connections to registries and to the storage that they redirect to. */
export class Exchange {
  readonly #userAgent: string
  readonly #headMs: number
  readonly #agents = new Map<DialPolicy, Dispatcher>()
  #forRegistry: Promise<DialPolicy> | undefined

  constructor(userAgent: string, headMs = HEAD_MS) {
    this.#userAgent = userAgent
    this.#headMs = headMs
  }

  /**
   * @param policy on whose word the URL is requested; see {@link policyOf}
   * @throws OciError `E_UNAVAILABLE`; an error of our disk as it is; on abort the signal's reason
   */
  async send({ method, url, headers, body, signal }: Call, policy: DialPolicy = 'owner'): Promise<Answer> {
    const guard = new DialGuard(policy, inner)
    guard.check(url.hostname)
    // interim responses (1xx) restart undici's timer; a streamed body is sent before there is a response
    const late = new AbortController()
    const isStream = body !== undefined && !(body instanceof Uint8Array)
    const timer = isStream
      ? undefined
      : setTimeout(() => late.abort(new Error(`no response within ${this.#headMs} ms`)), this.#headMs)
    try {
      const client = await undici()
      const answer = await client.request(url, {
        method,
        headers: { 'user-agent': this.#userAgent, 'accept-encoding': 'identity', ...headers },
        ...(body !== undefined && { body: body as Uint8Array }),
        signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
        dispatcher: this.#agent(client, guard),
        headersTimeout: STALL_MS,
        bodyTimeout: STALL_MS
      })
      // without a listener, an error on a body that is dumped or not yet read would end the process; readers still
      // receive it
      answer.body.on('error', () => undefined)
      return answer
    } catch (cause) {
      signal?.throwIfAborted()
      if (cause instanceof OciError || diskErrorOf(cause) !== undefined) throw cause
      throw new OciError('E_UNAVAILABLE', `${url.host} cannot be reached: ${reasonOf(cause)}`, {}, cause)
    } finally {
      clearTimeout(timer)
    }
  }

  /** On whose word a URL is requested: the owner named the registry's own host, the registry all others. */
  async policyOf(url: URL, registry: string): Promise<DialPolicy> {
    if (url.host === registry) return 'owner'
    return (this.#forRegistry ??= policyOfNamer(registry.replace(/:\d+$/, '')))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()))
  }

  #agent({ EnvHttpProxyAgent }: typeof import('undici'), { policy, lookup }: DialGuard): Dispatcher {
    const agent =
      this.#agents.get(policy) ??
      new EnvHttpProxyAgent({
        allowH2: false,
        pipelining: 1,
        connections: CONNECTIONS,
        maxHeaderSize: MAX_HEADER_BYTES,
        connect: { timeout: CONNECT_TIMEOUT_MS, lookup }
      })
    this.#agents.set(policy, agent)
    return agent
  }
}

const inner = (host: string): OciError =>
  new OciError(
    'E_UNAVAILABLE',
    `refused to connect to ${host}, which the registry names: a loopback, private or reserved address`
  )

function reasonOf(cause: unknown): string {
  const { code, message } = cause as { code?: unknown; message?: unknown }
  return typeof code === 'string' ? code : String(message)
}

/** Reads a small body. @throws OciError `E_UNAVAILABLE` when it exceeds `maxBytes` or the connection breaks */
export async function readBody({ body }: Answer, maxBytes: number, withinMs = DOCUMENT_MS): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const timer = setTimeout(() => body.destroy(new Error(`it took more than ${withinMs} ms`)), withinMs)
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      length += chunk.length
      if (length > maxBytes)
        throw new OciError('E_UNAVAILABLE', `the registry's response is larger than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (cause) {
    if (cause instanceof OciError) throw cause
    throw new OciError(
      'E_UNAVAILABLE',
      `the connection broke during a response of the registry: ${reasonOf(cause)}`,
      {},
      cause
    )
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks)
}

/** The value of a header; the first if there are several. */
export function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}
