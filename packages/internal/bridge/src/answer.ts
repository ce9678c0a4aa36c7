import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join('; ')

/** Sent with every answer. */
const HARDENING: OutgoingHttpHeaders = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY'
}

/** A request that the bridge itself refuses. */
export class BridgeRefusal extends Error {
  override readonly name = 'BridgeRefusal'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export const forbidden = (): BridgeRefusal =>
  new BridgeRefusal(403, 'E_FORBIDDEN', 'only pages that were opened with the link of svc ui are answered')

export function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Buffer,
  more: OutgoingHttpHeaders = {}
): void {
  response.writeHead(status, {
    ...HARDENING,
    ...more,
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    // the rest of a refused body is not read
    ...(status >= 400 && { Connection: 'close' })
  })
  response.end(body)
}

export const sendJson = (response: ServerResponse, status: number, value: unknown, more?: OutgoingHttpHeaders): void =>
  send(response, status, 'application/json; charset=utf-8', JSON.stringify(value), more)

export function startEvents(response: ServerResponse): void {
  response.writeHead(200, { ...HARDENING, 'Content-Type': 'text/event-stream; charset=utf-8' })
}

/** What a page is told of an error. */
export interface ToldError {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly candidates?: readonly string[] | undefined
  readonly hint?: string | undefined
}

/** Sends an error in the envelope of the daemon. */
export function sendError(response: ServerResponse, error: unknown, explain: (error: unknown) => ToldError): void {
  if (response.headersSent) return void response.destroy()
  const {
    status,
    code,
    message,
    candidates = [],
    hint
  } = error instanceof BridgeRefusal ? (error as ToldError) : explain(error)
  const said = { code, message, ...(candidates.length > 0 && { candidates }), ...(hint !== undefined && { hint }) }
  sendJson(response, status, { error: said })
}

const MAX_BODY_BYTES = 1024 * 1024

/** The JSON object of a request. @throws BridgeRefusal */
export async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const { headers } = request
  if (headers['content-type']?.split(';', 1)[0]?.trim() !== 'application/json')
    throw new BridgeRefusal(415, 'E_BAD_REQUEST', 'a body is application/json')
  const length = Number(headers['content-length'])
  if (headers['transfer-encoding'] !== undefined || !Number.isSafeInteger(length))
    throw new BridgeRefusal(411, 'E_BAD_REQUEST', 'a body has a Content-Length')
  if (length > MAX_BODY_BYTES) throw new BridgeRefusal(413, 'E_TOO_LARGE', `a body is over ${MAX_BODY_BYTES} bytes`)
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new BridgeRefusal(400, 'E_BAD_REQUEST', 'a body is a JSON object')
}

const MAX_TEXT_CHARACTERS = 8_192

/** A field or parameter that is a text. @throws BridgeRefusal */
export function textOf(value: unknown): string {
  if (typeof value === 'string' && value.length <= MAX_TEXT_CHARACTERS) return value
  throw new BridgeRefusal(400, 'E_BAD_REQUEST', 'a text is missing, or too long')
}
