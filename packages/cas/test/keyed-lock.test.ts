import { codeOf } from '@svc/cas/contract'
import { expect, test } from 'vitest'
import { Gate, KeyedLock } from '../src/keyed-lock.ts'

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

test('a waiter may give up; the others keep their turn', async () => {
  const locks = new KeyedLock()
  const release = await locks.acquire('a')
  const other = await locks.acquire('b')
  const controller = new AbortController()
  const quitter = codeOf(locks.acquire('a', controller.signal))
  const next = locks.acquire('a')
  controller.abort()
  expect(await quitter).toBe('E_ABORTED')
  release()
  ;(await next)()
  other()
  ;(await locks.acquire('a'))()
})
