import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ClassifyError } from '../src/index.ts'
import { type JsonEvents, JsonScanner } from '../src/json-scan.ts'

/** Builds the value out of the events, as JSON.parse does. */
class Builder implements JsonEvents {
  value: unknown
  readonly #stack: { container: Record<string, unknown> | unknown[]; key: string }[] = []

  #put(value: unknown): void {
    const top = this.#stack.at(-1)
    if (!top) this.value = value
    else if (Array.isArray(top.container)) top.container.push(value)
    else Object.defineProperty(top.container, top.key, { value, enumerable: true, configurable: true, writable: true })
  }
  #open(container: Record<string, unknown> | unknown[]): void {
    this.#put(container)
    this.#stack.push({ container, key: '' })
  }
  startObject(): void {
    this.#open({})
  }
  startArray(): void {
    this.#open([])
  }
  endObject(): void {
    this.#stack.pop()
  }
  endArray(): void {
    this.#stack.pop()
  }
  key(text: string | undefined): void {
    this.#stack.at(-1)!.key = text!
  }
  string(text: string | undefined): void {
    this.#put(text)
  }
  number(text: string | undefined): void {
    this.#put(Number(text))
  }
  literal(value: boolean | null): void {
    this.#put(value)
  }
}

const encoder = new TextEncoder()
const REFUSED = Symbol('refused')

function scan(bytes: Uint8Array, cuts: readonly number[] = [], maxDepth = 100): unknown {
  const builder = new Builder()
  const scanner = new JsonScanner(builder, { maxDepth, maxTextBytes: 10_000 })
  try {
    let from = 0
    for (const to of [...cuts.filter((cut) => cut <= bytes.length).sort((a, b) => a - b), bytes.length]) {
      scanner.push(bytes.subarray(from, to))
      from = to
    }
    scanner.end()
  } catch (error) {
    if (error instanceof ClassifyError && error.code === 'E_BAD_JSON') return REFUSED
    throw error
  }
  return builder.value
}

function reference(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return REFUSED
  }
}

const cuts = fc.array(fc.nat(200), { maxLength: 12 })
const spaced = fc
  .json({ maxDepth: 5 })
  .chain((text) => fc.constantFrom(text, JSON.stringify(JSON.parse(text), null, 2), ` \n${text}\t\r`))
/** Tokens in any order: mostly malformed, and near the border. */
const soup = fc
  .array(
    fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"a"',
      '"',
      '\\',
      '\\u00e9',
      '\\ud83d',
      '\\x',
      '0',
      '-',
      '1',
      '01',
      '.',
      '5',
      'e',
      'E+',
      '-0',
      '1e5',
      '1.',
      'true',
      'false',
      'null',
      'nul',
      'NaN',
      ' ',
      '\n',
      '\u0001',
      '\ufeff',
      'é',
      '😀',
      '{"a":',
      '[1,'
    ),
    { maxLength: 12 }
  )
  .map((tokens) => tokens.join(''))

describe('agrees with JSON.parse', () => {
  test('on JSON, in any chunking', () => {
    fc.assert(
      fc.property(spaced, cuts, (text, at) => {
        const bytes = encoder.encode(text)
        expect(scan(bytes, at)).toStrictEqual(reference(bytes))
      }),
      { numRuns: 300 }
    )
  })

  test('on token soup', () => {
    fc.assert(
      fc.property(soup, cuts, (text, at) => {
        const bytes = encoder.encode(text)
        expect(scan(bytes, at)).toStrictEqual(reference(bytes))
      }),
      { numRuns: 3000 }
    )
  })

  test('on JSON with one byte changed, put in or taken out', () => {
    fc.assert(
      fc.property(
        spaced,
        fc.nat(),
        fc.nat(255),
        fc.constantFrom(0, 1),
        fc.constantFrom(0, 1),
        cuts,
        (text, place, byte, taken, put, at) => {
          const bytes = encoder.encode(text)
          const i = place % (bytes.length + 1)
          const changed = Uint8Array.of(...bytes.subarray(0, i), ...(put ? [byte] : []), ...bytes.subarray(i + taken))
          expect(scan(changed, at)).toStrictEqual(reference(changed))
        }
      ),
      { numRuns: 1000 }
    )
  })

  test.each([
    '',
    ' ',
    '0',
    '-0',
    '-',
    '1.5e-7',
    '1e',
    '00',
    '"\\u12"',
    '"\\ud800"',
    '"\\""',
    '[]',
    '[,]',
    '[1,]',
    '{"a":1,}',
    '{"a"}',
    '{a:1}',
    '{"__proto__":1}',
    '{"a":1,"a":2}',
    '[1 2]',
    '1 2',
    'true',
    'truex',
    'tru',
    '"\u007f"',
    '\ufeff1',
    '[}',
    '{]',
    ']',
    '1]',
    '1.0]'
  ])('on %s', (text) => {
    expect(scan(encoder.encode(text))).toStrictEqual(reference(encoder.encode(text)))
  })
})

test('depth and texts are bounded', () => {
  expect(scan(encoder.encode('[[[1]]]'), [], 3)).toEqual([[[1]]])
  expect(scan(encoder.encode('[[[[1]]]]'), [], 3)).toBe(REFUSED)
  expect(scan(encoder.encode('['.repeat(1_000_000)), [], 3)).toBe(REFUSED)
  const seen: unknown[] = []
  const note = (text: unknown): number => seen.push(text)
  const none = (): void => undefined
  const scanner = new JsonScanner(
    {
      startObject: none,
      endObject: none,
      startArray: none,
      endArray: none,
      key: note,
      string: note,
      number: note,
      literal: note
    },
    { maxDepth: 2, maxTextBytes: 3 }
  )
  scanner.push(encoder.encode('{"abc":"abcd","ab":1234,"é":123}'))
  scanner.end()
  expect(seen).toEqual(['abc', undefined, 'ab', undefined, 'é', '123'])
})
