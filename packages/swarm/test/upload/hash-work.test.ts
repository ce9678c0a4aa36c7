import { PieceTree } from '@svc/metainfo'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { HashWork } from '../../src/upload/hash-work.ts'

const PIECES = 65_536
const treeOf = (pieces: number): PieceTree =>
  new PieceTree({ sizeBytes: pieces * 16_384, pieceLengthBytes: 16_384 }, new Uint8Array(pieces * 32))

test('trees are cached within a budget, least recently used first out', () => {
  const work = new HashWork(new VirtualClock())
  const tree = treeOf(PIECES)
  // 64 bytes for each piece: four fill the 16 MiB.
  for (const key of ['1/0', '1/1', '2/0', '2/1']) work.trees.set(key, tree)
  expect(work.trees.get('1/0')).toBe(tree)
  work.trees.set('3/0', tree)
  expect(work.trees.get('1/1')).toBeUndefined()
  expect(work.trees.get('1/0')).toBe(tree)
  work.forget('1/')
  expect(work.trees.get('1/0')).toBeUndefined()
  expect(work.trees.get('2/0')).toBe(tree)
})

test('a tree larger than the budget is cached alone', () => {
  const work = new HashWork(new VirtualClock())
  const [small, large] = [treeOf(2), treeOf(8 * PIECES)]
  work.trees.set('1/0', small)
  work.trees.set('2/0', large)
  expect(work.trees.get('1/0')).toBeUndefined()
  expect(work.trees.get('2/0')).toBe(large)
  work.trees.set('3/0', small)
  expect(work.trees.get('2/0')).toBeUndefined()
  expect(work.trees.get('3/0')).toBe(small)
})

test('tasks run one at a time, in order, whatever fails', async () => {
  const work = new HashWork(new VirtualClock())
  const log: number[] = []
  let running = 0
  const jobs = [1, 2, 3].map((job) =>
    work
      .inTurn(async () => {
        running += 1
        expect(running).toBe(1)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
        log.push(job)
        if (job === 2) throw new Error('failed')
      })
      .catch(() => undefined)
  )
  await Promise.all(jobs)
  expect(log).toEqual([1, 2, 3])
})

test('work beyond a second of hashes waits', async () => {
  const clock = new VirtualClock()
  const work = new HashWork(clock)
  await work.afford(200_000)
  let afforded = false
  const next = work.afford(1).then(() => (afforded = true))
  await clock.advance(1_000)
  expect(afforded).toBe(false)
  await clock.advance(1_000)
  await next
})
