import { expect, test } from 'vitest'
import { forEachLimited, Gate, KeyedLock, yieldToEventLoop } from '../src/index.ts'

class GaveUp extends Error {}

test('a gate lets in as many as it has places, in order', async () => {
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

test('a waiter may give up; the others keep their turn, and the key is forgotten in the end', async () => {
  const locks = new KeyedLock<string>(() => new GaveUp())
  const release = await locks.acquire('a')
  const other = await locks.acquire('b')
  const controller = new AbortController()
  const quitter = locks.acquire('a', controller.signal)
  const next = locks.acquire('a')
  controller.abort()
  await expect(quitter).rejects.toBeInstanceOf(GaveUp)
  release()
  ;(await next)()
  other()
  expect(await locks.run('a', undefined, () => 'held')).toBe('held')
  expect(locks.size).toBe(0)
})

test('a place is given back, in order, also after a failure', async () => {
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

test('the reason of the signal is the error where nothing else is said', async () => {
  const reason = new RangeError('why')
  await expect(new Gate(1).enter(AbortSignal.abort(reason))).rejects.toBe(reason)
})

test('100,000 waiters give up in a moment', async () => {
  const gate = new Gate(1)
  const release = await gate.enter()
  const stops = Array.from({ length: 100_000 }, () => new AbortController())
  const waits = stops.map(({ signal }) => gate.enter(signal).catch(() => 'gone'))
  // From the last to the first: where each one looks for its place from the front, this is 5,000,000,000 steps.
  for (const stop of stops.reverse()) stop.abort()
  await Promise.all(waits)
  release()
  expect(gate.idle).toBe(true)
}, 20_000)

test('a limited loop: order, limit, first failure, and nobody left running', async () => {
  const begun: number[] = []
  let running = 0
  let most = 0
  const work = async (item: number): Promise<void> => {
    begun.push(item)
    most = Math.max(most, ++running)
    await yieldToEventLoop()
    running--
    if (item === 5) throw new GaveUp()
  }
  await expect(forEachLimited([1, 2, 3, 4, 5, 6, 7, 8, 9], 3, undefined, work)).rejects.toBeInstanceOf(GaveUp)
  expect([most, running]).toEqual([3, 0])
  expect(begun).toEqual(begun.toSorted())
  expect(begun).not.toContain(9)
  await expect(forEachLimited([1], 1, AbortSignal.abort(new RangeError()), work)).rejects.toBeInstanceOf(RangeError)
})
