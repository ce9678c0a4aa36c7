import { isObject, parseJson } from '@svc/internal-http'
import { DaemonError } from '../errors.ts'

/** Only the depth of the owner's own requests is bounded: a list may name very many files. */
const OWNERS = { values: Number.POSITIVE_INFINITY, keys: Number.POSITIVE_INFINITY }

/** A JSON object of at most 32 levels (spec http.6). `__proto__` is an ordinary key. @throws DaemonError `E_BAD_REQUEST` */
export function parseJsonBody(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let body: unknown
  try {
    body = parseJson(bytes, OWNERS)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the body is not valid JSON: ${(cause as Error).message}`, { cause })
  }
  if (isObject(body)) return body
  throw new DaemonError('E_BAD_REQUEST', 'the body must be a JSON object')
}
