import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isTag, parseTag, QUANT_WORDS } from '../src/index.ts'
import { isPlainQuant } from '../src/quant.ts'
import { errorOf, quant, tag } from './arbitraries.ts'

// A qualified quant, such as `f7.a`, may be a tag: a selector has its tag before a "+".
test('no tag is a quant without a qualifier, ignoring case', () => {
  fc.assert(
    fc.property(tag, (text) => {
      expect(parseTag(text)).toBe(text)
      expect(isPlainQuant(text.toLowerCase())).toBe(false)
    })
  )
  fc.assert(
    fc.property(quant, fc.boolean(), (text, upper) => {
      expect(errorOf(() => parseTag(upper ? text.toUpperCase() : text)).reason).toBe('tag-banned')
    })
  )
  expect(QUANT_WORDS.some(isTag)).toBe(false)
})

test('malformed and reserved tags are refused with different reasons', () => {
  expect(errorOf(() => parseTag('')).reason).toBe('tag-format')
  expect(errorOf(() => parseTag('a b')).reason).toBe('tag-format')
  expect(errorOf(() => parseTag('v1\n')).reason).toBe('tag-format')
  expect(errorOf(() => parseTag('sha256:')).reason).toBe('tag-banned')
  expect(errorOf(() => parseTag('Ud-x')).reason).toBe('tag-banned')
})
