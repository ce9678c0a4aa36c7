import { expect, test } from 'vitest'
import { Batch } from '../src/batch.ts'

test('items that arrive during a batch form the next one, in order and within the limit', async () => {
  const sent: (readonly number[])[] = []
  const ends: (() => void)[] = []
  const batch = new Batch<number, number>(3, (items) => {
    sent.push(items)
    return new Promise((resolve) => ends.push(() => resolve(items.map((item) => -item))))
  })
  const first = Promise.all([1, 2].map((item) => batch.add(item)))
  await expect.poll(() => sent).toEqual([[1, 2]])
  const rest = Promise.all([3, 4, 5, 6].map((item) => batch.add(item)))
  await new Promise(setImmediate)
  expect(sent.length).toBe(1)
  ends[0]!()
  expect(await first).toEqual([-1, -2])
  await expect.poll(() => sent.slice(1)).toEqual([[3, 4, 5]])
  ends[1]!()
  await expect.poll(() => sent.slice(2)).toEqual([[6]])
  ends[2]!()
  expect(await rest).toEqual([-3, -4, -5, -6])
  const later = batch.add(7)
  await expect.poll(() => sent.slice(3)).toEqual([[7]])
  ends[3]!()
  expect(await later).toBe(-7)
})

test('a failed batch fails its own items only', async () => {
  const broken = new Error('the thread died')
  const batch = new Batch<number, number>(2, async (items) => {
    if (items.includes(1)) throw broken
    return items
  })
  const outcomes = await Promise.allSettled([1, 2, 3].map((item) => batch.add(item)))
  expect(outcomes).toEqual([
    { status: 'rejected', reason: broken },
    { status: 'rejected', reason: broken },
    { status: 'fulfilled', value: 3 }
  ])
})
