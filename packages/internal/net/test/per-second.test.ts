import { expect, test } from 'vitest'
import { PerSecond } from '../src/per-second.ts'

test('counts within a second, in total and per key', () => {
  const budget = new PerSecond({ total: 3, each: 2 })
  expect([1, 2, 3].map(() => budget.take('a', 500))).toEqual([true, true, false])
  expect(budget.take('b', 999)).toBe(true)
  expect(budget.take('c', 999)).toBe(false)
  expect(budget.take('c', 1_000)).toBe(true)
})
