import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  digestBytes,
  digestFromBytes,
  digestFromHex,
  digestHex,
  isDigest,
  parseDigest,
  tryParseDigest
} from '../src/index.ts'
import { digest, errorOf } from './arbitraries.ts'

test('hex and bytes invert each other', () => {
  fc.assert(
    fc.property(digest, (each) => {
      expect(parseDigest(each)).toBe(each)
      expect(digestFromHex(digestHex(each))).toBe(each)
      expect(digestFromBytes(digestBytes(each))).toBe(each)
    })
  )
})

test.each([
  '',
  'sha256:',
  'a'.repeat(64),
  `sha256:${'A'.repeat(64)}`,
  `SHA256:${'a'.repeat(64)}`,
  `sha256:${'a'.repeat(63)}`,
  `sha256:${'a'.repeat(65)}`,
  `sha256:${'a'.repeat(64)}\n`,
  ` sha256:${'a'.repeat(64)}`,
  `sha256:${'g'.repeat(64)}`
])('not a digest: %j', (text) => {
  expect(isDigest(text)).toBe(false)
  expect(tryParseDigest(text)).toBeUndefined()
  expect(errorOf(() => parseDigest(text)).reason).toBe('digest-format')
})

test('other shapes are refused', () => {
  expect(isDigest(undefined)).toBe(false)
  expect(errorOf(() => digestFromHex('A'.repeat(64))).reason).toBe('digest-format')
  expect(errorOf(() => digestFromBytes(new Uint8Array(31))).reason).toBe('digest-format')
})
