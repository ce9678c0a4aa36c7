import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type BencodeDictionary,
  type BencodeValue,
  decodeBencode,
  decodeBencodePrefix,
  type Encodable,
  encodeBencode,
  RawBencode
} from '../src/bencode.ts'
import { MetainfoError } from '../src/errors.ts'
import { errorOf } from './error-of.ts'

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0))
const text = (value: BencodeValue | undefined): string => String.fromCharCode(...(value as Uint8Array))
const refusal = (input: string, options = {}): string => errorOf(() => decodeBencode(bytes(input), options))

describe('decodes', () => {
  test.each<[string, BencodeValue]>([
    ['i0e', 0],
    ['i-1e', -1],
    ['i9007199254740991e', Number.MAX_SAFE_INTEGER],
    ['i9007199254740992e', 9_007_199_254_740_992n],
    ['i-9007199254740991e', -Number.MAX_SAFE_INTEGER],
    ['i-9223372036854775808e', -(2n ** 63n)],
    ['i18446744073709551615e', 2n ** 64n - 1n],
    ['le', []],
    ['li1eli2eee', [1, [2]]],
    ['0:', new Uint8Array(0)],
    ['2:\xff\x00', new Uint8Array([255, 0])]
  ])('%s', (input, value) => {
    expect(decodeBencode(bytes(input))).toEqual(value)
  })

  test('dictionaries: values by text or raw key, spans as received', () => {
    const input = bytes('d0:i1e4:infod1:al1:xee1:\xff2:abe')
    const value = decodeBencode(input) as BencodeDictionary
    expect([value.size, value.get(''), text(value.get(new Uint8Array([255])))]).toEqual([3, 1, 'ab'])
    expect([value.has('inf'), value.get('inf'), value.span('inf')]).toEqual([false, undefined, undefined])
    expect(text(value.span('info'))).toBe('d1:al1:xee')
    expect(text(value.span(''))).toBe('i1e')
    expect(text(value.span(new Uint8Array([255])))).toBe('2:ab')
    expect(value.span('info')!.buffer).toBe(input.buffer)
    expect(value.keys().map(text)).toEqual(['', 'info', '\xff'])
  })

  test('a dictionary with data after it, as in extension messages', () => {
    const { value, endOffset } = decodeBencodePrefix(bytes('d5:piecei3eeRAW'))
    expect([(value as BencodeDictionary).get('piece'), endOffset]).toEqual([3, 12])
  })

  test('newlines after the root, in files only', () => {
    expect(decodeBencode(bytes('le\r\n\n'), { allowTrailing: true })).toEqual([])
    expect(refusal('le\n')).toBe('E_BENCODE trailing')
    expect(refusal('le\n ', { allowTrailing: true })).toBe('E_BENCODE trailing')
    expect(refusal('le\nle', { allowTrailing: true })).toBe('E_BENCODE trailing')
  })
})

describe('refuses', () => {
  test.each([
    ['', 'truncated'],
    ['e', 'unexpected-byte'],
    ['x', 'unexpected-byte'],
    [' i1e', 'unexpected-byte'],
    ['-1:a', 'unexpected-byte'],
    ['i', 'truncated'],
    ['i1', 'truncated'],
    ['ie', 'integer-format'],
    ['i-e', 'integer-format'],
    ['i-0e', 'integer-format'],
    ['i00e', 'integer-format'],
    ['i01e', 'integer-format'],
    ['i-01e', 'integer-format'],
    ['i+1e', 'integer-format'],
    ['i1.5e', 'integer-format'],
    ['i 1e', 'integer-format'],
    ['i1x', 'integer-format'],
    ['i18446744073709551616e', 'integer-range'],
    ['i-9223372036854775809e', 'integer-range'],
    [`i${'9'.repeat(10_000)}e`, 'integer-range'],
    ['1:', 'truncated'],
    ['2:a', 'truncated'],
    ['9999999999:a', 'truncated'],
    ['12', 'truncated'],
    ['99999999999:a', 'string-length'],
    ['01:a', 'string-length'],
    ['00:', 'string-length'],
    ['1a', 'string-length'],
    ['l', 'truncated'],
    ['li1e', 'truncated'],
    ['d', 'truncated'],
    ['d1:a', 'truncated'],
    ['d1:ae', 'missing-value'],
    ['di1ei2ee', 'key-not-string'],
    ['dlei1ee', 'key-not-string'],
    ['d1:bi1e1:ai2ee', 'key-order'],
    ['d2:aai1e1:ai2ee', 'key-order'],
    ['d1:\xffi1e1:ai2ee', 'key-order'],
    ['d1:ai1e1:ai2ee', 'key-duplicate'],
    ['d0:i1e0:i2ee', 'key-duplicate'],
    ['i1ei2e', 'trailing'],
    ['lee', 'trailing']
  ])('%j', (input, reason) => {
    expect(refusal(input)).toBe(`E_BENCODE ${reason}`)
  })

  test('bounds: bytes, tokens, depth', () => {
    expect(refusal('5:abcde', { maxBytes: 6 })).toBe('E_BENCODE too-large')
    expect(refusal('5:abcde', { maxBytes: 7 })).toBe('no error')
    expect(refusal('li1ei2ee', { maxTokens: 2 })).toBe('E_BENCODE tokens')
    expect(refusal('li1ei2ee', { maxTokens: 3 })).toBe('no error')
    expect(refusal('d1:ai1ee', { maxTokens: 2 })).toBe('E_BENCODE tokens')
    expect(refusal('l'.repeat(101) + 'e'.repeat(101))).toBe('E_BENCODE depth')
    expect(refusal('l'.repeat(100) + 'e'.repeat(100))).toBe('no error')
    expect(refusal('l'.repeat(1_000_000))).toBe('E_BENCODE depth')
  })
})

describe('keys in any order, if allowed', () => {
  const allowUnsorted = true

  test('are found, sorted and with the bytes they were read from', () => {
    const text = 'd1:ci3e1:ad1:zi1e1:yi2ee2:bbi4e1:bi5ee'
    const root = decodeBencode(bytes(text), { allowUnsorted }) as BencodeDictionary
    expect(root.keys().map((key) => Buffer.from(key).toString())).toEqual(['a', 'b', 'bb', 'c'])
    expect(['a', 'b', 'bb', 'c'].map((key) => Buffer.from(root.span(key)!).toString())).toEqual([
      'd1:zi1e1:yi2ee',
      'i5e',
      'i4e',
      'i3e'
    ])
    expect((root.get('a') as BencodeDictionary).get('y')).toBe(2)
    expect([root.get('b'), root.get('bb'), root.get('c'), root.get('d')]).toEqual([5, 4, 3, undefined])
  })

  test.each(['d1:bi1e1:ai2e1:bi3ee', 'd1:ai1e1:ai2ee', 'd1:bi1e1:ai2e1:ai3ee'])(
    'a repeated key is refused: %s',
    (text) => {
      expect(refusal(text, { allowUnsorted })).toBe('E_BENCODE key-duplicate')
    }
  )

  test('a hundred thousand keys in reverse order are sorted', () => {
    const keys = Array.from({ length: 100_000 }, (_, index) => String(index).padStart(6, '0'))
    const text = `d${keys
      .reverse()
      .map((key) => `6:${key}i1e`)
      .join('')}e`
    expect((decodeBencode(bytes(text), { allowUnsorted }) as BencodeDictionary).size).toBe(100_000)
  })
})

describe('encoding', () => {
  test('keys are sorted by bytes, however they were given', () => {
    const map = new Map<string | Uint8Array, Encodable>([
      [new Uint8Array([255]), 1],
      ['b', -2],
      [new Uint8Array(0), '']
    ])
    expect(text(encodeBencode(map))).toBe('d0:0:1:bi-2e1:\xffi1ee')
    expect(text(encodeBencode({ 10: 1, 9: 2, ü: 3, gone: undefined }))).toBe('d2:10i1e1:9i2e2:\xc3\xbci3ee')
    expect(text(encodeBencode([new RawBencode(bytes('d1:xle')), 2n ** 64n - 1n, -0]))).toBe(
      'ld1:xlei18446744073709551615ei0ee'
    )
  })

  test.each<[string, Encodable]>([
    ['a fraction', 1.5],
    ['an unsafe number', 2 ** 53],
    ['NaN', Number.NaN],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a key', { '\ud800': 1 }],
    ['a lone surrogate in a key of a map', new Map([['\udfff', 1]])],
    [
      'equal keys',
      new Map<string | Uint8Array, Encodable>([
        ['a', 1],
        [bytes('a'), 2]
      ])
    ],
    [
      'equal keys apart',
      new Map<string | Uint8Array, Encodable>([
        ['b', 1],
        ['a', 1],
        [bytes('b'), 2]
      ])
    ],
    ['an undefined value of a map', new Map([['a', undefined as unknown as Encodable]])],
    ['null', null as unknown as Encodable],
    ['a function', (() => 1) as unknown as Encodable]
  ])('refuses %s', (_name, value) => {
    expect(errorOf(() => encodeBencode(value))).toBe('E_BENCODE not-encodable')
  })
})

const values: fc.Arbitrary<Encodable> = fc.letrec<{ value: Encodable }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.uint8Array({ maxLength: 8 }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .uniqueArray(fc.tuple(fc.uint8Array({ maxLength: 3 }), tie('value')), {
        maxLength: 4,
        selector: ([key]) => key.join()
      })
      .map((entries) => new Map(entries))
  )
})).value

test('property: what is encoded decodes, and encodes to the same bytes again', () => {
  fc.assert(
    fc.property(values, (value) => {
      const encoded = encodeBencode(value)
      expect(encodeBencode(decodeBencode(encoded) as Encodable)).toEqual(encoded)
    })
  )
})

test('property: whatever is accepted is canonical; everything else is a MetainfoError', () => {
  const mutated = fc
    .tuple(values, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }))
    .map(([value, changes]) => {
      const encoded = encodeBencode(value)
      for (const [at, byte] of changes) encoded[at % encoded.length] = byte
      return encoded
    })
  fc.assert(
    fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 40 })), (input) => {
      let value: BencodeValue
      try {
        value = decodeBencode(input)
      } catch (error) {
        expect(error).toBeInstanceOf(MetainfoError)
        return
      }
      expect(encodeBencode(value as Encodable)).toEqual(input)
    }),
    { numRuns: 1_000 }
  )
})
