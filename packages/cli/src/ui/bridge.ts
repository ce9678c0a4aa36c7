import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Session } from '../session.ts'
import { BridgeRefusal, forbidden, readBody, send, sendError, sendJson, startEvents } from './answer.ts'
import { BridgeAccess } from './bridge-access.ts'
import { LiveFeed } from './live-feed.ts'
import { findRoute } from './routes.ts'

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
<p role="status">This page opens with the link that “svc ui” prints. Each link works once; press Enter there for a new one.</p>
</html>
`

const ENTRY_SCRIPT = `const token = location.hash.slice(1)
if (token !== '') {
  history.replaceState(null, '', '/')
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch('/session', { method: 'POST', headers, body: JSON.stringify({ token }) })
  if (answer.ok) location.replace((await answer.json()).path)
}
`

const MAX_CONNECTIONS = 256
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
}

/** Serves a page on 127.0.0.1 to the browser of one person, and passes its requests to the daemon. */
export class Bridge {
  readonly #server: Server
  readonly #session: Session
  readonly #options: BridgeOptions
  readonly #feed: LiveFeed
  #access = new BridgeAccess('')

  private constructor(session: Session, options: BridgeOptions) {
    // remarks are for a terminal
    this.#session = { ...session, note: () => undefined }
    this.#options = options
    this.#feed = new LiveFeed(session)
    this.#server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: 5_000,
        requestTimeout: 30_000,
        // silent connections of others must not take the browser's places
        connectionsCheckingInterval: 1_000
      },
      (request, response) => void this.#answer(request, response)
    )
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  /** @throws the error of `listen`, e.g. EADDRINUSE */
  static async start(session: Session, options: BridgeOptions): Promise<Bridge> {
    const bridge = new Bridge(session, options)
    await once(bridge.#server.listen(options.port ?? 0, '127.0.0.1'), 'listening')
    bridge.#access = new BridgeAccess(`127.0.0.1:${bridge.port}`)
    return bridge
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** A link that lets one browser in, once. Earlier links no longer do. */
  newLink(): string {
    return `http://127.0.0.1:${this.port}/#${this.#access.newToken()}`
  }

  async close(): Promise<void> {
    this.#feed.close()
    const closed = once(this.#server.close(), 'close')
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy())
    try {
      await this.#dispatch(request, response)
    } catch (error) {
      if (!response.destroyed) sendError(response, error)
    }
  }

  /** Paths are compared as they were sent, so nothing leads out of the page's files. */
  async #dispatch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    if (this.#access.isForeign(request, path === '/')) throw forbidden()
    if (path.startsWith(this.#access.path) && this.#access.hasSession(request))
      return this.#serve(request, response, path.slice(this.#access.path.length), url.slice(path.length))
    switch (`${method} ${path}`) {
      case 'GET /':
        return send(response, 403, 'text/html; charset=utf-8', ENTRY)
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
    const { route, params } = findRoute(method, name)
    const body = method === 'POST' || method === 'PUT' ? await readBody(request) : {}
    const gone = new AbortController()
    response.on('close', () => gone.abort(new BridgeRefusal(499, 'E_ABORTED', 'the page has gone')))
    // a request that changes something continues without its page
    const signal = method === 'GET' ? gone.signal : undefined
    const answer = await route({ session: this.#session, params, query, body, signal })
    if (method !== 'GET') this.#feed.lookSoon()
    if (!response.destroyed) sendJson(response, 200, answer)
  }
}
