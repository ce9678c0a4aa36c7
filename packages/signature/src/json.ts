import { malformed } from './errors.ts'

export type JsonRecord = Readonly<Record<string, unknown>>

/** @throws SignatureError `malformed` */
export function parsedJson(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw malformed(`${what} is not JSON`, cause)
  }
}

/** @throws SignatureError `malformed` */
export function record(value: unknown, what: string): JsonRecord {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed(`${what} is not an object`)
  return value as JsonRecord
}
