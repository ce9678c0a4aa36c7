/** Measures of a JSON text, taken without parsing it: parsing hostile input costs far more. */
interface JsonShape {
  /** Depth of nested brackets outside of strings. */
  readonly depth: number
  /** Number of strings, including keys. */
  readonly strings: number
}

type JsonBounds = Pick<JsonShape, 'depth'> & Partial<JsonShape>

/** Measures a text. Stops at the first character that exceeds one of the limits. */
export function jsonShape(text: string, { depth: most, strings: mostStrings = Infinity }: JsonBounds): JsonShape {
  let depth = 0
  let deepest = 0
  let strings = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (inString) {
      if (c === 0x5c) i++
      else if (c === 0x22) inString = false
    } else if (c === 0x22) {
      inString = true
      if (++strings > mostStrings) break
    } else if (c === 0x5b || c === 0x7b) {
      deepest = Math.max(deepest, ++depth)
      if (deepest > most) break
    } else if (c === 0x5d || c === 0x7d) depth--
  }
  return { depth: deepest, strings }
}

/** Most documents are flat, so deep nesting can only be an attack. */
const MAX_JSON_DEPTH = 32

/** Parses JSON in UTF-8 with at most `maxDepth` levels. @throws SyntaxError or TypeError; the caller adds the context */
export function parseJson(bytes: Uint8Array, maxDepth = MAX_JSON_DEPTH): unknown {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  if (jsonShape(text, { depth: maxDepth }).depth > maxDepth)
    throw new SyntaxError(`JSON is nested deeper than ${maxDepth} levels`)
  return JSON.parse(text)
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A property that the JSON has itself: inherited ones are not part of it. */
export const own = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
