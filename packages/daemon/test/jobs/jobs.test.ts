import { CasError } from '@svc/cas'
import type { ErrorBody, Job } from '@svc/client/protocol'
import { type Clock, systemClock } from '@svc/internal-clock'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { describe, expect, it } from 'vitest'
import { toWireError } from '../../src/api/wire-error.ts'
import { LANE_WIDTHS } from '../../src/jobs/lanes.ts'
import { JobRegistry, type JobRegistryOptions, OPEN_LIMITS, UnwantedError } from '../../src/jobs/registry.ts'
import { KEPT_JOBS, MAX_KEPT_JOBS, MIN_KEPT_MS } from '../../src/jobs/retention.ts'
import { expectOpenCounted } from '../support/open-jobs.ts'

const registry = (
  limits: NonNullable<JobRegistryOptions['limits']> = OPEN_LIMITS,
  clock: Clock = systemClock
): JobRegistry => new JobRegistry((error): ErrorBody => toWireError(error).envelope.error, { limits, clock })
const find = (jobs: JobRegistry, id: string): Job | undefined => jobs.list().find((job) => job.id === id)
function gate(): { open: () => void; passed: Promise<void> } {
  let open = (): void => undefined
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { open, passed }
}
async function settle(jobs: JobRegistry): Promise<void> {
  while (jobs.openCount > 0) await new Promise((resolve) => setImmediate(resolve))
}

describe('jobs', () => {
  it('go from waiting through fetching to done, and snapshots never change', async () => {
    const jobs = registry()
    const held = gate()
    const first = jobs.start({ kind: 'verify', ref: 'all', target: 'all', filesTotal: 2 }, async ({ report }) => {
      report({ filesDone: 1, message: 'hm' })
      await held.passed
      return { verify: {} }
    })
    expect([first.state, first.filesDone]).toEqual(['waiting', 0])
    await new Promise((resolve) => setImmediate(resolve))
    const second = find(jobs, first.id)!
    expect([second.state, second.filesDone, second.message, first.state]).toEqual(['fetching', 1, 'hm', 'waiting'])
    held.open()
    await settle(jobs)
    const last = find(jobs, first.id)!
    expect(last).toMatchObject({ state: 'done', verify: {}, filesDone: 1 })
    expect(last.message).toBeUndefined()
    expect([Object.isFrozen(last), second.state, last.createdAt]).toEqual([true, 'fetching', first.createdAt])
    expectOpenCounted(jobs)
  })

  it('cannot change after they end', async () => {
    const jobs = registry()
    let late = (): void => undefined
    const { id } = jobs.start({ kind: 'verify', ref: 'all' }, async ({ report }) => {
      late = () => report({ filesDone: 99 })
      return {}
    })
    await settle(jobs)
    const before = find(jobs, id)
    late()
    expect(find(jobs, id)).toBe(before)
  })

  it("run in order, at most the lane's number at a time", async () => {
    const jobs = registry()
    const gates = Array.from({ length: 5 }, gate)
    const begun: number[] = []
    gates.forEach((each, i) =>
      jobs.start({ kind: 'import-local', ref: `a/${i}` }, async () => {
        begun.push(i)
        await each.passed
        return {}
      })
    )
    for (let done = 0; done < gates.length; done++) {
      await new Promise((resolve) => setImmediate(resolve))
      expect(begun).toEqual([0, 1, 2, 3, 4].slice(0, Math.min(5, done + LANE_WIDTHS['import-local'])))
      gates[done]!.open()
    }
    await settle(jobs)
    expect(jobs.list().map((job) => job.ref)).toEqual(['a/4', 'a/3', 'a/2', 'a/1', 'a/0'])
  })

  it('are kept: the newest thousand, and all that run', async () => {
    const clock = new VirtualClock()
    const jobs = registry(OPEN_LIMITS, clock)
    const held = gate()
    const running = jobs.start({ kind: 'ensure', ref: 'old' }, async () => (await held.passed, {}))
    const settleMany = (count: number, from: number): string[] =>
      Array.from({ length: count }, (_, i) => jobs.settled({ kind: 'ensure', ref: `r${from + i}` }, {}).id)
    const first = settleMany(50, 0)
    await clock.advance(MIN_KEPT_MS)
    const second = settleMany(KEPT_JOBS, 50)
    expect(jobs.list()).toHaveLength(KEPT_JOBS + 1)
    expect([find(jobs, first[49]!), find(jobs, second[0]!)?.ref, find(jobs, running.id)?.ref]).toEqual([
      undefined,
      'r50',
      'old'
    ])
    held.open()
    await settle(jobs)
    expectOpenCounted(jobs)
  })

  it('are kept for a while after a late end, and at most ten thousand in total', async () => {
    const clock = new VirtualClock()
    const jobs = registry(OPEN_LIMITS, clock)
    const held = gate()
    const long = jobs.start({ kind: 'ensure', ref: 'long' }, async () => (await held.passed, {}))
    for (let i = 0; i < KEPT_JOBS + 500; i++) jobs.settled({ kind: 'ensure', ref: 'short' }, {})
    await clock.advance(MIN_KEPT_MS)
    held.open()
    await settle(jobs)
    expect(find(jobs, long.id)?.state).toBe('done')
    for (let i = 0; i < KEPT_JOBS + 500; i++) jobs.settled({ kind: 'ensure', ref: 'short' }, {})
    await clock.advance(MIN_KEPT_MS - 1)
    jobs.settled({ kind: 'ensure', ref: 'short' }, {})
    expect(find(jobs, long.id)?.state).toBe('done')
    await clock.advance(1)
    jobs.settled({ kind: 'ensure', ref: 'short' }, {})
    expect(find(jobs, long.id)).toBeUndefined()
    for (let i = 0; i < MAX_KEPT_JOBS + 10; i++) jobs.settled({ kind: 'ensure', ref: 'short' }, {})
    expect(jobs.list()).toHaveLength(MAX_KEPT_JOBS)
    expectOpenCounted(jobs)
  })

  it('are found by their artifact while they run, even if it becomes known late', async () => {
    const jobs = registry()
    const [held, told] = [gate(), gate()]
    const idsOf = (manifest: string) => jobs.openOf(manifest).map(({ id }) => id)
    const early = jobs.start({ kind: 'ensure', ref: 'a', manifest: 'x' }, () => held.passed.then(() => ({})))
    const late = jobs.start({ kind: 'import-bt', ref: 'b' }, async ({ report }) => {
      await told.passed
      for (const manifest of ['y', 'x'] as const) report({ manifest })
      await held.passed
      return { manifest: 'z' as never }
    })
    expect(idsOf('x')).toEqual([early.id])
    told.open()
    while (find(jobs, late.id)?.manifest !== 'x') await new Promise((resolve) => setImmediate(resolve))
    expect([idsOf('x'), idsOf('y')]).toEqual([[early.id, late.id], []])
    jobs.settled({ kind: 'ensure', ref: 'c', manifest: 'x' }, {})
    held.open()
    await settle(jobs)
    expect([idsOf('x'), idsOf('y'), idsOf('z')]).toEqual([[], [], []])
  })

  it('record whether their owner cancelled them', async () => {
    const jobs = registry()
    const reasons: unknown[] = []
    const start = () =>
      jobs.start(
        { kind: 'import-bt', ref: 'a' },
        ({ signal }) => {
          const { promise, reject } = Promise.withResolvers<never>()
          signal.addEventListener('abort', () => reject(signal.reason))
          return promise
        },
        async (aborted) => void reasons.push(aborted)
      )
    await jobs.cancel(start().id)
    const { error } = await jobs.giveUp(start().id, 'took too long')
    start()
    await jobs.stop()
    expect(reasons.map((reason) => reason instanceof UnwantedError)).toEqual([true, false, false])
    expect(error?.code).toBe('E_ABORTED')
  })

  it('can be cancelled while running or waiting; finished ones stay as they are', async () => {
    const jobs = registry()
    let cleaned = 0
    const begin = (): { readonly id: string } =>
      jobs.start(
        { kind: 'verify', ref: 'all' },
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(Object.assign(new Error('x'), { name: 'AbortError' })))
          ),
        async () => void cleaned++
      )
    const [running, waiting, spared] = [begin(), begin(), begin()]
    await new Promise((resolve) => setImmediate(resolve))
    const over = jobs.settled({ kind: 'ensure', ref: 'r' }, {})
    expect((await jobs.cancel(waiting.id)).error?.code).toBe('E_ABORTED')
    expect(await jobs.cancel(running.id)).toMatchObject({ state: 'failed', error: { code: 'E_ABORTED' } })
    expect(await jobs.cancel(over.id)).toBe(over)
    await expect(jobs.cancel('abc')).rejects.toMatchObject({ code: 'E_NOT_FOUND' })
    await new Promise((resolve) => setImmediate(resolve))
    expect([find(jobs, spared.id)?.state, cleaned]).toEqual(['fetching', 2])
    await jobs.stop()
    expectOpenCounted(jobs)
  })

  it('are accepted up to limits of jobs and of listed files; finished ones make room', async () => {
    // docs/budgets.md
    expect(OPEN_LIMITS).toEqual({ jobs: 10_000, files: 300_000 })
    const refused = expect.objectContaining({ code: 'E_RATE_LIMITED', status: 503 })
    const held = gate()
    const wait = async (): Promise<object> => (await held.passed, {})
    const many = registry({ jobs: 20, files: 100 })
    for (let i = 0; i < 20; i++) many.start({ kind: 'verify', ref: 'all' }, wait)
    expect(() => many.start({ kind: 'verify', ref: 'all' }, wait)).toThrowError(refused)
    expect(many.settled({ kind: 'ensure', ref: 'r' }, {}).state).toBe('done')
    const large = registry({ jobs: 20, files: 100 })
    // a single job is accepted whatever it lists
    large.start({ kind: 'import-local', ref: 'a/b', filesTotal: 101 }, wait)
    expect(() => large.start({ kind: 'import-local', ref: 'a/b', filesTotal: 1 }, wait)).toThrowError(refused)
    held.open()
    await Promise.all([settle(many), settle(large)])
    expect(large.start({ kind: 'import-local', ref: 'a/b', filesTotal: 1 }, wait).state).toBe('waiting')
    await settle(large)
    expectOpenCounted(many)
  })

  it('end with E_ABORTED when the daemon stops; later ones are refused', async () => {
    const jobs = registry()
    let cleaned = 0
    const started = Array.from({ length: 4 }, () =>
      jobs.start(
        { kind: 'verify', ref: 'all' },
        ({ signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(Object.assign(new Error('x'), { code: 'E_ABORTED' })))
          ),
        async () => void cleaned++
      )
    )
    await new Promise((resolve) => setImmediate(resolve))
    await jobs.stop()
    expect(started.map(({ id }) => [find(jobs, id)!.state, find(jobs, id)!.error!.code])).toEqual(
      started.map(() => ['failed', 'E_ABORTED'])
    )
    expect(cleaned).toBe(4)
    expect(() => jobs.start({ kind: 'verify', ref: 'all' }, async () => ({}))).toThrowError(
      expect.objectContaining({ code: 'E_SHUTTING_DOWN' })
    )
  })

  it('keep their findings when they fail', async () => {
    const jobs = registry()
    const { id } = jobs.start({ kind: 'verify', ref: 'all' }, async () => ({
      verify: { missing: [] },
      error: { code: 'E_VERIFY_FAILED', message: 'x' }
    }))
    await settle(jobs)
    expect(find(jobs, id)).toMatchObject({
      state: 'failed',
      verify: { missing: [] },
      error: { code: 'E_VERIFY_FAILED' }
    })
  })
})

describe('errors on the wire', () => {
  it('hide the details of unexpected errors', () => {
    const { status, envelope: told, hidden } = toWireError(new Error('token hf_secret at /srv/x'))
    expect([status, told.error.code, hidden, JSON.stringify(told).includes('secret')]).toEqual([
      500,
      'E_INTERNAL',
      true,
      false
    ])
    for (const odd of [undefined, null, 'text', 7, {}]) expect(toWireError(odd).envelope.error.code).toBe('E_INTERNAL')
    expect(toWireError(Object.assign(new Error(), { code: 'ENOSPC' })).envelope.error.code).toBe('E_NO_SPACE')
  })

  it('report the disk error that ended a thread, but never its path', () => {
    const ended = (code: string): string => {
      const disk = Object.assign(new Error(`${code}, open '/srv/x'`), { code, syscall: 'open' })
      const { code: told, message } = toWireError(new CasError('E_THREAD', 'a thread ended', {}, disk)).envelope.error
      expect(message).not.toContain('/srv/x')
      return `${told} ${/\((E[A-Z]+)\)/.exec(message)?.[1]}`
    }
    expect(ended('EMFILE')).toBe('E_INTERNAL EMFILE')
    expect(ended('ENOSPC')).toBe('E_NO_SPACE ENOSPC')
    const loop = new Error('in a circle')
    loop.cause = loop
    expect(toWireError(loop).envelope.error.code).toBe('E_INTERNAL')
  })
})
