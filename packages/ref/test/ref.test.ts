import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  formatRef,
  formatShortRef,
  type ModelRef,
  parseRef,
  parseShortRef,
  RefError,
  type Sha256Digest,
  tryParseRef,
  tryParseShortRef
} from '../src/index.ts'
import { REF_MAX_BYTES } from '../src/length.ts'
import { errorOf, modelRef } from './arbitraries.ts'
import { type ParseRow, vectors } from './vectors.ts'

function check(row: ParseRow, parse: (text: string) => ModelRef): void {
  if (row.error !== undefined) {
    const error = errorOf(() => parse(row.input))
    expect({ code: error.code, reason: error.reason }).toEqual(row.error)
    if (row.suggestion !== undefined) expect(error.suggestion).toBe(row.suggestion)
    expect(error.message).toContain(error.suggestion ?? '')
    expect(error.message).toMatch(/^[ -~]+$/)
    return
  }
  const ref = parse(row.input)
  expect(ref).toStrictEqual(row.ref)
  expect(formatRef(ref)).toBe(row.canonical)
  expect(formatShortRef(ref)).toBe(row.short)
}

describe('vectors/ref.json', () => {
  test.each(vectors.parse)('canonical: $name', (row) => {
    check(row, parseRef)
    expect(tryParseRef(row.input)).toStrictEqual(row.ref)
  })
  test.each(vectors.parseShort)('short: $name', (row) => {
    check(row, parseShortRef)
    expect(tryParseShortRef(row.input)).toStrictEqual(row.ref)
  })
})

test('a suggestion without a placeholder parses', () => {
  const suggestions = vectors.parse.flatMap((row) => row.suggestion ?? []).filter((text) => !text.includes('<quant>'))
  expect(suggestions.length).toBeGreaterThan(5)
  for (const text of suggestions) expect(formatRef(parseRef(text))).toBe(text)
})

test('an error has the repository if it was parsed', () => {
  expect(errorOf(() => parseRef('svc:///Acme/tiny')).repo).toEqual({ ns: 'acme', name: 'tiny' })
  expect(errorOf(() => parseRef('svc:///acme/tiny:v1')).repo).toEqual({ ns: 'acme', name: 'tiny' })
  expect(errorOf(() => parseRef('svc:///acme/tiny:raw+raw')).repo).toEqual({ ns: 'acme', name: 'tiny' })
  expect(errorOf(() => parseRef('svc:///acme')).repo).toBeUndefined()
})

test('a text of any length is refused at once', () => {
  expect(errorOf(() => parseRef('svc:///'.repeat(10_000_000))).code).toBe('E_LENGTH')
})

test('parse inverts format, in both forms', () => {
  fc.assert(
    fc.property(modelRef, (ref) => {
      const text = formatRef(ref)
      expect(text.length).toBeLessThanOrEqual(REF_MAX_BYTES)
      expect(parseRef(text)).toStrictEqual(ref)
      expect(parseShortRef(text)).toStrictEqual(ref)
      expect(parseShortRef(formatShortRef(ref))).toStrictEqual(ref)
      expect(errorOf(() => parseRef(formatShortRef(ref)))).toMatchObject({ reason: 'short-form', suggestion: text })
    })
  )
})

test('format inverts parse up to the case of ns and name', () => {
  fc.assert(
    fc.property(modelRef, fc.boolean(), (ref, upper) => {
      const path = `${ref.ns}/${ref.name}`
      const text = formatRef(ref)
      expect(formatRef(parseRef(upper ? text.replace(path, path.toUpperCase()) : text))).toBe(text)
    })
  )
})

test('any text either parses to what formats back, or fails as a RefError', () => {
  const hostile = fc.string({ unit: 'binary', maxLength: 40 })
  const near = fc.tuple(modelRef, fc.nat(), hostile).map(([ref, at, extra]) => {
    const text = formatRef(ref)
    const cut = at % (text.length + 1)
    return text.slice(0, cut) + extra + text.slice(cut)
  })
  fc.assert(
    fc.property(
      fc.oneof(
        hostile,
        near,
        hostile.map((text) => `svc:///${text}`)
      ),
      (text) => {
        for (const parse of [parseRef, parseShortRef]) {
          let ref: ModelRef
          try {
            ref = parse(text)
          } catch (error) {
            expect(error).toBeInstanceOf(RefError)
            continue
          }
          expect(parseRef(formatRef(ref))).toStrictEqual(ref)
        }
      }
    ),
    { numRuns: 2000 }
  )
})

test('format refuses parts that would smuggle syntax', () => {
  const digest = `sha256:${'0'.repeat(64)}` as Sha256Digest
  const base = { ns: 'acme', name: 'tiny', quant: 'raw' }
  expect(errorOf(() => formatRef({ ...base, ns: 'Acme' })).reason).toBe('namespace')
  expect(errorOf(() => formatRef({ ...base, name: 'tiny:q4' })).reason).toBe('name')
  expect(errorOf(() => formatRef({ ...base, quant: 'v1+raw' })).reason).toBe('quant-format')
  expect(errorOf(() => formatRef({ ...base, quant: '' })).reason).toBe('quant-format')
  expect(errorOf(() => formatRef({ ...base, tag: 'a+b' })).reason).toBe('tag-format')
  expect(errorOf(() => formatRef({ ...base, digest: `${digest}0` as Sha256Digest })).reason).toBe('digest-format')
  expect(errorOf(() => formatRef({ ns: 'acme', name: 'tiny' } as unknown as ModelRef)).reason).toBe('no-selector')
})
