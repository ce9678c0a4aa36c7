/** Limit of nesting in a hub's JSON. */
const MAX_DEPTH = 32

/** Checked before parsing, so that deeply nested brackets cost only a scan. */
function isTooDeep(text: string): boolean {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (inString) {
      if (c === 0x5c) i++
      else if (c === 0x22) inString = false
    } else if (c === 0x22) inString = true
    else if (c === 0x5b || c === 0x7b) {
      if (++depth > MAX_DEPTH) return true
    } else if (c === 0x5d || c === 0x7d) depth--
  }
  return false
}

/** Parses strict UTF-8 JSON of at most 32 levels. @throws SyntaxError or TypeError; the caller adds the context. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  if (isTooDeep(text)) throw new SyntaxError(`JSON nested deeper than ${MAX_DEPTH} levels`)
  return JSON.parse(text) as unknown
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An own property: inherited ones are not part of the hub's answer. */
export const own = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
