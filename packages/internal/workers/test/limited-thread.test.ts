import { expect, onTestFinished, test } from 'vitest'
import { LimitedThread, workerUrl } from '../src/index.ts'
import type { EchoCalls } from './echo-worker.ts'

/** Time is over when the test says so. */
function start() {
  let end: (() => void) | undefined
  const thread = new LimitedThread<EchoCalls>({
    url: workerUrl('./echo-worker', import.meta.url),
    limitMs: 1_000,
    clock: {
      after: (_, run) => {
        end = run
        return { cancel: () => (end = undefined) }
      }
    },
    late: () => new Error('too late')
  })
  onTestFinished(() => thread.close())
  return { thread, timeRuns: () => end !== undefined, endTime: () => end?.() }
}

test('a call that never ends is ended, and those behind it are answered by another thread', async () => {
  const { thread, timeRuns, endTime } = start()
  const born = await thread.call('which', undefined)
  const [endless, next] = [thread.call('spin', undefined), thread.call('which', undefined)]
  await expect.poll(timeRuns).toBe(true)
  endTime()
  await expect(endless).rejects.toThrow('too late')
  expect(await next).not.toBe(born)
})

test('the time that the thread takes to start is not that of its first call', async () => {
  const { thread, timeRuns } = start()
  const endless = thread.call('spin', undefined)
  const ended = expect(endless).rejects.toThrow('closed')
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  expect(timeRuns()).toBe(false)
  await expect.poll(timeRuns).toBe(true)
  await thread.close()
  await ended
})

test('an error of the thread stays what it is; after close every call is refused', async () => {
  const { thread } = start()
  await expect(thread.call('fail', { message: 'no', code: 'E_X' })).rejects.toMatchObject({ code: 'E_X' })
  await thread.close()
  await expect(thread.call('echo', 1)).rejects.toThrow('closed')
})
