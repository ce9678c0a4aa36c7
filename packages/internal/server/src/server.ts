import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Clock, systemClock } from '@svc/internal-clock'
import { Connections, endConnectionWith } from './connection.ts'
import { shareConnections } from './connection-shares.ts'
import { envelope, sendJson } from './envelope.ts'
import type { Refusal } from './raw-refusal.ts'
import type { TrafficCounter } from './traffic.ts'

// As an ES module, node:http evaluates all its lazy exports, among them a WebSocket client with its own fetch.
const { createServer } = process.getBuiltinModule('node:http')

/** Limits of a listener, where Node's own are too generous or absent (docs/budgets.md). */
const HTTP_LIMITS = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 30_000,
  connectionsCheckMs: 1_000,
  keepAliveTimeoutMs: 30_000,
  /** A connection without traffic in either direction for this long is closed. */
  idleTimeoutMs: 120_000,
  maxConnections: 1_024,
  maxHeaderBytes: 16_384,
  maxHeaders: 100
} as const

export interface ServerOptions {
  readonly clock?: Clock
  readonly limits?: Partial<Record<keyof typeof HTTP_LIMITS, number>>
  /** Hosts share the connections: while all are taken, the host with the most loses one to a host with fewer. */
  readonly isForStrangers?: boolean
  /** Counts requests and bytes. */
  readonly traffic?: Pick<TrafficCounter, 'watch'> | undefined
}

/**
 * An HTTP/1.1 server whose error responses all have the API's envelope, even those for requests that Node's parser rejects.
 * `handler` gets only well-formed requests (one `Host`, origin form, HTTP/1.0 or 1.1), one at a time per connection.
 */
export function createHttpServer(handler: RequestListener, options: ServerOptions = {}): Server {
  const limits = { ...HTTP_LIMITS, ...options.limits }
  const { clock = systemClock } = options
  const connections = new Connections(clock)
  const inTurn = (request: IncomingMessage, response: ServerResponse, refusal: Refusal | undefined): void => {
    const begin = refusal === undefined ? () => handler(request, response) : () => refuse(response, refusal)
    connections.of(request.socket).accept({ request, response, begin })
  }
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      maxHeaderSize: limits.maxHeaderBytes,
      // checked below: Node would respond without a body
      requireHostHeader: false,
      insecureHTTPParser: false,
      noDelay: true
    },
    (request, response) => inTurn(request, response, refusalOf(request))
  )
  options.traffic?.watch(server, limits.maxConnections)
  server.maxHeadersCount = limits.maxHeaders
  if (options.isForStrangers === true) shareConnections(server, connections, limits.maxConnections, clock)
  else server.maxConnections = limits.maxConnections
  server.timeout = limits.idleTimeoutMs
  // a client that closes its sending side after the request (`nc -N`, some libraries) still reads the response
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true

  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    inTurn(request, response, {
      status: 417,
      code: 'E_BAD_REQUEST',
      message: '100-continue is the only expectation that is supported'
    })
  )
  server.on('connect', (_request, socket: Duplex & Partial<IncomingMessage['socket']>) => {
    // Node no longer watches this socket: handle its errors and timeouts here
    socket.on('error', () => socket.destroy())
    socket.setTimeout?.(limits.idleTimeoutMs, () => socket.destroy())
    connections.of(socket).refuse({
      status: 405,
      code: 'E_METHOD_NOT_ALLOWED',
      message: 'CONNECT is not supported',
      headers: { Allow: 'GET, HEAD, POST, PUT, DELETE' }
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || error.code === 'EPIPE') socket.destroy()
    else {
      const refusal = refusalOfError(error.code, limits.maxHeaderBytes)
      const connection = connections.of(socket)
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') connection.refuseLate(refusal, limits.headersTimeoutMs)
      else connection.refuse(refusal)
    }
  })
  return server
}

function refuse(response: ServerResponse, { status, code, message }: Refusal): void {
  endConnectionWith(response)
  sendJson(response, status, envelope(code, message))
}

/** Why a parsed request is refused, or undefined. */
function refusalOf(request: IncomingMessage): Refusal | undefined {
  const bad = (message: string): Refusal => ({ status: 400, code: 'E_BAD_REQUEST', message })
  if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0') {
    return bad(`HTTP/${request.httpVersion} is not supported; use HTTP/1.1`)
  }
  const { rawHeaders, url = '' } = request
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  if (hosts > 1) return bad('more than one Host header')
  if (hosts === 0 && request.httpVersion === '1.1') return bad('the Host header is missing; any value will do')
  if (!url.startsWith('/')) return bad('the request target must be a path, such as /v1/models')
  if (url.includes('#')) return bad('the request target holds a "#"; encode it as %23')
  return undefined
}

/** The refusal for an error of Node's parser or timers. */
function refusalOfError(code: string | undefined, maxHeaderBytes: number): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        status: 431,
        code: 'E_HEADERS_TOO_LARGE',
        message: `the header is larger than ${maxHeaderBytes} bytes`
      }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, code: 'E_TOO_LARGE', message: 'the chunk extensions are too large' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, code: 'E_TIMEOUT', message: 'the request did not arrive in time' }
    default:
      return { status: 400, code: 'E_BAD_REQUEST', message: 'the request is not well-formed HTTP/1.1' }
  }
}
