import { hash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { hostname } from 'node:os'
import { envelope, type RefusalCode, sendJson } from './envelope.ts'
import { createHttpServer } from './server.ts'
import type { TrafficCounter } from './traffic.ts'

/** Sent with every response: a browser must not execute, frame or sniff content from such a port. */
export const HARDENING: OutgoingHttpHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'Content-Disposition': 'attachment',
  'Cross-Origin-Resource-Policy': 'same-origin'
}

const MAX_CONNECTIONS = 512
const MAX_PATH_CHARACTERS = 8_192

/** The purpose of a port, and who may use it. */
export interface ListenerOptions {
  /** For the log and for refusals: `webseed`, `mirror`. */
  readonly name: string
  readonly address: { readonly host: string; readonly port: number }
  /** Default: GET and HEAD. */
  readonly methods?: readonly string[]
  /** Required from clients, as a bearer token or a password; absent: every client is served. */
  readonly token?: string | undefined
  /** Pages of the port's own origin may cause requests. Default: no page may. */
  readonly hasPages?: boolean
  /** Sent when the token is missing or wrong. */
  readonly challenge?: string
  /** Throws while nothing can be answered, because the store is gone. */
  readonly requireStore?: () => void
  /** Writes refusals in the form of the port's protocol. Default: the error envelope. */
  readonly refuse?: typeof refuse
  /** Responds to an accepted request; an error it throws becomes a 500. */
  readonly answer: (request: IncomingMessage, response: ServerResponse, url: string) => Promise<void>
  readonly log: { error(fields: object, message: string): void }
  /** Further host names of this machine that are answered, in lower case, with any port or none. */
  readonly names?: readonly string[]
  /** Counts requests and bytes. */
  readonly traffic?: TrafficCounter | undefined
}

/**
 * A port that strangers may reach: hardened HTTP that responds for its own addresses only, refuses requests that web
 * pages cause, and requires a token if there is one.
 */
export class GuardedListener {
  readonly #server: Server
  readonly #options: ListenerOptions
  readonly #methods: readonly string[]
  readonly #names: readonly string[]

  private constructor(options: ListenerOptions) {
    this.#options = options
    this.#methods = options.methods ?? ['GET', 'HEAD']
    const own = hostname().toLowerCase()
    this.#names = [options.address.host.toLowerCase(), own, `${own.split('.')[0]}.local`]
    this.#server = createHttpServer((request, response) => void this.#answer(request, response), {
      limits: { maxConnections: MAX_CONNECTIONS },
      isForStrangers: true,
      traffic: options.traffic
    })
  }

  /** @throws the error of `listen`, e.g. EADDRINUSE. */
  static async listen(options: ListenerOptions): Promise<GuardedListener> {
    const listener = new GuardedListener(options)
    const { address, log, name } = options
    await once(listener.#server.listen(address.port, address.host), 'listening')
    listener.#server.on('error', (error) => log.error({ err: error }, `the ${name} listener failed`))
    return listener
  }

  get address(): { readonly host: string; readonly port: number } {
    const { address, port } = this.#server.address() as AddressInfo
    return { host: address, port }
  }

  async close(): Promise<void> {
    const closed = once(this.#server.close(), 'close')
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { log, name, answer, refuse: refuseHere = refuse } = this.#options
    response.on('error', () => response.destroy())
    try {
      if (this.#refuses(request, response)) return
      if (!this.#hasStore()) return refuseHere(response, 503, 'E_INTERNAL', 'the store is gone')
      await answer(request, response, request.url!)
    } catch (error) {
      log.error({ err: error, url: request.url?.slice(0, 200) }, `a ${name} request failed`)
      if (response.headersSent) response.destroy()
      else refuseHere(response, 500, 'E_INTERNAL', 'the daemon failed unexpectedly; its log has the details')
    }
  }

  /** The daemon logs the problem itself; requests of strangers, which may be many, are not logged. */
  #hasStore(): boolean {
    try {
      this.#options.requireStore?.()
      return true
    } catch {
      return false
    }
  }

  #refuses(request: IncomingMessage, response: ServerResponse): boolean {
    const { refuse: refuseHere = refuse } = this.#options
    const no = (status: number, code: RefusalCode, message: string, headers?: OutgoingHttpHeaders): true => {
      refuseHere(response, status, code, message, headers)
      return true
    }
    if (this.#options.traffic?.isOfItself(request) === true)
      return no(404, 'E_NOT_FOUND', 'the request comes from this daemon itself')
    if (!this.#isOwnHost(request)) return no(421, 'E_BAD_REQUEST', 'the Host header must be the address of this port')
    if (isFromPage(request, this.#options.hasPages === true))
      return no(403, 'E_BAD_REQUEST', 'requests from web pages are refused')
    if (!this.#methods.includes(request.method ?? ''))
      return no(405, 'E_METHOD_NOT_ALLOWED', `this port accepts ${this.#methods.join(', ')} only`, {
        Allow: this.#methods.join(', ')
      })
    if ((request.url ?? '').length > MAX_PATH_CHARACTERS) return no(404, 'E_NOT_FOUND', 'there is no such path')
    const { token, challenge } = this.#options
    if (token !== undefined && !hasToken(request.headers.authorization, token))
      return no(401, 'E_SOURCE_FORBIDDEN', 'this port requires a token', { 'WWW-Authenticate': challenge ?? 'Bearer' })
    return false
  }

  /** Only the listener's own addresses and names: a web page could bind any other name to this address (DNS rebinding). */
  #isOwnHost(request: IncomingMessage): boolean {
    const { localAddress, localPort } = request.socket
    const host = request.headers.host?.toLowerCase()
    if (host === undefined || localAddress === undefined) return false
    if (this.#options.names?.includes(host.replace(/:\d+$/, '')) === true) return true
    const ip = localAddress.replace(/^::ffff:(?=\d+\.)/, '')
    const own = [isIP(ip) === 6 ? `[${ip}]` : ip, ...this.#names]
    const names = ip === '127.0.0.1' || ip === '::1' ? [...own, 'localhost'] : own
    // some programs omit the port, but browsers never do
    return names.some((name) => host === `${name}:${localPort}`) || own.includes(host)
  }
}

/**
 * Whether a page caused the request: any page, or with `hasPages` one of another origin. An `<img>` sends no `Origin`,
 * an older browser no `Sec-Fetch-Site`: each header refuses alone. The scheme is not compared, since a proxy may add
 * TLS.
 */
function isFromPage({ headers }: IncomingMessage, hasPages: boolean): boolean {
  const { origin, referer, 'sec-fetch-site': site } = headers
  if (site !== undefined && site !== 'none' && !(hasPages && site === 'same-origin')) return true
  const own = hasPages ? headers.host?.toLowerCase() : undefined
  return [origin, referer].some((page) => page !== undefined && (own === undefined || URL.parse(page)?.host !== own))
}

/** `Bearer <token>`, or Basic with it as the password, as container tools send it. Constant-time. */
function hasToken(authorization = '', token: string): boolean {
  const [, scheme = '', given = ''] = /^(basic|bearer) +(.*)$/i.exec(authorization) ?? []
  const sent =
    scheme.toLowerCase() === 'basic'
      ? Buffer.from(given, 'base64')
          .toString('utf8')
          .replace(/^[^:]*:/, '')
      : given
  const hashed = (text: string): Buffer => hash('sha256', text, 'buffer')
  return timingSafeEqual(hashed(sent), hashed(token))
}

export function sendBytes(
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Uint8Array,
  headers: OutgoingHttpHeaders
): void {
  response.writeHead(200, { ...HARDENING, ...headers, 'Content-Length': bytes.length })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

export const refuse = (
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
  headers: OutgoingHttpHeaders = {}
): void => sendJson(response, status, envelope(code, message), { ...HARDENING, ...headers })
