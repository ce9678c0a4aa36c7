import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { ErrorCode, ErrorEnvelope } from '@svc/client/protocol'

/** `Content-Type` of all responses except blobs and metrics. */
export const JSON_TYPE = 'application/json; charset=utf-8'
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The form of every error response (spec err.1). */
export const envelope = (code: ErrorCode, message: string, candidates?: readonly string[]): ErrorEnvelope => ({
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
