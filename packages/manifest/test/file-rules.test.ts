import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareFiles } from '../src/file-rules.ts'

const order = (a: string, b: string): number =>
  Math.sign(compareFiles({ kind: 'code', name: a }, { kind: 'code', name: b }))

test('names are ordered by their UTF-8 bytes', () => {
  // where the order of UTF-16 code units is another one
  expect(order('\u{10000}', '\uffff')).toBe(1)
  expect(order('a\ue000', 'a\u{1f600}')).toBe(-1)
  const name = fc.array(fc.constantFrom('a', 'b', '/', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}'))
  fc.assert(
    fc.property(name, name, (a, b) => {
      expect(order(a.join(''), b.join(''))).toBe(Buffer.compare(Buffer.from(a.join('')), Buffer.from(b.join(''))))
    })
  )
})
