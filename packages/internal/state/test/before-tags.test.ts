import { expect, test } from 'vitest'
import { isBeforeTag } from '../src/before-tags.ts'

const HOUR_MS = 3600_000

test("a tag's time is the end of the day that its name gives", () => {
  const at = (time: string, olderThanMs: number, tag = 'before-2026-03-01-2'): boolean =>
    isBeforeTag(tag, olderThanMs, { now: () => Date.parse(time) })
  expect(at('2026-03-01T23:59:00Z', 12 * HOUR_MS)).toBe(false)
  expect(at('2026-03-02T11:59:59Z', 12 * HOUR_MS)).toBe(false)
  expect(at('2026-03-02T12:00:00Z', 12 * HOUR_MS)).toBe(true)
  // 0 includes today's tags
  expect(at('2026-03-01T00:00:00Z', 0)).toBe(true)
  expect(at('2026-03-02T00:00:00Z', 0, 'before-2026-13-01')).toBe(false)
})
