import { jsonShape } from '@svc/internal-net'

const MAX_DEPTH = 32

/** Parses strict UTF-8 JSON of at most 32 levels. @throws SyntaxError or TypeError; the caller adds the context. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  // checked before parsing, so that deeply nested brackets cost only a scan
  if (jsonShape(text, { depth: MAX_DEPTH }).depth > MAX_DEPTH)
    throw new SyntaxError(`JSON nested deeper than ${MAX_DEPTH} levels`)
  return JSON.parse(text) as unknown
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An own property: inherited ones are not part of the hub's answer. */
export const own = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
