import { once } from 'node:events'
import { getPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { WorkerPool, WorkerThread, workerUrl } from '../src/index.ts'
import { inheritedArguments } from '../src/inherited-arguments.ts'
import type { EchoCalls } from './echo-worker.ts'

const url = workerUrl('./echo-worker', import.meta.url)
const open: { close(): Promise<void> }[] = []
function start(options: Partial<ConstructorParameters<typeof WorkerThread>[0]> = {}): WorkerThread<EchoCalls> {
  const thread = new WorkerThread<EchoCalls>({ url, ...options })
  open.push(thread)
  return thread
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()))
})
// Of files before this one in the process: there is room for a few spare threads only

test('answers calls, with progress; transfers bytes', async () => {
  const thread = start()
  const told: number[] = []
  expect(await thread.call('echo', { a: [1, 'x'] })).toEqual({ a: [1, 'x'] })
  expect(await thread.call('count', 3, { onProgress: (at) => told.push(at) })).toBe(3)
  expect(told).toEqual([1, 2, 3])
  const given = new Uint8Array(10)
  await thread.call('echo', given, { transfer: [given.buffer] })
  expect(given.length).toBe(0)
})

test('an error keeps its code; an uncloneable value is refused, without harm to other calls', async () => {
  const thread = start()
  const other = thread.call('echo', 1)
  await expect(thread.call('fail', { message: 'no', code: 'E_X' })).rejects.toMatchObject({ code: 'E_X' })
  await expect(thread.call('echo', () => 1)).rejects.toMatchObject({ name: 'DataCloneError' })
  expect(await other).toBe(1)
  expect(thread.pendingCalls).toBe(0)
})

test('an abort reaches the handler, and the call ends when the handler does', async () => {
  const stop = new AbortController()
  const aborted = start().call('untilAborted', undefined, { signal: stop.signal, onProgress: () => stop.abort() })
  await expect(aborted).rejects.toMatchObject({ code: 'GONE' })
})

for (const way of ['die', 'exit'] as const) {
  test(`a thread that ends (${way}) fails only its own calls, not those of its successor`, async () => {
    const thread = start()
    const before = await thread.call('which', undefined)
    const failed = thread.call(way, undefined)
    const pending = thread.call('untilAborted', undefined)
    await expect(failed).rejects.toThrow(Error)
    // the dead thread's `exit` is still to come when this call goes to the next one.
    const answers = Promise.all(Array.from({ length: 5 }, () => thread.call('which', undefined)))
    await expect(pending).rejects.toThrow(Error)
    const after = await answers
    expect(new Set(after).size).toBe(1)
    expect(after[0]).not.toBe(before)
  })
}

test('a closed thread refuses calls, and rejects pending ones', async () => {
  const thread = start({
    errors: { encode: String, decode: (text: string) => new Error(text), closed: () => new RangeError('shut') }
  })
  const pending = thread.call('untilAborted', undefined)
  pending.catch(() => undefined)
  await thread.close()
  await expect(pending).rejects.toBeInstanceOf(RangeError)
  await expect(thread.call('echo', 1)).rejects.toBeInstanceOf(RangeError)
})

test('an idle thread is ended, and the next call starts it again', async () => {
  const thread = start()
  const before = await thread.call('which', undefined)
  thread.rest()
  expect(await thread.call('which', undefined)).not.toBe(before)
})

test('a pool uses all its threads, queues the rest in order, and drops abandoned calls', async () => {
  const pool = new WorkerPool<EchoCalls>({ url, threads: 2, depth: 1 })
  open.push(pool)
  const stop = new AbortController()
  const held = Promise.allSettled([0, 1].map(() => pool.call('untilAborted', undefined, { signal: stop.signal })))
  const waiting = new AbortController()
  const given = pool.call('echo', 'never', { signal: waiting.signal })
  const last = pool.call('echo', 'last')
  waiting.abort(new RangeError('enough'))
  await expect(given).rejects.toBeInstanceOf(RangeError)
  stop.abort()
  expect((await held).map((each) => each.status === 'rejected' && each.reason.code)).toEqual(['GONE', 'GONE'])
  expect(await last).toBe('last')
  const born = await Promise.all(Array.from({ length: 8 }, () => pool.call('which', undefined)))
  expect(new Set(born).size).toBe(2)
})

test('a pool whose threads died continues with new ones', async () => {
  const pool = new WorkerPool<EchoCalls>({ url, threads: 1, depth: 2 })
  open.push(pool)
  const ended = Promise.allSettled([pool.call('die', undefined), pool.call('untilAborted', undefined)])
  const next = pool.call('echo', 'here')
  expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await next).toBe('here')
})

test('a thread inherits the options that its code needs, and nothing else of the process', async () => {
  const given = ['--conditions=x', '-C', 'y', '-e', 'code', '--input-type=module', '--no-warnings', '--expose-gc']
  const more = ['--max-old-space-size=512', '--trace-gc', '--disable-warning', 'ExperimentalWarning', '--title=svcd']
  const kept = ['--conditions=x', '-C', 'y', '--no-warnings', '--disable-warning', 'ExperimentalWarning']
  expect(inheritedArguments([...given, ...more])).toEqual(kept)
  const all = [
    ...kept,
    '--enable-source-maps',
    '--trace-warnings',
    '--throw-deprecation',
    '--no-experimental-require-module'
  ]
  const worker = new Worker('', { eval: true, execArgv: inheritedArguments(all) })
  await once(worker, 'exit')
})

test.runIf(process.platform === 'linux')('a low-priority thread lowers only its own priority', async () => {
  const [ours, own] = [getPriority(0), getPriority(process.pid)]
  const [thread, other] = [start(), start()]
  expect(await thread.call('lower', 0)).toBe(ours)
  expect(await thread.call('lower', 19)).toBe(19)
  expect(await thread.call('lower', 1_000)).toBe(19)
  expect(await other.call('lower', 0)).toBe(ours)
  expect([getPriority(0), getPriority(process.pid)]).toEqual([ours, own])
})
