import { expect, test } from 'vitest'
import { leastBytesIn, MIN_BYTES_PER_SECOND, Pace } from '../src/index.ts'

test('a pace is kept by bytes at the least rate, pauses included, and not by those of a drip', () => {
  let nowMs = 0
  const pace = new Pace(() => nowMs)
  expect(pace.keepsUpWith(0)).toBe(false)
  nowMs = 1_000
  expect(pace.keepsUpWith(MIN_BYTES_PER_SECOND - 1)).toBe(false)
  expect(pace.keepsUpWith(1)).toBe(true)
  // from there on anew: what came too fast before is no credit
  nowMs = 61_000
  expect(pace.keepsUpWith(leastBytesIn(60_000) - 1)).toBe(false)
  nowMs = 62_000
  expect(pace.keepsUpWith(1)).toBe(false)
  pace.skip(1_000)
  expect(pace.keepsUpWith(0)).toBe(true)
})
