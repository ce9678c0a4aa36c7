import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, expect, test } from 'vitest'
import { SupervisedThread, type ThreadFault } from '../src/supervised-thread.ts'
import { workerUrl } from '../src/worker-thread.ts'

interface Message {
  readonly kind: 'hello' | 'echo'
  readonly message?: string
  /** How often the owner was shown that the thread's event loop turns. */
  readonly beats?: number
}

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

const HANG_MS = 600
const LOOK_MS = HANG_MS / 6
const FIRST_PAUSE_MS = 1_000

/** The owner looks only when the test lets time pass: a thread that takes seconds to start, or to get a core, does not hang. */
function start() {
  const clock = new VirtualClock()
  const faults: ThreadFault[] = []
  const messages: Message[] = []
  const down = Promise.withResolvers<void>()
  let starts = 0
  const thread = new SupervisedThread<string, Message>({
    name: 'failing',
    url: workerUrl('./failing-worker', import.meta.url),
    data: () => starts,
    parse: (message) => {
      if (typeof message !== 'object') throw new TypeError('no message')
      return message as Message
    },
    received: (message) => void messages.push(message),
    started: () => void (starts += 1),
    crashed: (fault) => {
      faults.push(fault)
      down.resolve()
    },
    hangMs: HANG_MS,
    clock
  })
  cleanups.push(() => thread.close('close', 1_000))
  return { thread, clock, faults, messages, down: down.promise, starts: () => starts }
}

test.each(['throw', 'reject', 'exit', 'nonsense', 'memory'])(
  'a thread that ends by %s is counted once and restarted',
  async (how) => {
    const { thread, clock, faults, messages, down, starts } = start()
    await expect.poll(() => messages.length).toBe(1)
    thread.post(how)
    await down
    await clock.advance(FIRST_PAUSE_MS)
    expect(starts()).toBe(2)
    await expect.poll(() => messages.length).toBe(2)
    thread.post('still there')
    await expect.poll(() => messages.at(-1)).toEqual({ kind: 'echo', message: 'still there' })
    expect(faults).toMatchObject([{ thread: 'failing', count: 1, pauseMs: FIRST_PAUSE_MS }])
  }
)

test('the pause grows up to its limit', async () => {
  const { thread, clock, faults } = start()
  for (let count = 1; count <= 11; count++) {
    thread.post('exit')
    await until(() => faults.length === count)
    await clock.advance(faults.at(-1)!.pauseMs)
  }
  const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
  expect(faults.map(({ pauseMs, count }) => [pauseMs / 1_000, count])).toEqual(seconds.map((each, i) => [each, i + 1]))
})

test('a thread in an endless loop is ended, counted and restarted; the pause grows each time', async () => {
  const { thread, clock, faults, messages, starts } = start()
  for (let count = 1; count <= 2; count++) {
    thread.post('loop')
    await until(() => messages.at(-1)?.message === 'loop')
    messages.length = 0
    await clock.advance(5 * LOOK_MS)
    expect(faults).toHaveLength(count - 1)
    // the first look may have found that it had turned before; nobody looks at the next thread yet
    await clock.advance(LOOK_MS)
    if (faults.length < count) await clock.advance(LOOK_MS)
    expect(faults).toHaveLength(count)
    await clock.advance(FIRST_PAUSE_MS * count)
    expect(starts()).toBe(count + 1)
  }
  expect(faults).toMatchObject([
    { thread: 'failing', count: 1, pauseMs: FIRST_PAUSE_MS },
    { count: 2, pauseMs: 2 * FIRST_PAUSE_MS }
  ])
})

test('a busy thread that still answers is left alone', async () => {
  const { thread, clock, faults, messages } = start()
  const work = async (): Promise<number> => {
    messages.length = 0
    thread.post('work')
    await until(() => messages.at(-1)?.message === 'work')
    return messages.at(-1)!.beats!
  }
  for (let round = 0; round < 4; round++) {
    for (let beats = await work(); (await work()) === beats; );
    // it has come round since the last look, and so the first of these finds it
    await clock.advance(HANG_MS)
    expect(faults).toEqual([])
  }
})

test('a thread that is closed while it is down stays down', async () => {
  const { thread, clock, down, starts } = start()
  thread.post('exit')
  await down
  expect(thread.running).toBe(false)
  await thread.close('close', 1_000)
  await clock.advance(1_000)
  expect(starts()).toBe(1)
})

test('a thread that ignores the request to end is terminated', async () => {
  const { thread, clock, faults } = start()
  const closed = thread.close('not heeded', 50)
  await clock.advance(50)
  await closed
  expect(thread.running).toBe(false)
  expect(faults).toEqual([])
})
