import { LoopBudget } from '@svc/internal-concurrency'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { QuickReads } from '../src/index.ts'

// A clock that stands still while nobody is busy: a busy machine may take this thread's core between any two lines.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

let passedMs = 0
function busy(ms: number): void {
  passedMs += ms
  vi.advanceTimersByTime(ms)
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const kind = (reads: QuickReads): Promise<'here' | 'pooled'> =>
  reads.run<'here' | 'pooled'>(
    () => 'here',
    async () => 'pooled'
  )

describe('reads on the event loop', () => {
  test('run on the loop until one is slow, then in the pool, and later on the loop again', async () => {
    const reads = new QuickReads(new LoopBudget())
    expect(await kind(reads)).toBe('here')
    await reads.run(
      () => busy(25),
      async () => undefined
    )
    expect(await kind(reads)).toBe('pooled')
    busy(49)
    expect(await kind(reads)).toBe('pooled')
    busy(1)
    expect(await kind(reads)).toBe('here')
  })

  test('a disk that stays slow is tried ever less often', async () => {
    const reads = new QuickReads(new LoopBudget())
    let here = 0
    const begunMs = passedMs
    while (passedMs - begunMs < 500) {
      await reads.run(
        () => {
          here++
          busy(25)
        },
        async () => busy(1)
      )
    }
    // at once, then after 50, 100 and 200 ms
    expect(here).toBe(4)
  })

  test('yield to others: many in a row do not delay a timer', async () => {
    const reads = new QuickReads(new LoopBudget())
    let over = false
    let others = 0
    const tick = (): void => {
      others++
      if (!over) setImmediate(tick)
    }
    setImmediate(tick)
    for (let n = 0; n < 100; n++) {
      await kind(reads)
      busy(1)
    }
    over = true
    // two milliseconds of each turn
    expect(others).toBeGreaterThan(20)
  })

  test('run at once until the turn is used up or one is slow', async () => {
    const reads = new QuickReads(new LoopBudget())
    const now = (): 'here' | undefined => reads.tryNow(() => 'here')
    expect(now()).toBe('here')
    busy(3)
    expect(now()).toBeUndefined()
    await turn()
    expect(now()).toBe('here')
    await turn()
    reads.tryNow(() => {
      busy(25)
      return true
    })
    await turn()
    expect(now()).toBeUndefined()
  })

  test('a failing read fails only its caller', async () => {
    const reads = new QuickReads(new LoopBudget())
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
