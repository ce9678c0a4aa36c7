import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareText } from '../src/order.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 30 })

test('texts are ordered as their UTF-8 bytes', () => {
  const near = fc
    .array(fc.constantFrom('a', 'b', '\uffff', '\u{10000}', '\u{10ffff}', '\ud7ff', '\ue000', 'é'), { maxLength: 4 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(anyText, near), fc.oneof(anyText, near), (a, b) => {
      expect(Math.sign(compareText(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    })
  )
})
