import { expect, test } from 'vitest'
import { leastBytesIn, MIN_BYTES_PER_SECOND, MinRate } from '../src/min-rate.ts'

test('bytes at the minimum rate meet it, even with pauses; a trickle does not', () => {
  let nowMs = 0
  const rate = new MinRate({ monotonic: () => nowMs })
  expect(rate.keepsUpWith(0)).toBe(false)
  nowMs = 1_000
  expect(rate.keepsUpWith(MIN_BYTES_PER_SECOND - 1)).toBe(false)
  expect(rate.keepsUpWith(1)).toBe(true)
  // counted anew from there: what came too fast before is no credit
  nowMs = 61_000
  expect(rate.keepsUpWith(leastBytesIn(60_000) - 1)).toBe(false)
  const resume = rate.pause()
  nowMs = 62_000
  expect(rate.keepsUpWith(1)).toBe(false)
  resume()
  expect(rate.keepsUpWith(0)).toBe(true)
})
