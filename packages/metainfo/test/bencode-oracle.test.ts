// @ts-expect-error The package ships no types.
import bencode from 'bencode'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBencode, type Encodable, encodeBencode } from '../src/bencode.ts'

const value: fc.Arbitrary<Encodable> = fc.letrec<{ any: Encodable }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc.maxSafeInteger(),
    fc.uint8Array({ maxLength: 40 }),
    fc.array(tie('any'), { maxLength: 5 }),
    // keys that JavaScript would reorder, and none that it treats specially
    fc.dictionary(fc.stringMatching(/^[a-z0-9 ]{1,8}$/), tie('any'), { maxKeys: 5, noNullPrototype: true })
  )
})).any

test('the usual library reads what we write, and writes the same bytes', () => {
  fc.assert(
    fc.property(value, (given) => {
      const bytes = encodeBencode(given)
      expect(Buffer.from(bencode.encode(bencode.decode(Buffer.from(bytes)))).equals(bytes)).toBe(true)
    })
  )
})

test('we read what the usual library writes, and write the same bytes', () => {
  fc.assert(
    fc.property(value, (given) => {
      const bytes = new Uint8Array(bencode.encode(given))
      expect(Buffer.from(encodeBencode(decodeBencode(bytes))).equals(bytes)).toBe(true)
    })
  )
})
