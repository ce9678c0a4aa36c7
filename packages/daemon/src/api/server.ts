import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '@svc/client/protocol'
import { envelope } from './envelope.ts'

// As an ES module, node:http evaluates all its lazy exports, among them a WebSocket client with a fetch of its own.
const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http')

/** Bounds of the management listener (reliability: defaults of Node that are too generous). */
const HTTP_LIMITS = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 30_000,
  connectionsCheckMs: 1_000,
  keepAliveTimeoutMs: 30_000,
  /** No byte either way for this long closes a connection. */
  idleTimeoutMs: 120_000,
  maxConnections: 1_024,
  maxHeaderBytes: 16_384,
  maxHeaders: 100
} as const

export interface ServerOptions {
  readonly limits?: Partial<Record<keyof typeof HTTP_LIMITS, number>>
}

interface Refusal {
  readonly status: number
  readonly code: ErrorCode
  readonly message: string
}

/**
 * An HTTP/1.1 server that answers everything in the API's envelope, also what Node's parser refuses by itself, and that
 * hands only well-formed requests to `handler`: one `Host`, origin form, HTTP/1.0 or 1.1.
 */
export function createHttpServer(handler: RequestListener, options: ServerOptions = {}): Server {
  const limits = { ...HTTP_LIMITS, ...options.limits }
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      maxHeaderSize: limits.maxHeaderBytes,
      // checked below: Node would answer without a body
      requireHostHeader: false,
      insecureHTTPParser: false,
      noDelay: true
    },
    (request, response) => {
      const refusal = refusalOf(request)
      if (refusal !== undefined) {
        const body = JSON.stringify(envelope(refusal.code, refusal.message))
        response.writeHead(refusal.status, {
          ...JSON_HEADERS,
          'Content-Length': Buffer.byteLength(body),
          Connection: 'close'
        })
        response.end(body)
        return
      }
      // The header is not required, and bodies are JSON whatever it says (spec http.6).
      delete request.headers['content-type']
      handler(request, response)
    }
  )
  server.maxHeadersCount = limits.maxHeaders
  server.maxConnections = limits.maxConnections
  server.timeout = limits.idleTimeoutMs

  server.on('checkExpectation', (_request, response) => {
    const body = JSON.stringify(envelope('E_BAD_REQUEST', 'the only expectation that is met is 100-continue'))
    response.writeHead(417, { ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(body), Connection: 'close' })
    response.end(body)
  })
  server.on('connect', (_request, socket: Duplex) => {
    refuseRaw(
      socket,
      { status: 405, code: 'E_METHOD_NOT_ALLOWED', message: 'CONNECT is not supported' },
      { Allow: 'GET, HEAD, POST' }
    )
  })
  return server
}

const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8' }

function refusalOf(request: IncomingMessage): Refusal | undefined {
  const bad = (message: string): Refusal => ({ status: 400, code: 'E_BAD_REQUEST', message })
  if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0') {
    return bad(`HTTP/${request.httpVersion} is not spoken here; use HTTP/1.1`)
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

/** Answers on a socket that has no response object, and closes it. */
function refuseRaw(socket: Duplex, refusal: Refusal, headers: Readonly<Record<string, string>> = {}): void {
  socket.on('error', () => socket.destroy())
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = JSON.stringify(envelope(refusal.code, refusal.message))
  const lines = Object.entries({
    ...JSON_HEADERS,
    ...headers,
    Date: new Date().toUTCString(),
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close'
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\n${lines.join('')}\r\n${body}`)
  // a peer that goes on sending must not keep the socket
  setTimeout(() => socket.destroy(), 1_000).unref()
}

/** What Node's parser and its timers refuse; to be installed as the server's one `clientError` listener. */
export function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  const { _httpMessage: begun } = socket as Duplex & { _httpMessage?: { headersSent?: boolean } | null }
  // in the middle of a response another status line would be read as its body
  if (error.code === 'ECONNRESET' || error.code === 'EPIPE' || begun?.headersSent === true) {
    socket.destroy()
    return
  }
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return refuseRaw(socket, {
        status: 431,
        code: 'E_HEADERS_TOO_LARGE',
        message: `the header is larger than ${HTTP_LIMITS.maxHeaderBytes} bytes`
      })
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return refuseRaw(socket, { status: 413, code: 'E_TOO_LARGE', message: 'the chunk extensions are too large' })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refuseRaw(socket, { status: 408, code: 'E_TIMEOUT', message: 'the request did not arrive in time' })
    default:
      return refuseRaw(socket, {
        status: 400,
        code: 'E_BAD_REQUEST',
        message: 'the request is not well-formed HTTP/1.1'
      })
  }
}
