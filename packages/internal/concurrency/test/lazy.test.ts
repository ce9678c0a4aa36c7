import { expect, test } from 'vitest'
import { Lazy } from '../src/lazy.ts'

test('a lazy value is made once, on first use; a failure is not cached', async () => {
  let made = 0
  const fails = [true, false]
  const lazy = new Lazy(async () => {
    made += 1
    if (fails.shift() === true) throw new Error('no descriptor is free')
    return made
  })
  expect(lazy.made).toBeUndefined()
  expect(await Promise.allSettled([lazy.get(), lazy.get()])).toMatchObject([
    { status: 'rejected' },
    { status: 'rejected' }
  ])
  expect([made, lazy.made]).toEqual([1, undefined])
  expect(await Promise.all([lazy.get(), lazy.get()])).toEqual([2, 2])
  expect(await lazy.made).toBe(2)
})
