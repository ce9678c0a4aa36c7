import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TokenBucket } from '../src/token-bucket.ts'

test('a bucket lets its rate through, whatever the time steps', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 50_000, max: 5_000_000 }),
      fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 20, maxLength: 100 }),
      (rate, steps) => {
        let now = 0
        const bucket = new TokenBucket(rate, now)
        let sent = 0
        for (const step of steps) {
          now += step
          while (bucket.ready(now)) {
            bucket.spend(16_384)
            sent += 16_384
          }
          expect(bucket.waitMs(now)).toBeGreaterThan(0)
        }
        expect(sent).toBeLessThanOrEqual((rate * now) / 1000 + 2 * 16_384)
        expect(sent).toBeGreaterThanOrEqual(
          Math.min(...steps) > 0 ? (rate * now) / 1000 - Math.max(131_072, rate / 2) : 0
        )
      }
    )
  )
})

test("a bucket's debt is limited: waiters wait a second or two at most", () => {
  for (const rate of [100_000, 1_000_000]) {
    const bucket = new TokenBucket(rate, 0)
    for (let n = 0; n < 1_000; n++) bucket.spend(1_000_000)
    expect(bucket.waitMs(0)).toBe(rate === 100_000 ? 2_622 : 1_000)
    expect(bucket.ready(3_000)).toBe(true)
  }
})

test('a bucket without a rate is always ready', () => {
  const bucket = new TokenBucket(0, 0)
  bucket.spend(1e12)
  expect(bucket.ready(0)).toBe(true)
})

test('a new rate takes effect at once', () => {
  const bucket = new TokenBucket(0, 0)
  bucket.bytesPerSecond = 10_000
  for (let sent = 0; bucket.ready(1000); sent += 16_384) {
    bucket.spend(16_384)
    expect(sent).toBeLessThan(131_072)
  }
  expect(bucket.waitMs(1000)).toBeGreaterThan(0)
  bucket.bytesPerSecond = 0
  expect([bucket.ready(1000), bucket.waitMs(1000)]).toEqual([true, 0])
})
