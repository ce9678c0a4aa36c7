/** How much a JSON text may hold: a short text can cost far more to parse than a long one. */
export interface JsonBounds {
  /** Levels of nested brackets. */
  readonly depth: number
  /** Values, containers among them. A list of `{}` costs 100 times what a string of its length does. */
  readonly values: number
  /** Different keys, as they are spelled: each costs 2 µs, a repeated one next to nothing. */
  readonly keys: number
}

/** Most documents are flat, have few keys and no more values than this; what has more can only be an attack. */
const JSON_BOUNDS: JsonBounds = { depth: 32, values: 100_000, keys: 4_096 }

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a

const isOpening = (c: number): boolean => c === 0x5b || c === 0x7b
const isClosing = (c: number): boolean => c === 0x5d || c === 0x7d

/** The end of the string that begins at `from`: its closing quote, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = at
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--
    if ((at - escapes) % 2 === 0) return at
  }
  return text.length
}

/**
 * The first bound that a text exceeds. Counts brackets, commas and colons outside of strings, and stops at the one too
 * many: nothing is parsed, and the text need not be JSON.
 */
export function jsonExcess(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  const keys = new Set<string>()
  let depth = 0
  let values = 1
  let string: readonly [number, number] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    // white space, numbers
    if (c < QUOTE || (c > COMMA && c < COLON)) continue
    if (c === QUOTE) {
      const end = endOfString(text, i)
      string = [i, end]
      i = end
    } else if (c === COLON) {
      if (keys.add(text.slice(...string)).size > bounds.keys) return 'keys'
      string = [0, 0]
    } else if (c === COMMA || isOpening(c)) {
      if (isOpening(c) && ++depth > bounds.depth) return 'depth'
      if (++values > bounds.values) return 'values'
    } else if (isClosing(c)) depth--
  }
  return undefined
}

const WORDS = { depth: 'levels', values: 'values', keys: 'different keys' }

/** For people. */
export const excessText = (of: keyof JsonBounds, bounds: JsonBounds): string => `more than ${bounds[of]} ${WORDS[of]}`

/** Nothing was parsed: the text holds more than it may. */
export class JsonExcessError extends SyntaxError {
  override readonly name = 'JsonExcessError'
  readonly bound: keyof JsonBounds

  constructor(bound: keyof JsonBounds, bounds: JsonBounds) {
    super(excessText(bound, bounds))
    this.bound = bound
  }
}

/** The text of an object without its members of other names, which are not looked at. Any other text as it is. */
function onlyMembers(text: string, names: readonly string[]): string {
  if (!/^\s*\{/.test(text)) return text
  const wanted: string[] = []
  let depth = 0
  let start = 0
  const take = (end: number): void => {
    const member = text.slice(start, end)
    const name = /^\s*"([^"\\]*)"\s*:/.exec(member.slice(0, MAX_NAME_CHARS))?.[1]
    if (name !== undefined && names.includes(name)) wanted.push(member)
    start = end + 1
  }
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) i = endOfString(text, i)
    else if (isOpening(c)) {
      if (depth++ === 0) start = i + 1
    } else if (isClosing(c)) {
      if (--depth === 0) take(i)
    } else if (c === COMMA && depth === 1) take(i)
  }
  return `{${wanted.join()}}`
}

/** Of a member: white space, and the name of any that somebody wants. */
const MAX_NAME_CHARS = 256

export interface JsonOptions extends Partial<JsonBounds> {
  /** Of an object, only these members are parsed, and the bounds are theirs. */
  readonly only?: readonly string[]
}

/**
 * Parses a stranger's JSON in UTF-8, within {@link JSON_BOUNDS} unless the caller has others.
 * @throws JsonExcessError, SyntaxError or TypeError; the caller adds the context
 */
export function parseJson(bytes: Uint8Array, { only, ...given }: JsonOptions = {}): unknown {
  const whole = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  const text = only === undefined ? whole : onlyMembers(whole, only)
  const bounds = { ...JSON_BOUNDS, ...given }
  const excess = jsonExcess(text, bounds)
  if (excess !== undefined) throw new JsonExcessError(excess, bounds)
  return JSON.parse(text)
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A property that the JSON has itself: inherited ones are not part of it. */
export const own = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined
