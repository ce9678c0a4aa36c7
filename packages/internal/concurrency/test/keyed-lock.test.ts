import { expect, test } from 'vitest'
import { KeyedLock } from '../src/index.ts'

class GaveUp extends Error {}

test('a waiter can give up; others keep their turn, and an unused key is forgotten', async () => {
  const locks = new KeyedLock<string>(() => new GaveUp())
  const release = await locks.acquire('a')
  const other = await locks.acquire('b')
  expect([locks.isFree('a'), locks.isFree('c')]).toEqual([false, true])
  const controller = new AbortController()
  const quitter = locks.acquire('a', controller.signal)
  const next = locks.acquire('a')
  controller.abort()
  await expect(quitter).rejects.toBeInstanceOf(GaveUp)
  release()
  ;(await next)()
  other()
  expect(await locks.run('a', undefined, () => 'held')).toBe('held')
  expect([locks.isFree('a'), locks.isFree('b')]).toEqual([true, true])
})
