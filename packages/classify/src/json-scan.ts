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

// States: what may come next. Between tokens:
const VALUE = 0
const VALUE_OR_END = 1 // after `[`
const KEY = 2 // after `,` in an object
const KEY_OR_END = 3 // after `{`
const COLON = 4
const COMMA_OR_END = 5
const DONE = 6
// Within tokens:
const STRING = 7
const ESCAPE = 8
const HEX = 9
const WORD = 10
// Within numbers, named by the last character:
const MINUS = 11
const ZERO = 12
const INTEGER = 13
const POINT = 14
const FRACTION = 15
const EXPONENT = 16
const EXPONENT_SIGN = 17
const EXPONENT_DIGITS = 18

type NumberPart = 'zero' | 'digit' | 'point' | 'exponent' | 'sign' | 'other'

function partOf(byte: number): NumberPart {
  if (byte === 0x30) return 'zero'
  if (isDigit(byte)) return 'digit'
  if (byte === 0x2e) return 'point'
  if (byte === 0x65 || byte === 0x45) return 'exponent'
  return byte === 0x2b || byte === 0x2d ? 'sign' : 'other'
}

/** The state behind each part of a number (RFC 8259 §6). */
const IN_NUMBER: Readonly<Record<number, { readonly [part in NumberPart]?: number }>> = {
  [MINUS]: { zero: ZERO, digit: INTEGER },
  [ZERO]: { point: POINT, exponent: EXPONENT },
  [INTEGER]: { zero: INTEGER, digit: INTEGER, point: POINT, exponent: EXPONENT },
  [POINT]: { zero: FRACTION, digit: FRACTION },
  [FRACTION]: { zero: FRACTION, digit: FRACTION, exponent: EXPONENT },
  [EXPONENT]: { zero: EXPONENT_DIGITS, digit: EXPONENT_DIGITS, sign: EXPONENT_SIGN },
  [EXPONENT_SIGN]: { zero: EXPONENT_DIGITS, digit: EXPONENT_DIGITS },
  [EXPONENT_DIGITS]: { zero: EXPONENT_DIGITS, digit: EXPONENT_DIGITS }
}

const WORDS: Readonly<Record<number, string>> = { 116: 'true', 102: 'false', 110: 'null' }
const plainUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * A strict incremental JSON reader (RFC 8259): accepts what `JSON.parse` accepts of well-formed UTF-8 within the depth
 * limit, in chunks of any size, and builds nothing. For texts of which only a sum is needed: a safetensors header may
 * have 100 MB.
 */
export class JsonScanner {
  #state = VALUE
  /** One bit per open container: 1 for an object. */
  readonly #stack: boolean[] = []
  #offset = 0
  readonly #events: JsonEvents
  readonly #options: JsonScanOptions
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** Raw bytes of the current token, without quotes; when `kept` exceeds its length the token is too long. */
  readonly #token: Uint8Array
  #kept = 0
  #escaped = false
  #isKey = false
  #hexLeft = 0
  #word = ''
  #wordAt = 0

  constructor(events: JsonEvents, options: JsonScanOptions) {
    this.#events = events
    this.#options = options
    this.#token = new Uint8Array(options.maxTextBytes)
  }

  /**
   * @throws ClassifyError `E_BAD_JSON`, `details.reason` `syntax`, `utf-8` or `depth`; the scanner is unusable
   *   afterwards.
   */
  push(chunk: Uint8Array): void {
    this.#checkUtf8(chunk, true)
    let i = 0
    while (i < chunk.length) i = this.#state === STRING ? this.#inString(chunk, i) : this.#step(chunk[i]!, i)
    this.#offset += chunk.length
  }

  /** @throws ClassifyError `E_BAD_JSON` when the text is incomplete. */
  end(): void {
    this.#checkUtf8(new Uint8Array(0), false)
    if (this.#stack.length === 0) this.#endNumber()
    if (this.#state !== DONE) this.#fail(0, 'ends too early')
  }

  #checkUtf8(chunk: Uint8Array, stream: boolean): void {
    try {
      this.#utf8.decode(chunk, { stream })
    } catch (cause) {
      throw new ClassifyError('E_BAD_JSON', 'the JSON text is not UTF-8', { reason: 'utf-8' }, { cause })
    }
  }

  #fail(i: number, what: string): never {
    throw new ClassifyError('E_BAD_JSON', `the JSON text ${what} at byte ${this.#offset + i}`, { reason: 'syntax' })
  }

  #keep(byte: number): void {
    if (this.#kept < this.#token.length) this.#token[this.#kept] = byte
    this.#kept++
  }

  /** The fast path: most bytes of a header are in strings. */
  #inString(chunk: Uint8Array, i: number): number {
    const token = this.#token
    const length = chunk.length
    let kept = this.#kept
    for (; i < length; i++) {
      const byte = chunk[i]!
      if (byte === 0x22) {
        this.#kept = kept
        this.#endString()
        return i + 1
      }
      if (byte < 0x20) this.#fail(i, 'has a control character in a string')
      if (kept < token.length) token[kept] = byte
      kept++
      if (byte === 0x5c) {
        this.#kept = kept
        this.#state = ESCAPE
        this.#escaped = true
        return i + 1
      }
    }
    this.#kept = kept
    return i
  }

  /** Handles one byte outside of the fast path; returns where to continue. */
  #step(byte: number, i: number): number {
    switch (this.#state) {
      case ESCAPE:
        this.#keep(byte)
        if (byte === 0x75) [this.#state, this.#hexLeft] = [HEX, 4]
        else if (!'"\\/bfnrt'.includes(String.fromCharCode(byte))) this.#fail(i, 'has an unknown escape')
        else this.#state = STRING
        return i + 1
      case HEX:
        this.#keep(byte)
        if (!isDigit(byte) && !((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66))
          this.#fail(i, 'has a malformed \\u escape')
        if (--this.#hexLeft === 0) this.#state = STRING
        return i + 1
      case WORD:
        if (byte !== this.#word.charCodeAt(this.#wordAt++)) this.#fail(i, 'has an unknown word')
        if (this.#wordAt === this.#word.length) {
          this.#events.literal(this.#word === 'null' ? null : this.#word === 'true')
          this.#afterValue()
        }
        return i + 1
      case MINUS:
      case ZERO:
      case INTEGER:
      case POINT:
      case FRACTION:
      case EXPONENT:
      case EXPONENT_SIGN:
      case EXPONENT_DIGITS:
        if (this.#inNumber(byte)) {
          this.#keep(byte)
          return i + 1
        }
        if (!this.#endNumber()) this.#fail(i, 'has a malformed number')
        return i // The byte belongs to the next token.
      default:
        if (!isSpace(byte)) this.#between(byte, i)
        return i + 1
    }
  }

  #between(byte: number, i: number): void {
    switch (this.#state) {
      case VALUE_OR_END:
        if (byte === 0x5d) return this.#close(false, i)
        return this.#startValue(byte, i)
      case VALUE:
        return this.#startValue(byte, i)
      case KEY_OR_END:
      case KEY:
        if (byte === 0x7d && this.#state === KEY_OR_END) return this.#close(true, i)
        if (byte !== 0x22) this.#fail(i, 'lacks a key')
        return this.#startString(true)
      case COLON:
        if (byte !== 0x3a) this.#fail(i, 'lacks a colon')
        this.#state = VALUE
        return
      case COMMA_OR_END:
        if (byte === 0x7d || byte === 0x5d) return this.#close(byte === 0x7d, i)
        if (byte !== 0x2c) this.#fail(i, 'lacks a comma')
        this.#state = this.#stack.at(-1) ? KEY : VALUE
        return
      default:
        this.#fail(i, 'goes on after its end')
    }
  }

  #startValue(byte: number, i: number): void {
    if (byte === 0x22) return this.#startString(false)
    if (byte === 0x7b || byte === 0x5b) return this.#open(byte === 0x7b)
    if (byte === 0x2d || isDigit(byte)) {
      this.#kept = 0
      this.#keep(byte)
      this.#state = byte === 0x2d ? MINUS : byte === 0x30 ? ZERO : INTEGER
      return
    }
    const word = WORDS[byte]
    if (word === undefined) this.#fail(i, 'lacks a value')
    this.#word = word
    this.#wordAt = 1
    this.#state = WORD
  }

  #open(object: boolean): void {
    if (this.#stack.length >= this.#options.maxDepth)
      throw new ClassifyError('E_BAD_JSON', `the JSON text is nested deeper than ${this.#options.maxDepth}`, {
        reason: 'depth'
      })
    this.#stack.push(object)
    this.#state = object ? KEY_OR_END : VALUE_OR_END
    if (object) this.#events.startObject()
    else this.#events.startArray()
  }

  #close(object: boolean, i: number): void {
    if (this.#stack.pop() !== object) this.#fail(i, 'closes the wrong bracket')
    if (object) this.#events.endObject()
    else this.#events.endArray()
    this.#afterValue()
  }

  #afterValue(): void {
    this.#state = this.#stack.length === 0 ? DONE : COMMA_OR_END
  }

  #startString(isKey: boolean): void {
    this.#kept = 0
    this.#escaped = false
    this.#isKey = isKey
    this.#state = STRING
  }

  #endString(): void {
    const text = this.#tokenText()
    if (this.#isKey) {
      this.#state = COLON
      this.#events.key(text)
    } else {
      this.#afterValue()
      this.#events.string(text)
    }
  }

  #tokenText(): string | undefined {
    if (this.#kept > this.#token.length) return undefined
    let raw = ''
    for (let i = 0; i < this.#kept; i++) {
      const byte = this.#token[i]!
      if (byte > 0x7f) {
        raw = plainUtf8.decode(this.#token.subarray(0, this.#kept))
        break
      }
      raw += String.fromCharCode(byte)
    }
    return this.#escaped ? (JSON.parse(`"${raw}"`) as string) : raw
  }

  /** True when the byte continues the number. */
  #inNumber(byte: number): boolean {
    const next = IN_NUMBER[this.#state]?.[partOf(byte)]
    if (next === undefined) return false
    this.#state = next
    return true
  }

  /** Ends a number; false if it is incomplete. */
  #endNumber(): boolean {
    if (
      this.#state === ZERO ||
      this.#state === INTEGER ||
      this.#state === FRACTION ||
      this.#state === EXPONENT_DIGITS
    ) {
      this.#escaped = false
      this.#afterValue()
      this.#events.number(this.#tokenText())
      return true
    }
    return false
  }
}
