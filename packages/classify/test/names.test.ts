import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareNames, isReservedName, MAX_NAME_BYTES, nameProblem } from '../src/index.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 30 })

test('names are ordered as their UTF-8 bytes', () => {
  const near = fc
    .array(fc.constantFrom('a', 'b', '\uffff', '\u{10000}', '\u{10ffff}', '\ud7ff', '\ue000', 'é'), { maxLength: 4 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(anyText, near), fc.oneof(anyText, near), (a, b) => {
      expect(Math.sign(compareNames(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    })
  )
})

test('a name passes exactly when each rule does', () => {
  const segment = fc.constantFrom(
    'a',
    '.',
    '..',
    '',
    '...',
    'b\\c',
    'd\u0001',
    'e\u009f',
    'ü',
    '\ud800',
    'x'.repeat(600)
  )
  fc.assert(
    fc.property(
      fc.array(segment, { maxLength: 4 }).map((path) => path.join('/')),
      (name) => {
        const fine =
          name.isWellFormed() &&
          Buffer.byteLength(name) <= MAX_NAME_BYTES &&
          !/[\\\p{Cc}]/u.test(name) &&
          name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
        expect(nameProblem(name) === undefined).toBe(fine)
      }
    )
  )
})

test('reserved are only the places that sealing occupies', () => {
  for (const name of [
    'manifest',
    'manifest/x',
    'modelconfig.json',
    'tokenizer.tar/x',
    'adapter.tar/x',
    'a/adapter.tar/x'
  ])
    expect(isReservedName(name)).toBe(true)
  for (const name of [
    'manifests/x',
    'Manifest/x',
    'a/manifest/x',
    'a/modelconfig.json/x',
    'a/adapter.tar',
    'my-adapter.tar/x'
  ])
    expect(isReservedName(name)).toBe(false)
})
