/** Deepest nesting that is read from a hub. */
const MAX_DEPTH = 32

/** Checked before parsing, so that a bomb of brackets costs one scan. */
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

/** Strict UTF-8 JSON of at most 32 levels. @throws SyntaxError or TypeError; the caller knows whose bytes they are. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  if (isTooDeep(text)) throw new SyntaxError(`JSON nested deeper than ${MAX_DEPTH} levels`)
  return JSON.parse(text) as unknown
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An own property; what an object inherits is not the hub's answer. */
export const own = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
