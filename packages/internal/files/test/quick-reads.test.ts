import { describe, expect, test } from 'vitest'
import { QuickReads } from '../src/index.ts'

function busy(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; ) Math.sqrt(2)
}
const kind = (reads: QuickReads): Promise<'here' | 'pooled'> =>
  reads.run<'here' | 'pooled'>(
    () => 'here',
    async () => 'pooled'
  )

describe('reads on the event loop', () => {
  test('are made here until one was slow, then in the pool, and here again later', async () => {
    const reads = new QuickReads()
    expect(await kind(reads)).toBe('here')
    await reads.run(
      () => busy(25),
      async () => undefined
    )
    const begun = performance.now()
    expect(await kind(reads)).toBe('pooled')
    while ((await kind(reads)) === 'pooled') await new Promise((resolve) => setTimeout(resolve, 5))
    expect(performance.now() - begun).toBeGreaterThan(40)
  })

  test('a disk that stays slow is asked ever less often', async () => {
    const reads = new QuickReads()
    const begun = performance.now()
    let here = 0
    while (performance.now() - begun < 500) {
      await reads.run(
        () => {
          here++
          busy(25)
        },
        () => new Promise<void>((resolve) => setTimeout(resolve, 1))
      )
    }
    // after 50, 100, 200 and 400 ms
    expect(here).toBeLessThanOrEqual(4)
  })

  test('let others come first: many in a row do not hold up a timer', async () => {
    const reads = new QuickReads()
    let over = false
    let others = 0
    const tick = (): void => {
      others++
      if (!over) setImmediate(tick)
    }
    setImmediate(tick)
    for (const end = performance.now() + 100; performance.now() < end; ) await kind(reads)
    over = true
    expect(others).toBeGreaterThan(5)
  })

  test('at once: until the turn is over or one was slow', async () => {
    const reads = new QuickReads()
    const now = (): 'here' | undefined => reads.tryNow(() => 'here')
    expect(now()).toBe('here')
    busy(3)
    expect(now()).toBeUndefined()
    await new Promise((resolve) => setImmediate(resolve))
    expect(now()).toBe('here')
    await new Promise((resolve) => setImmediate(resolve))
    reads.tryNow(() => {
      busy(25)
      return true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(now()).toBeUndefined()
  })

  test('a failing read fails its caller alone', async () => {
    const reads = new QuickReads()
    const failing = reads.run(
      () => {
        throw new Error('EIO')
      },
      async () => undefined
    )
    await expect(failing).rejects.toThrow('EIO')
    expect(await kind(reads)).toBe('here')
  })
})
