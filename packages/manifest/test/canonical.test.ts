import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalBytes, MAX_DOCUMENT_BYTES, parseCanonical } from '../src/canonical.ts'
import { ManifestError } from '../src/errors.ts'
import { errorOf } from './manifest-error.ts'
import { toBytes, toText, vectors } from './vectors.ts'

describe('reading', () => {
  test.each(vectors.canonical.accepted)('accepts %j', (text) => {
    const value = parseCanonical(toBytes(text))
    expect(value).toEqual(JSON.parse(text))
    expect(toText(canonicalBytes(value))).toBe(text)
  })

  test.each(vectors.canonical.refused)('refuses $text: $reason', ({ text, reason }) => {
    expect(errorOf(() => parseCanonical(toBytes(text)))).toBe(`E_CORRUPTION ${reason}`)
  })

  test.each(vectors.canonical.refusedHex)('refuses the bytes $hex: $reason', ({ hex, reason }) => {
    expect(errorOf(() => parseCanonical(Buffer.from(hex, 'hex')))).toBe(`E_CORRUPTION ${reason}`)
  })

  test('bounds come before parsing', () => {
    expect(errorOf(() => parseCanonical(new Uint8Array(MAX_DOCUMENT_BYTES + 1)))).toBe('E_CORRUPTION too-large')
    expect(errorOf(() => parseCanonical(toBytes('[1]'), 2))).toBe('E_CORRUPTION too-large')
    expect(errorOf(() => parseCanonical(toBytes('['.repeat(MAX_DOCUMENT_BYTES))))).toBe('E_CORRUPTION depth')
    expect(parseCanonical(toBytes('"[[[[\\"[[[["'), 64)).toBe('[[[["[[[[')
    // many brackets are not deep ones
    for (const text of [`"${'['.repeat(100)}"`, `[${'[],'.repeat(99)}[]]`, `${'['.repeat(64)}${']'.repeat(64)}`])
      expect(parseCanonical(toBytes(text))).toEqual(JSON.parse(text))
    expect(errorOf(() => parseCanonical(toBytes(`${'['.repeat(65)}${']'.repeat(65)}`)))).toBe('E_CORRUPTION depth')
  })
})

describe('writing', () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  test.each<[string, unknown]>([
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['a float', { a: 0.5 }],
    ['an unsafe integer', [2 ** 53]],
    ['null', { a: null }],
    ['undefined', { a: undefined }],
    ['a hole', new Array(1)],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['a boxed number', Object(1)],
    ['an object with toJSON', { toJSON: () => 1 }],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a key', { '\udfff': 1 }]
  ])('refuses %s', (_name, value) => {
    expect(errorOf(() => canonicalBytes(value))).toBe('E_INVALID value')
  })

  test('refuses a cycle', () => {
    expect(errorOf(() => canonicalBytes(cycle))).toBe('E_INVALID depth')
  })

  test('keys that look like integers are sorted as text', () => {
    expect(toText(canonicalBytes({ 10: 'b', 9: 'a', 1: 'c' }))).toBe('{"1":"c","10":"b","9":"a"}')
  })
})

const plain = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.string({ unit: fc.constantFrom('a', 'é', '1', '10', '9', '\ufb33', '😀', '\r'), maxLength: 3 }),
      tie('value'),
      { maxKeys: 5 }
    )
  )
})).value

test('property: written bytes are read back; the order in which keys were set does not matter', () => {
  const turned = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(turned)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([key, child]) => [key, turned(child)])
          )
        : value
  fc.assert(
    fc.property(plain, (value) => {
      const bytes = canonicalBytes(value)
      expect(canonicalBytes(parseCanonical(bytes))).toEqual(bytes)
      expect(canonicalBytes(turned(value))).toEqual(bytes)
    })
  )
})

test('property: any bytes are read or refused with a code, and what is read is canonical', () => {
  const texts = fc.oneof(
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(...vectors.manifests.map(({ bytes }) => bytes))
  )
  fc.assert(
    fc.property(texts, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 2 }), (text, changes) => {
      const bytes = toBytes(text)
      for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte
      try {
        expect(canonicalBytes(parseCanonical(bytes))).toEqual(bytes)
      } catch (error) {
        if (!(error instanceof ManifestError)) throw error
        expect(error.code).toBe('E_CORRUPTION')
      }
    }),
    { numRuns: 500 }
  )
})
