import { lookup } from 'node:dns'
import { lookup as lookupAll } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from '@svc/internal-net'
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici'
import { OciError } from './errors.ts'

const CONNECT_TIMEOUT_MS = 10_000
/** A request that receives no byte for this long is aborted. */
const STALL_MS = 30_000
const CONNECTIONS = 8
const MAX_HEADER_BYTES = 32_768

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
  readonly #own = agent()
  #strangers: Dispatcher | undefined
  #innerRegistry: Promise<boolean> | undefined

  constructor(userAgent: string) {
    this.#userAgent = userAgent
  }

  /**
   * @param byStranger whether a redirect chose the address; it must be a public one then
   * @throws OciError `E_UNAVAILABLE`; on abort the signal's reason
   */
  async send({ method, url, headers, body, signal }: Call, byStranger = false): Promise<Answer> {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (byStranger && isIP(host) !== 0 && !isPublicAddress(host)) throw inner(host)
    if (byStranger) this.#strangers ??= agent(publicLookup)
    try {
      const answer = await request(url, {
        method,
        headers: { 'user-agent': this.#userAgent, 'accept-encoding': 'identity', ...headers },
        ...(body !== undefined && { body: body as Uint8Array }),
        ...(signal !== undefined && { signal }),
        dispatcher: byStranger ? this.#strangers! : this.#own,
        headersTimeout: STALL_MS,
        bodyTimeout: STALL_MS
      })
      // without a listener, an error on a body that is dumped or not yet read would end the process; readers still
      // receive it
      answer.body.on('error', () => undefined)
      return answer
    } catch (cause) {
      signal?.throwIfAborted()
      if (cause instanceof OciError) throw cause
      throw new OciError('E_UNAVAILABLE', `${url.host} cannot be reached: ${reasonOf(cause)}`, {}, cause)
    }
  }

  /**
   * Whether a URL from the registry must lead to a public address. It need not when it is on the registry's own host,
   * or when the registry itself has a private address, since its storage may then have one, too.
   */
  async isStranger(url: URL, registry: string): Promise<boolean> {
    if (url.host === registry) return false
    this.#innerRegistry ??= isInnerRegistry(registry)
    return !(await this.#innerRegistry)
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.destroy(), this.#strangers?.destroy()])
  }
}

const agent = (only?: LookupFunction): Dispatcher =>
  new EnvHttpProxyAgent({
    allowH2: false,
    pipelining: 1,
    connections: CONNECTIONS,
    maxHeaderSize: MAX_HEADER_BYTES,
    connect: { timeout: CONNECT_TIMEOUT_MS, ...(only !== undefined && { lookup: only }) }
  })

/** False when the name cannot be resolved, which is the stricter assumption. */
async function isInnerRegistry(registry: string): Promise<boolean> {
  const host = registry.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return !isPublicAddress(host)
  const found = await lookupAll(host, { all: true }).catch(() => [])
  return found.some(({ address }) => !isPublicAddress(address))
}

/** Checks the very address that is connected to: names that resolve to a private address are refused. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const [first] = found ?? []
    if (error !== null || first === undefined) return callback(error, '', 0)
    if (found.some(({ address }) => !isPublicAddress(address))) return callback(inner(hostname), '', 0)
    if (options.all === true) return callback(null, found)
    callback(null, first.address, first.family)
  })
}

const inner = (host: string): OciError =>
  new OciError('E_UNAVAILABLE', `the registry redirects to ${host}, which is a loopback or private address: refused`)

function reasonOf(cause: unknown): string {
  const { code, message } = cause as { code?: unknown; message?: unknown }
  return typeof code === 'string' ? code : String(message)
}

/** Reads a small body. @throws OciError `E_UNAVAILABLE` when it exceeds `maxBytes` or the connection breaks */
export async function readBody({ body }: Answer, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      length += chunk.length
      if (length > maxBytes)
        throw new OciError('E_UNAVAILABLE', `the registry answers with more than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (cause) {
    if (cause instanceof OciError) throw cause
    throw new OciError('E_UNAVAILABLE', `an answer of the registry broke off: ${reasonOf(cause)}`, {}, cause)
  }
  return Buffer.concat(chunks)
}

/** The value of a header; the first if there are several. */
export function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}
