import { expect, test } from 'vitest'
import { Gate, yieldToEventLoop } from '../src/index.ts'

class GaveUp extends Error {}

test('a gate admits as many as it has places, in order', async () => {
  const gate = new Gate(2)
  const first = await gate.enter()
  await gate.enter()
  const order: number[] = []
  const third = gate.enter().then((release) => (order.push(3), release()))
  const fourth = gate.enter().then((release) => (order.push(4), release()))
  expect([gate.waiting, order]).toEqual([2, []])
  first()
  first()
  await Promise.all([third, fourth])
  expect(order).toEqual([3, 4])
})

test('a place is released in order, also after a failure', async () => {
  const gate = new Gate(2)
  const order: number[] = []
  let inside = 0
  let most = 0
  const runs = Array.from({ length: 7 }, (_, i) =>
    gate.run(undefined, async () => {
      order.push(i)
      most = Math.max(most, ++inside)
      await yieldToEventLoop()
      inside--
      if (i === 3) throw new GaveUp()
    })
  )
  const over = await Promise.allSettled(runs)
  expect([most, order]).toEqual([2, [0, 1, 2, 3, 4, 5, 6]])
  expect(over.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([3])
})

test('when a place is free, the lowest rank goes first, and the others in order', async () => {
  const gate = new Gate(1)
  const release = await gate.enter()
  const order: string[] = []
  const ranks: Record<string, number> = {}
  const stop = new AbortController()
  const waits = ['a', 'b', 'c', 'd', 'e'].map((name) =>
    gate.run(
      name === 'e' ? stop.signal : undefined,
      () => void order.push(name),
      () => ranks[name]
    )
  )
  // asked when a place is free, not when the wait begins
  Object.assign(ranks, { d: 2, c: 5, e: 1 })
  stop.abort()
  release()
  await Promise.allSettled(waits)
  expect([order, gate.idle]).toEqual([['d', 'c', 'a', 'b'], true])
})

test("by default, the error is the signal's reason", async () => {
  const reason = new RangeError('why')
  await expect(new Gate(1).enter(AbortSignal.abort(reason))).rejects.toBe(reason)
})
