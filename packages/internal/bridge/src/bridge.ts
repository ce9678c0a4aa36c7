import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Client } from '@svc/client'
import type { Clock } from '@svc/internal-clock'
import { errnoOf } from '@svc/internal-errors'
import { type AccessKeeper, BridgeAccess } from './access.ts'
import { BridgeRefusal, forbidden, readBody, send, sendError, sendJson, startEvents, type ToldError } from './answer.ts'
import { closed, listenOnAll } from './listening.ts'
import { LiveFeed } from './live-feed.ts'
import { type PageHost, pageHosts, type Resolve, SHARED_HOST } from './page-host.ts'
import { Places } from './places.ts'

/**
 * The page without a session: a refusal, whose script redeems the token behind `#`. A fragment is in no
 * request, so no log or `Referer` has it, and no fetch ahead of a click uses it up.
 */
const ENTRY = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>svc</title>
<link rel="icon" href="data:,">
<script type="module" src="/enter.js"></script>
<h1>svc</h1>
<p role="status">This page opens with a link that “svc ui” prints, once. Run “svc ui” again, or press Enter where it runs, and open the new link.</p>
</html>
`

const ENTRY_SCRIPT = `const token = location.hash.slice(1)
if (token !== '' && location.pathname === '/') {
  history.replaceState(null, '', '/')
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch('/session', { method: 'POST', headers, body: JSON.stringify({ token }) })
  if (answer.ok) location.replace((await answer.json()).path)
}
`

/** Connections that have shown no session, of which anybody on this machine may open any number. */
const MAX_STRANGERS = 512
/** Connections of browsers that were let in: six of each, and more of those that use several profiles. */
const MAX_CONNECTIONS = 128
const MAX_HEADER_BYTES = 16 * 1024

export interface PageFile {
  readonly type: string
  readonly bytes: Buffer
}

export interface BridgeOptions {
  /** By name; `index.html` is the page. */
  readonly files: ReadonlyMap<string, PageFile>
  /** 0: any that is free. */
  readonly port?: number | undefined
  /** Finds the addresses of a name. Default: as the system does. */
  readonly resolve?: Resolve | undefined
  /** Keeps the address and who was let in for the next run. Default: each run has its own. */
  readonly keeper?: AccessKeeper | undefined
}

/** A request of the page. */
export interface BridgeRequest {
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
  /** Aborts when the page no longer waits for what it reads. */
  readonly signal: AbortSignal | undefined
}

/** What a bridge leads to. */
export interface BridgeBehind {
  readonly client: Client
  readonly clock: Clock
  /** Whether the browser runs on this system. */
  readonly isBrowserHere: boolean
  /** Finds what answers a path below the page's own, with a value for JSON. @throws BridgeRefusal */
  find(method: string, path: string): (asked: BridgeRequest) => Promise<unknown>
  explain(error: unknown): ToldError
}

/** What another program that had this origin left in the browser. */
const FORGET = { 'Clear-Site-Data': '"cache", "storage"' }

/** Serves a page on this machine to the browser of one person, and passes its requests to the daemon. */
export class Bridge {
  #servers: readonly Server[] = []
  readonly #behind: BridgeBehind
  readonly #options: BridgeOptions
  readonly #feed: LiveFeed
  readonly #strangers = new Places(MAX_STRANGERS)
  readonly #known = new Places(MAX_CONNECTIONS)
  #origin = ''
  #access = new BridgeAccess('')

  private constructor(behind: BridgeBehind, options: BridgeOptions) {
    this.#behind = behind
    this.#options = options
    this.#feed = new LiveFeed(behind.client, behind.clock)
  }

  /** @throws the error of `listen`, e.g. EADDRINUSE */
  static async start(behind: BridgeBehind, options: BridgeOptions): Promise<Bridge> {
    const bridge = new Bridge(behind, options)
    const { resolve, keeper } = options
    const hosts = await pageHosts(behind.isBrowserHere, behind.clock, { resolve, kept: keeper?.kept?.name })
    for (const [i, host] of hosts.entries()) {
      try {
        await bridge.#listen(host)
        return bridge
      } catch (error) {
        if (errnoOf(error) !== 'EADDRNOTAVAIL' || i === hosts.length - 1) throw error
      }
    }
    return bridge
  }

  get port(): number {
    return (this.#servers[0]!.address() as AddressInfo).port
  }

  /** Whether another program may have served pages to the browser from the same origin. */
  get isShared(): boolean {
    return new URL(this.#origin).hostname === SHARED_HOST.name
  }

  /** A link that lets one browser in, once. Earlier links no longer do. */
  newLink(): string {
    return `${this.#origin}/#${this.#access.newToken()}`
  }

  async close(): Promise<void> {
    this.#feed.close()
    await Promise.all(this.#servers.map(closed))
  }

  async #listen({ name, addresses }: PageHost): Promise<void> {
    const { port = 0 } = this.#options
    this.#servers = await listenOnAll(() => this.#server(), addresses, port)
    // without the port where browsers leave it out
    this.#origin = new URL(`http://${name}:${this.port}`).origin
    this.#access = new BridgeAccess(new URL(this.#origin).host, this.#options.keeper)
  }

  #server(): Server {
    const answer = (request: IncomingMessage, response: ServerResponse): void => void this.#answer(request, response)
    const server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: 5_000,
        requestTimeout: 30_000,
        connectionsCheckingInterval: 1_000,
        // refused like any other wrong host
        requireHostHeader: false
      },
      answer
    )
    server.on('checkExpectation', answer)
    server.on('clientError', refuseBytes)
    server.on('connection', (socket) => this.#strangers.add(socket))
    return server
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy())
    try {
      await this.#dispatch(request, response)
    } catch (error) {
      if (!response.destroyed) sendError(response, error, this.#behind.explain)
    }
  }

  /** Paths are compared as they were sent, so nothing leads out of the page's files. */
  async #dispatch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    const isForeign = this.#access.isForeign(request, path === '/')
    if (!isForeign && path.startsWith(this.#access.path) && this.#access.hasSession(request)) {
      this.#strangers.delete(request.socket)
      this.#known.add(request.socket)
      return this.#serve(request, response, path.slice(this.#access.path.length), url.slice(path.length))
    }
    // the only answer of a connection without a session
    response.shouldKeepAlive = false
    if (isForeign) throw forbidden()
    // a tab of an earlier run, or whose session is over
    const isTab = method === 'GET' && request.headers['sec-fetch-dest'] === 'document'
    switch (`${method} ${isTab ? '/' : path}`) {
      case 'GET /':
        return send(
          response,
          403,
          'text/html; charset=utf-8',
          ENTRY,
          this.isShared || this.#options.keeper !== undefined ? FORGET : {}
        )
      case 'GET /enter.js':
        return send(response, 200, 'text/javascript; charset=utf-8', ENTRY_SCRIPT)
      case 'POST /session':
        return this.#enter(request, response)
      default:
        throw forbidden()
    }
  }

  /** Answers a browser with a session; `name` is below the page's path. */
  async #serve(request: IncomingMessage, response: ServerResponse, name: string, query: string): Promise<void> {
    if (request.method === 'GET') {
      const file = this.#options.files.get(name === '' ? 'index.html' : name)
      if (file !== undefined) return send(response, 200, file.type, file.bytes)
      if (name === 'events') return this.#stream(response)
    }
    await this.#pass(request, response, name, new URLSearchParams(query))
  }

  async #enter(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { token } = await readBody(request)
    const cookie = typeof token === 'string' ? this.#access.redeem(token) : undefined
    if (cookie === undefined) throw forbidden()
    sendJson(response, 200, { path: this.#access.path }, { 'Set-Cookie': cookie })
  }

  #stream(response: ServerResponse): void {
    if (!this.#feed.hasRoom) throw new BridgeRefusal(503, 'E_RATE_LIMITED', 'too many pages are open')
    startEvents(response)
    this.#feed.attach(response)
  }

  async #pass(request: IncomingMessage, response: ServerResponse, name: string, query: URLSearchParams): Promise<void> {
    const { method = '' } = request
    const answerOf = this.#behind.find(method, name)
    const body = method === 'POST' || method === 'PUT' ? await readBody(request) : {}
    const gone = new AbortController()
    response.on('close', () => gone.abort(new BridgeRefusal(499, 'E_ABORTED', 'the page has gone')))
    // a request that changes something continues without its page
    const signal = method === 'GET' ? gone.signal : undefined
    const answer = await answerOf({ query, body, signal })
    if (method !== 'GET') this.#feed.lookSoon()
    if (!response.destroyed) sendJson(response, 200, answer)
  }
}

const STATUS_OF: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Content Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout'
}

/** Refuses what is no request, as Node does; but no browser may keep the answer. */
function refuseBytes({ code = '' }: NodeJS.ErrnoException, socket: Duplex): void {
  const status = STATUS_OF[code] ?? '400 Bad Request'
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  socket.end(`HTTP/1.1 ${status}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n`)
}
