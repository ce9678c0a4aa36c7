import { expect, test } from 'vitest'
import { ThreadBatch } from '../src/thread-batch.ts'

interface Worker {
  readonly id: number
  passes: number
}
const workers = (count: number): Worker[] => Array.from({ length: count }, (_, id) => ({ id, passes: 0 }))

test('a thread that is started only when items wait gets them then, and not before', async () => {
  const sent: [worker: number, items: readonly number[]][] = []
  const ends: (() => void)[] = []
  const batch = new ThreadBatch<Worker, number, number>(workers(2), { maxItems: 4, joined: 1 }, (worker, items) => {
    sent.push([worker.id, items])
    return new Promise((resolve) => ends.push(() => resolve(items.map((item) => -item))))
  })
  const first = Promise.all([1, 2, 3].map((item) => batch.add(item)))
  await expect.poll(() => sent).toEqual([[0, [1, 2, 3]]])
  ends[0]!()
  expect(await first).toEqual([-1, -2, -3])

  // the first thread is busy and stays so: the others' items go to the second one
  const slow = batch.add(4)
  await expect.poll(() => sent.length).toBe(2)
  const waiting = batch.add(5)
  await expect.poll(() => sent.slice(2), { timeout: 30_000 }).toEqual([[1, [5]]])
  for (const end of ends) end()
  expect(await Promise.all([slow, waiting])).toEqual([-4, -5])
})

test('threads that are all used from the start share what comes in one turn', async () => {
  const sent: [worker: number, items: readonly number[]][] = []
  const batch = new ThreadBatch<Worker, number, number>(workers(2), { maxItems: 4 }, async (worker, items) => {
    sent.push([worker.id, items])
    return items
  })
  expect(await Promise.all([1, 2, 3, 4].map((item) => batch.add(item)))).toEqual([1, 2, 3, 4])
  expect(sent).toEqual([
    [0, [1, 2]],
    [1, [3, 4]]
  ])
})
