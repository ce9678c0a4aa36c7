import { within } from '@svc/internal-clock'
import { expect, test } from 'vitest'
import { VirtualClock } from '../src/virtual-clock.ts'

test('timers fire in order of their time, and those of one time in the order in which they were set', async () => {
  const clock = new VirtualClock(1_000)
  const log: string[] = []
  const note = (name: string) => () => void log.push(`${name} ${clock.monotonic()} ${clock.now()}`)
  clock.after(20, note('b'))
  clock.after(10, note('a'))
  clock.after(20, note('c'))
  clock.after(31, note('late'))
  await clock.advance(30)
  expect(log).toEqual(['a 10 1010', 'b 20 1020', 'c 20 1020'])
  expect(clock.monotonic()).toBe(30)
})

test('timers that a promise sets after an event count within the same span', async () => {
  const clock = new VirtualClock()
  const times: number[] = []
  void (async () => {
    for (let n = 0; n < 3; n += 1) {
      await clock.sleep(10)
      times.push(clock.monotonic())
    }
  })()
  await clock.advance(30)
  expect(times).toEqual([10, 20, 30])
})

test('a cancelled timer never fires, and cancelling one that fired ends no other', async () => {
  const clock = new VirtualClock()
  let count = 0
  const add = (): void => void (count += 1)
  const first = clock.after(10, add)
  await clock.advance(10)
  clock.after(10, add)
  first.cancel()
  const cancelled = clock.after(10, add)
  cancelled.cancel()
  cancelled.cancel()
  await clock.advance(10)
  expect(count).toBe(2)
  expect(clock.pending).toBe(0)
})

test('a periodic timer repeats until it is cancelled, even from its own callback', async () => {
  const clock = new VirtualClock()
  const times: number[] = []
  const timer = clock.every(10, () => {
    times.push(clock.monotonic())
    if (times.length === 3) timer.cancel()
  })
  await clock.advance(100)
  expect(times).toEqual([10, 20, 30])
})

test('a sleep ends with the signal, and leaves nothing behind', async () => {
  const clock = new VirtualClock()
  const end = new AbortController()
  const asleep = clock.sleep(10, end.signal)
  end.abort(new RangeError('enough'))
  await expect(asleep).rejects.toThrow(RangeError)
  await expect(clock.sleep(10, end.signal)).rejects.toThrow(RangeError)
  expect(clock.pending).toBe(0)
})

test('thousands of events in random order happen in order', () => {
  const clock = new VirtualClock()
  let mixed = 7
  let last = -1
  for (let n = 0; n < 5_000; n += 1) {
    mixed = (mixed * 48_271) % 2_147_483_647
    const timer = clock.after(mixed % 1_000, () => {
      expect(clock.monotonic()).toBeGreaterThanOrEqual(last)
      last = clock.monotonic()
    })
    if (n % 3 === 0) timer.cancel()
  }
  let steps = 0
  while (clock.step()) steps += 1
  expect(steps).toBe(3_333)
})

test('work within a limit ends with the limit or the signal of its caller, and leaves no timer behind', async () => {
  const clock = new VirtualClock()
  const never = (signal: AbortSignal): Promise<void> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  expect(await within(clock, 10, undefined, async (signal) => signal.aborted)).toBe(false)
  expect(clock.step()).toBe(false)
  const late = within(clock, 10, undefined, never)
  expect(clock.step()).toBe(true)
  await expect(late).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(clock.monotonic()).toBe(10)
  const end = new AbortController()
  const ended = within(clock, 10, end.signal, never)
  end.abort(new RangeError('enough'))
  await expect(ended).rejects.toThrow(RangeError)
  expect(clock.step()).toBe(false)
})
