import { ClassifyError } from './errors.ts'

/** The events of a {@link JsonScanner}. Texts are undefined when longer than the scanner's `maxTextBytes`. */
export interface JsonEvents {
  startObject(): void
  endObject(): void
  startArray(): void
  endArray(): void
  key(text: string | undefined): void
  string(text: string | undefined): void
  /** The number as spelled; undefined when too long. */
  number(text: string | undefined): void
  literal(value: boolean | null): void
}

export interface JsonScanOptions {
  /** Deepest nesting of objects and arrays. */
  readonly maxDepth: number
  /** Longer strings and numbers are checked but not passed on, which limits the memory of a scan. */
  readonly maxTextBytes: number
}

/** What may come next between two tokens, and what is said to be lacking when it does not. */
const LACKING = {
  value: 'a value',
  valueOrEnd: 'a value',
  key: 'a key',
  keyOrEnd: 'a key',
  colon: 'a colon',
  commaOrEnd: 'a comma',
  end: ''
} as const

/** Characters of a string, or one escape. */
const STRING_PART = /[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y
/** An escape that the next chunk may complete. */
const OPEN_ESCAPE = /\\(?:u[\dA-Fa-f]{0,3})?$/y
/** Of a number, or of `true`, `false` or `null`. */
const SCALAR_PART = /[^ \t\n\r"{}[\],:]+/y
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i
const NOT_ASCII = /[^\0-\u007f]/
const LITERALS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null]
])
/** Longer numbers are checked with runs of two digits in place of longer ones, which no rule of the grammar tells apart. */
const MIN_LONG_CHARS = 64

const encoder = new TextEncoder()

/**
 * A strict incremental JSON reader (RFC 8259): accepts what `JSON.parse` accepts of well-formed UTF-8 within the depth
 * limit, in chunks of any size, and builds nothing. For texts of which only a sum is needed: a safetensors header may
 * have 100 MB.
 */
export class JsonScanner {
  readonly #events: JsonEvents
  readonly #options: JsonScanOptions
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  #next: keyof typeof LACKING = 'value'
  /** The open containers: true for an object. */
  readonly #stack: boolean[] = []
  #bytes = 0
  /** The start of an escape at the end of a chunk. */
  #rest = ''
  #inString = false
  #isKey = false
  /** The current string without quotes, or number or word; of a long one only the start. */
  #token = ''
  #isLong = false

  constructor(events: JsonEvents, options: JsonScanOptions) {
    this.#events = events
    this.#options = options
  }

  /**
   * @throws ClassifyError `E_BAD_JSON`, `details.reason` `syntax`, `utf-8` or `depth`; the scanner is unusable
   *   afterwards.
   */
  push(chunk: Uint8Array): void {
    const text = this.#rest + this.#decode(chunk, true)
    this.#bytes += chunk.length
    this.#rest = ''
    for (let at = 0; at < text.length; ) {
      if (this.#inString) at = this.#string(text, at)
      else if (this.#token !== '') at = this.#scalar(text, at)
      else at = this.#between(text, at)
    }
  }

  /** @throws ClassifyError `E_BAD_JSON` when the text is incomplete. */
  end(): void {
    this.#decode(new Uint8Array(0), false)
    if (this.#token !== '' && !this.#inString) this.#endScalar('', 0)
    if (this.#next !== 'end') this.#fail('', 0, 'ends too early')
  }

  #decode(chunk: Uint8Array, stream: boolean): string {
    try {
      return this.#utf8.decode(chunk, { stream })
    } catch (cause) {
      throw new ClassifyError('E_BAD_JSON', 'the JSON text is not UTF-8', { reason: 'utf-8' }, { cause })
    }
  }

  #fail(text: string, at: number, what: string): never {
    const offset = this.#bytes - encoder.encode(text.slice(at)).length
    throw new ClassifyError('E_BAD_JSON', `the JSON text ${what} at byte ${offset}`, { reason: 'syntax' })
  }

  #failNext(text: string, at: number): never {
    this.#fail(text, at, this.#next === 'end' ? 'goes on after its end' : `lacks ${LACKING[this.#next]}`)
  }

  /** Reads one character outside of strings, numbers and words. @returns where to continue */
  #between(text: string, at: number): number {
    const character = text[at]!
    switch (character) {
      case ' ':
      case '\t':
      case '\n':
      case '\r':
        break
      case '"':
        this.#isKey = this.#next === 'key' || this.#next === 'keyOrEnd'
        if (!this.#isKey) this.#requireValue(text, at)
        this.#inString = true
        break
      case '{':
      case '[':
        this.#requireValue(text, at)
        this.#open(character === '{')
        break
      case '}':
      case ']':
        this.#close(character === '}', text, at)
        break
      case ':':
        if (this.#next !== 'colon') this.#failNext(text, at)
        this.#next = 'value'
        break
      case ',':
        if (this.#next !== 'commaOrEnd') this.#failNext(text, at)
        this.#next = this.#stack.at(-1) === true ? 'key' : 'value'
        break
      default:
        this.#requireValue(text, at)
        return this.#scalar(text, at)
    }
    return at + 1
  }

  #requireValue(text: string, at: number): void {
    if (this.#next !== 'value' && this.#next !== 'valueOrEnd') this.#failNext(text, at)
  }

  #open(isObject: boolean): void {
    const { maxDepth } = this.#options
    if (this.#stack.length >= maxDepth)
      throw new ClassifyError('E_BAD_JSON', `the JSON text is nested deeper than ${maxDepth}`, { reason: 'depth' })
    this.#stack.push(isObject)
    this.#next = isObject ? 'keyOrEnd' : 'valueOrEnd'
    if (isObject) this.#events.startObject()
    else this.#events.startArray()
  }

  #close(isObject: boolean, text: string, at: number): void {
    if (!this.#next.endsWith('OrEnd')) this.#failNext(text, at)
    if (this.#stack.pop() !== isObject) this.#fail(text, at, 'closes the wrong bracket')
    this.#endValue()
    if (isObject) this.#events.endObject()
    else this.#events.endArray()
  }

  #endValue(): void {
    this.#next = this.#stack.length === 0 ? 'end' : 'commaOrEnd'
  }

  #string(text: string, at: number): number {
    if (text[at] === '"') {
      this.#endString()
      return at + 1
    }
    STRING_PART.lastIndex = at
    if (STRING_PART.test(text)) {
      const end = STRING_PART.lastIndex
      if (this.#token.length <= this.#options.maxTextBytes) this.#token += text.slice(at, end)
      return end
    }
    OPEN_ESCAPE.lastIndex = at
    if (!OPEN_ESCAPE.test(text)) {
      this.#fail(text, at, text[at] === '\\' ? 'has an unknown escape' : 'has a control character in a string')
    }
    this.#rest = text.slice(at)
    return text.length
  }

  #endString(): void {
    this.#inString = false
    const raw = this.#takeToken()
    const string = raw?.includes('\\') === true ? (JSON.parse(`"${raw}"`) as string) : raw
    if (this.#isKey) {
      this.#next = 'colon'
      this.#events.key(string)
    } else {
      this.#endValue()
      this.#events.string(string)
    }
  }

  /** The current token, which ends; undefined when it is too long. */
  #takeToken(): string | undefined {
    const token = this.#token
    const { maxTextBytes } = this.#options
    const isLong =
      this.#isLong ||
      token.length > maxTextBytes ||
      (NOT_ASCII.test(token) && encoder.encode(token).length > maxTextBytes)
    this.#token = ''
    this.#isLong = false
    return isLong ? undefined : token
  }

  /** Goes on with a number or word; what follows may be in the next chunk. */
  #scalar(text: string, at: number): number {
    SCALAR_PART.lastIndex = at
    const end = SCALAR_PART.test(text) ? SCALAR_PART.lastIndex : at
    this.#token += text.slice(at, end)
    const most = Math.max(MIN_LONG_CHARS, this.#options.maxTextBytes)
    if (this.#token.length > most) {
      this.#isLong = true
      this.#token = this.#token.replace(/\d{3,}/g, (digits) => digits.slice(0, 2))
      if (this.#token.length > most) this.#failScalar(text, at, this.#token)
    }
    if (end < text.length) this.#endScalar(text, at)
    return end
  }

  #endScalar(text: string, at: number): void {
    const scalar = this.#token
    const spelled = this.#takeToken()
    this.#endValue()
    const literal = LITERALS.get(scalar)
    if (literal !== undefined) this.#events.literal(literal)
    else if (NUMBER.test(scalar)) this.#events.number(spelled)
    else this.#failScalar(text, at, scalar)
  }

  #failScalar(text: string, at: number, scalar: string): never {
    this.#fail(text, at, /^[-\d]/.test(scalar) ? 'has a malformed number' : 'has an unknown word')
  }
}
