import { expect, test } from 'vitest'
import { forEachLimited, yieldToEventLoop } from '../src/index.ts'

class GaveUp extends Error {}

test('a limited loop keeps order and limit, reports the first failure, and leaves nothing running', async () => {
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
