import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { toWireError } from '../../daemon/src/api/wire-error.ts'
import { DaemonError } from '../../daemon/src/errors.ts'
import { JobRegistry } from '../../daemon/src/jobs/registry.ts'
import { DayBudget } from '../src/day-budget.ts'
import { DemandJobs } from '../src/demand-jobs.ts'
import type { RunningFetch } from '../src/upstream.ts'

const MANIFEST = `sha256:${'a'.repeat(64)}`

/** Jobs that the test ends, with a clock that it moves. */
function world({ isVerifiedLate = false, timeoutMs = 60_000 } = {}) {
  const clock = new VirtualClock()
  // the cache takes a time of 0 for none
  clock.after(1, () => undefined)
  clock.step()
  const jobs = new JobRegistry((error) => toWireError(error).envelope.error)
  const log: object[] = []
  const day = new DayBudget(100, () => clock.monotonic())
  const demand = new DemandJobs({ jobs, day, clock, timeoutMs, log: { info: (facts: object) => void log.push(facts) } })
  const way = { source: 'it', isVerifiedLate }
  const started: { readonly job: RunningFetch; readonly end: (error?: Error) => void }[] = []
  const start = async (): Promise<RunningFetch> => {
    const { promise, resolve, reject } = Promise.withResolvers<object>()
    const job = jobs.start({ kind: 'ensure', ref: 'x', manifest: MANIFEST }, async ({ signal }) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      return promise
    })
    started.push({ job, end: (error) => (error === undefined ? resolve({}) : reject(error)) })
    return job
  }
  const bring = async (key: string, missing: number[] = [60], host = '192.0.2.1') => {
    const { arrival, leave } = await demand.bring(
      { key, way, missingBytes: async () => missing.shift() ?? 60, start },
      host
    )
    return { over: arrival.over, leave }
  }
  return { clock, jobs, day, demand, way, started, bring, log }
}

const failed = (code: 'E_SOURCE_UNAVAILABLE' | 'E_NOT_IMPORTABLE'): Error => new DaemonError(code, 'for the owner')

test('a failure without a byte costs no budget, and is not retried at once', async () => {
  const { clock, day, started, bring, demand } = world()
  for (let tries = 1; tries <= 5; tries++) {
    const { over } = await bring('a')
    expect(day.spentBytes()).toBe(60)
    started.at(-1)!.end(failed('E_SOURCE_UNAVAILABLE'))
    expect((await over)?.message).toBe('for the owner')
    expect([day.spentBytes(), started.length, demand.count, demand.total]).toEqual([0, tries, 0, tries])
    await expect(bring('a')).rejects.toMatchObject({
      status: 503,
      retryAfterSeconds: 30,
      message: expect.not.stringContaining('owner')
    })
    await clock.advance(30_001)
  }
})

test('a failure in the middle costs the received bytes, and a retry only the rest', async () => {
  const { clock, day, started, bring } = world()
  const { over } = await bring('a', [60, 20])
  started[0]!.end(failed('E_SOURCE_UNAVAILABLE'))
  await over
  expect(day.spentBytes()).toBe(40)
  await clock.advance(30_001)
  const again = await bring('a', [20])
  started[1]!.end()
  expect(await again.over).toBeUndefined()
  expect(day.spentBytes()).toBe(60)
})

test('bytes that fail verification at the end cost their full price', async () => {
  const { day, started, bring } = world({ isVerifiedLate: true })
  const { over } = await bring('a', [60, 60])
  started[0]!.end(failed('E_NOT_IMPORTABLE'))
  await over
  expect(day.spentBytes()).toBe(60)
  await expect(bring('b')).rejects.toMatchObject({ status: 507 })
})

test('many concurrent clients cause one job; the limit is four jobs', async () => {
  const { day, started, bring, demand } = world()
  const all = await Promise.all(Array.from({ length: 20 }, () => bring('a', [10])))
  expect([started.length, day.spentBytes(), new Set(all.map(({ over }) => over)).size, demand.count]).toEqual([
    1, 10, 1, 1
  ])
  for (const key of ['b', 'c', 'd']) await bring(key, [10])
  await expect(bring('e', [10])).rejects.toMatchObject({ status: 429 })
  started[0]!.end()
  await all[0]!.over
  await bring('e', [10])
  expect(day.spentBytes()).toBe(50)
})

test('a job that cannot start costs no budget', async () => {
  const { day, demand, way, log } = world()
  const start = async (): Promise<RunningFetch> => {
    throw new DaemonError('E_RATE_LIMITED', 'for the owner')
  }
  const bringing = () => demand.bring({ key: 'a', way, missingBytes: async () => 60, start }, '192.0.2.1')
  for (let i = 0; i < 3; i++) await expect(bringing()).rejects.toMatchObject({ status: 429 })
  expect([day.spentBytes(), demand.count, demand.total]).toEqual([0, 0, 0])
  expect(log).toHaveLength(3)
  expect(log[0]).toMatchObject({ reason: 'for the owner' })
})

test('a job that takes too long ends, unless its owner waits for the same artifact', async () => {
  const { clock, jobs, started, bring } = world()
  const { over } = await bring('a')
  const own = jobs.start({ kind: 'ensure', ref: 'x', manifest: MANIFEST }, ({ signal }) => {
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason))
    return promise
  })
  await clock.advance(60_000)
  expect(jobs.require(started[0]!.job.id).error).toBeUndefined()
  await jobs.cancel(own.id)
  await clock.advance(60_000)
  expect((await over)?.message).toContain('too long')
  expect(jobs.openOf(MANIFEST)).toEqual([])
})

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a host with all places gives one up to another, without losing progress', async () => {
  const { started, bring, jobs, demand, day } = world()
  const own = await Promise.all(['a', 'b', 'c', 'd'].map((key) => bring(key, [10, 4])))
  const other = await bring('x', [10], '192.0.2.2')
  expect((await own[0]!.over)?.message).toContain('room')
  expect([demand.count, started.length, day.spentBytes()]).toEqual([4, 5, 46])
  // a job that made room has not failed: its client continues it when its host has a place
  await expect(bring('a', [4])).rejects.toMatchObject({ status: 429 })
  started[1]!.end()
  await own[1]!.over
  await bring('a', [4])
  // hosts with two each give up none
  started[0]!.end()
  const second = await bring('y', [1], '192.0.2.2')
  expect((await own[2]!.over)?.message).toContain('room')
  await expect(bring('e', [1])).rejects.toMatchObject({ status: 429 })
  for (const { end } of started) end()
  expect(await other.over).toBeUndefined()
  expect(await second.over).toBeUndefined()
  await settled()
  expect(jobs.openOf(MANIFEST)).toEqual([])
})

test('hosts that hold every place give one up to a host with fewer turns, and lose no progress', async () => {
  const { clock, started, bring } = world()
  const hosts = ['192.0.2.3', '192.0.2.4', '192.0.2.5', '192.0.2.6']
  const held = await Promise.all(hosts.map((host, i) => bring(`slow ${i}`, [10, 4], host)))
  await clock.advance(19_999)
  await expect(bring('x', [10], '192.0.2.2')).rejects.toMatchObject({ status: 429, retryAfterSeconds: 10 })
  await clock.advance(1)
  const other = await bring('x', [10], '192.0.2.2')
  expect((await held[0]!.over)?.message).toContain('room')
  // a host that has just had as much as the others gets nothing from them
  await expect(bring('slow 0', [4], hosts[0])).rejects.toMatchObject({ status: 429 })
  started.at(-1)!.end()
  expect(await other.over).toBeUndefined()
  const again = await bring('slow 0', [4], hosts[0])
  for (const { end } of started) end()
  expect(await again.over).toBeUndefined()
})

test('a job that several hosts wait for is not ended to make room', async () => {
  const { bring, started } = world()
  const first = await bring('a', [1])
  await bring('a', [1], '192.0.2.3')
  const rest = await Promise.all(['b', 'c', 'd'].map((key) => bring(key, [1])))
  await bring('x', [1], '192.0.2.2')
  expect((await rest[0]!.over)?.message).toContain('room')
  for (const { end } of started) end()
  expect(await first.over).toBeUndefined()
})

test('a job ends after a minute without clients, and resumes for one that returns', async () => {
  const { clock, bring, started, demand, jobs } = world({ timeoutMs: 3_600_000 })
  const [one, two] = await Promise.all([bring('a', [1]), bring('a', [1], '192.0.2.2')])
  one.leave()
  one.leave()
  await clock.advance(61_000)
  expect(jobs.require(started[0]!.job.id).error).toBeUndefined()
  two.leave()
  await clock.advance(59_000)
  const back = await bring('a', [1])
  await clock.advance(61_000)
  expect([jobs.require(started[0]!.job.id).error, started.length]).toEqual([undefined, 1])
  back.leave()
  await clock.advance(60_000)
  expect((await back.over)?.message).toContain('client')
  expect(demand.count).toBe(0)
  // not a failure that delays the next try
  await bring('a', [1])
  expect(started.length).toBe(2)
})
