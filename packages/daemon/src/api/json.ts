import { jsonShape } from '@svc/internal-net'
import { DaemonError } from '../errors.ts'

/** Request bodies are flat, so deep nesting can only be an attack (spec http.6: 1 MiB, depth 32). */
const MAX_JSON_DEPTH = 32

export type JsonObject = Readonly<Record<string, unknown>>

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a request body: UTF-8, JSON, an object, at most 32 levels deep. `__proto__` is an ordinary key.
 * @throws DaemonError `E_BAD_REQUEST`
 */
export function parseJsonBody(bytes: Uint8Array): JsonObject {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', 'the body is not valid UTF-8', { cause })
  }
  if (jsonShape(text, { depth: MAX_JSON_DEPTH }).depth > MAX_JSON_DEPTH) {
    throw new DaemonError('E_BAD_REQUEST', `the body is nested deeper than ${MAX_JSON_DEPTH} levels`)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', 'the body is not valid JSON', { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new DaemonError('E_BAD_REQUEST', 'the body must be a JSON object')
  }
  return value as JsonObject
}
