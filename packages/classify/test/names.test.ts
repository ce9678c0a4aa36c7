import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClassifyError, checkNames, nameProblem } from '../src/index.ts'
import { isReservedName, MAX_NAME_BYTES } from '../src/names.ts'

test('a name passes if and only if every rule passes', () => {
  const segment = fc.constantFrom(
    'a',
    '.',
    '..',
    '',
    '...',
    'b\\c',
    'd\u0001',
    'e\u009f',
    'f\u2028',
    'g\u202e',
    'h\u2066',
    'i\u200e',
    // joiners are part of words and emoji
    'j\u200d\u200c',
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
          !/[\\\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u.test(name) &&
          name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
        expect(nameProblem(name) === undefined).toBe(fine)
      }
    )
  )
})

test('only the paths that sealing writes are reserved', () => {
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

test('a listing passes if and only if no two names are equal, or one the folder of another, after NFC', () => {
  const part = fc.constantFrom('a', 'b', 'a-', 'a.b', 'A', '\u00e9', 'e\u0301', '!')
  const names = fc.array(
    fc.array(part, { minLength: 1, maxLength: 3 }).map((path) => path.join('/')),
    { maxLength: 6 }
  )
  fc.assert(
    fc.property(names, (listing) => {
      const nfc = listing.map((name) => name.normalize('NFC'))
      const clash = nfc.some((a, i) => nfc.some((b, j) => i !== j && (a === b || b.startsWith(`${a}/`))))
      let refused: unknown
      try {
        checkNames(listing)
      } catch (error) {
        refused = error
      }
      expect(refused instanceof ClassifyError).toBe(clash)
    }),
    { numRuns: 1000 }
  )
})
