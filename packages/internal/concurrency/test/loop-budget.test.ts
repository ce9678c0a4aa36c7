import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LoopBudget, processWide } from '../src/index.ts'

// A clock that stands still while nobody is busy: a busy machine may take this thread's core between any two lines.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const busy = (ms: number): void => void vi.advanceTimersByTime(ms)
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('work beyond the budget continues in later turns, one task after another', async () => {
  const budget = new LoopBudget(2)
  const done: string[] = []
  const task = (name: string, steps: number): (() => void) => {
    const step = (): void => {
      busy(2)
      done.push(name)
      steps -= 1
      if (steps > 0) budget.later('lists', step)
    }
    return step
  }
  for (const each of [task('a', 3), task('b', 1), task('c', 2)]) budget.later('lists', each)
  const gone = task('d', 9)
  budget.later('lists', gone)
  budget.leave(gone)
  const counts: number[] = []
  while (budget.waiting > 0) {
    await turn()
    counts.push(done.length)
  }
  expect(done).toEqual(['a', 'b', 'c', 'a', 'c', 'a'])
  for (const [at, count] of counts.entries()) expect(count - (counts[at - 1] ?? 0)).toBeLessThanOrEqual(1)
  // nobody asked after the last step
  expect(budget.usedUp.get('lists')).toBe(5)
})

test('time spent in promises counts too', async () => {
  const budget = new LoopBudget(2)
  const done: number[] = []
  const start = async (n: number): Promise<void> => {
    await Promise.resolve()
    await Promise.resolve()
    busy(2)
    done.push(n)
  }
  for (const n of [1, 2, 3]) budget.later('pipelined', () => void start(n))
  await turn()
  expect(done).toEqual([1])
  while (budget.waiting > 0) await turn()
  await turn()
  expect(done).toEqual([1, 2, 3])
})

test("a turn's budget starts with its first step, is shared by all, and renews with the next turn", async () => {
  const budget = new LoopBudget(2)
  expect(budget.isOver('file-reads')).toBe(false)
  busy(1)
  expect(budget.isOver('lists')).toBe(false)
  busy(1)
  expect(budget.isOver('file-reads')).toBe(true)
  expect(budget.isOver('lists')).toBe(true)
  await turn()
  busy(50)
  expect(budget.isOver('file-reads')).toBe(false)
  // who was let through last used it up, once
  expect([...budget.usedUp].filter(([, times]) => times > 0)).toEqual([['lists', 1]])
})

test('a task that throws does not stop others', async () => {
  const budget = new LoopBudget(2)
  const thrown = new Promise<unknown>((resolve) => process.once('uncaughtException', resolve))
  const listeners = process.listeners('uncaughtException').slice(0, -1)
  for (const listener of listeners) process.off('uncaughtException', listener)
  budget.later('lists', () => {
    throw new Error('a defect')
  })
  await budget.next('lists')
  expect(((await thrown) as Error).message).toBe('a defect')
  for (const listener of listeners) process.on('uncaughtException', listener)
})

test('a value of the process is made once', () => {
  const one = processWide('a test', () => ({}))
  expect(processWide('a test', () => ({}))).toBe(one)
})
