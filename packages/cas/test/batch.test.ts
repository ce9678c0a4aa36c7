import { expect, test } from 'vitest'
import { Batch } from '../src/batch.ts'

test('what arrives while every thread is busy is the next batch, in order and within the limit', async () => {
  const sent: (readonly [thread: string, items: readonly number[]])[] = []
  const ends: (() => void)[] = []
  const batch = new Batch<string, number, number>(['a', 'b'], 3, (thread, items) => {
    sent.push([thread, items])
    return new Promise((resolve) => ends.push(() => resolve(items.map((item) => -item))))
  })
  const first = Promise.all([1, 2].map((item) => batch.add(item)))
  await expect.poll(() => sent).toEqual([['a', [1, 2]]])
  const second = batch.add(3)
  await expect.poll(() => sent.slice(1)).toEqual([['b', [3]]])
  const rest = Promise.all([4, 5, 6, 7].map((item) => batch.add(item)))
  await new Promise(setImmediate)
  expect(sent.length).toBe(2)
  ends[0]!()
  expect(await first).toEqual([-1, -2])
  await expect.poll(() => sent.slice(2)).toEqual([['a', [4, 5, 6]]])
  ends[2]!()
  await expect.poll(() => sent.slice(3)).toEqual([['a', [7]]])
  ends[1]!()
  ends[3]!()
  expect([await second, ...(await rest)]).toEqual([-3, -4, -5, -6, -7])
})

test('a batch that fails fails its items only', async () => {
  const broken = new Error('the thread died')
  const batch = new Batch<string, number, number>(['a'], 2, async (_, items) => {
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
