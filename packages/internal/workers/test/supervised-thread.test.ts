import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, expect, test } from 'vitest'
import { SupervisedThread, type SupervisedThreadOptions, type ThreadFault } from '../src/supervised-thread.ts'
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

function start(
  more: Partial<Pick<SupervisedThreadOptions<Message>, 'firstPauseMs' | 'maxPauseMs' | 'hangMs' | 'clock'>> = {}
) {
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
    firstPauseMs: 5,
    ...more
  })
  cleanups.push(() => thread.close('close', 1_000))
  return { thread, faults, messages, down: down.promise, starts: () => starts }
}

test.each(['throw', 'reject', 'exit', 'nonsense', 'memory'])(
  'a thread that ends by %s is counted once and restarted',
  async (how) => {
    const { thread, faults, messages, starts } = start()
    await expect.poll(() => messages.length).toBe(1)
    thread.post(how)
    await expect.poll(starts, { timeout: 60_000 }).toBe(2)
    await expect.poll(() => messages.length).toBe(2)
    thread.post('still there')
    await expect.poll(() => messages.at(-1)).toEqual({ kind: 'echo', message: 'still there' })
    expect(faults).toMatchObject([{ thread: 'failing', count: 1, pauseMs: 5 }])
  }
)

test('the pause grows up to its limit', async () => {
  const { thread, faults, starts } = start({ firstPauseMs: 1, maxPauseMs: 4 })
  for (let count = 1; count <= 5; count++) {
    await expect.poll(starts).toBe(count)
    thread.post('exit')
  }
  await expect.poll(() => faults.length).toBe(5)
  expect(faults.map(({ pauseMs }) => pauseMs)).toEqual([1, 2, 4, 4, 4])
  expect(faults.map(({ count }) => count)).toEqual([1, 2, 3, 4, 5])
})

const HANG_MS = 600
const LOOK_MS = HANG_MS / 6

test('a thread in an endless loop is ended, counted and restarted; the pause grows each time', async () => {
  // The owner looks only when it is told: a thread that takes seconds to start, or to get a core, does not hang.
  const clock = new VirtualClock()
  const { thread, faults, messages, starts } = start({ hangMs: HANG_MS, clock })
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
    await clock.advance(5 * count)
    expect(starts()).toBe(count + 1)
  }
  expect(faults).toMatchObject([
    { thread: 'failing', count: 1, pauseMs: 5 },
    { count: 2, pauseMs: 10 }
  ])
})

test('a busy thread that still answers is left alone', async () => {
  const clock = new VirtualClock()
  const { thread, faults, messages } = start({ hangMs: HANG_MS, clock })
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
  const clock = new VirtualClock()
  const { thread, down, starts } = start({ clock })
  thread.post('exit')
  await down
  expect(thread.running).toBe(false)
  await thread.close('close', 1_000)
  await clock.advance(1_000)
  expect(starts()).toBe(1)
})

test('a thread that ignores the request to end is terminated', async () => {
  const { thread, faults } = start()
  await thread.close('not heeded', 50)
  expect(thread.running).toBe(false)
  expect(faults).toEqual([])
})
