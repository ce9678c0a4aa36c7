import { digestOf } from '@svc/cas-testsuite'
import { ByteRangeSet } from '@svc/internal-byte-ranges'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatJournal, tryParseJournal } from '../src/journal.ts'

const text = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))
const good = {
  version: 1,
  key: 'k',
  sizeBytes: 10,
  ranges: [
    [0, 3],
    [5, 10]
  ]
}

test('parse inverts format', () => {
  const ranges = fc.array(fc.tuple(fc.nat(1000), fc.nat(50)), { maxLength: 20 })
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 200 }), fc.boolean(), ranges, (key, known, pairs) => {
      const set = new ByteRangeSet(pairs.map(([start, length]) => [start, start + length] as const))
      const journal = {
        key,
        sizeBytes: 2000,
        digest: known ? digestOf(Buffer.from(key)) : undefined,
        ranges: set.toRanges()
      }
      expect(tryParseJournal(formatJournal(journal))).toEqual(journal)
    })
  )
})

test('anything else is not a journal', () => {
  expect(tryParseJournal(text(good))?.ranges).toEqual(good.ranges)
  const bad: unknown[] = [
    null,
    [],
    1,
    { ...good, version: 2 },
    { ...good, key: '' },
    { ...good, key: 'x'.repeat(201) },
    { ...good, sizeBytes: -1 },
    { ...good, sizeBytes: 1.5 },
    { ...good, sizeBytes: '10' },
    { ...good, digest: 'sha256:AB' },
    { ...good, more: 1 },
    { ...good, ranges: undefined },
    ...[
      [[3, 3]],
      [[0, 11]],
      [
        [0, 3],
        [3, 5]
      ],
      [
        [5, 6],
        [0, 1]
      ],
      [[-1, 2]],
      [[0]],
      [[0, 1, 2]],
      [['0', 1]],
      [0, 1]
    ].map((ranges) => ({ ...good, ranges }))
  ]
  for (const value of bad) expect(tryParseJournal(text(value))).toBe(undefined)
  expect(tryParseJournal(Buffer.from('{'))).toBe(undefined)
  expect(tryParseJournal(Buffer.from([0xff, 0xfe]))).toBe(undefined)
})

test('any bytes are refused or parsed without an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      tryParseJournal(bytes)
    })
  )
  fc.assert(
    fc.property(fc.json(), (json) => {
      expect(tryParseJournal(Buffer.from(json))).toBe(undefined)
    })
  )
})
