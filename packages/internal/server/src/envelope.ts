import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'

/** `Content-Type` of all responses except blobs and metrics. */
export const JSON_TYPE = 'application/json; charset=utf-8'
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Why a listener refuses a request, whatever it serves: codes of spec err.2. */
export type RefusalCode =
  | 'E_BAD_REQUEST'
  | 'E_HEADERS_TOO_LARGE'
  | 'E_INTERNAL'
  | 'E_METHOD_NOT_ALLOWED'
  | 'E_NOT_FOUND'
  | 'E_SOURCE_FORBIDDEN'
  | 'E_TIMEOUT'
  | 'E_TOO_LARGE'

/** The form of every error response (spec err.1). */
export const envelope = <Code extends string>(code: Code, message: string, candidates?: readonly string[]) => ({
  error: { code, message, ...(candidates !== undefined && { candidates: [...candidates] }) }
})

/** Sends a JSON document. Node omits the body of a response to HEAD. */
export function sendJson(
  response: ServerResponse,
  status: number,
  document: unknown,
  headers: OutgoingHttpHeaders = {}
): void {
  const body = JSON.stringify(document)
  response.writeHead(status, { ...headers, 'Content-Type': JSON_TYPE, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}
