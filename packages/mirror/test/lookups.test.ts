import { describe, expect, it } from 'vitest'
import { DaemonError } from '../../daemon/src/errors.ts'
import { LibraryError } from '../../internal/state/src/library-error.ts'
import type { UpstreamFile, UpstreamRepo } from '../../internal/state/src/upstream-repo.ts'
import { DayBudget } from '../src/day-budget.ts'
import { HostQueue } from '../src/host-queue.ts'
import { Lookups } from '../src/lookups.ts'
import { later, NotNowError } from '../src/upstream.ts'

const COMMIT = 'a'.repeat(40)
const leftOut = { reasons: new Map(), more: 0 }
const found: UpstreamRepo = { repo: 'Acme/Model', commit: COMMIT, files: new Map(), leftOut }

/** Lookups at a hub that the test answers for, with a clock that it moves. */
function world(answer: (repo: string) => Promise<UpstreamRepo>) {
  const clock = { nowMs: 1 }
  const asked: string[] = []
  const look = (repo: string, revision: string | undefined) => {
    asked.push(`${repo} ${revision ?? ''}`)
    return answer(repo)
  }
  const nowMs = (): number => clock.nowMs
  const queue = new HostQueue({ atOnce: 2, maxWaiting: 32 }, nowMs, () => later('others are first', 5))
  const all = new Lookups({
    upstream: { look },
    day: new DayBudget(1, nowMs),
    queue,
    nowMs,
    log: { info: () => undefined }
  })
  const lookups = {
    look: (repo: string, revision: string | undefined, host = '192.0.2.1') =>
      all.look({ repo, revision, isNamedOnly: false }, host)
  }
  return { clock, asked, lookups }
}

const refuses =
  (code: 'E_UNKNOWN_REF' | 'E_SOURCE_FORBIDDEN' | 'E_SOURCE_UNAVAILABLE' | 'E_RATE_LIMITED' | 'E_BAD_LISTING') =>
  async () => {
    throw code === 'E_BAD_LISTING' ? new LibraryError(code, 'no') : new DaemonError(code, 'no')
  }

describe('lookups', () => {
  it('ask once for all waiting clients, and cache a branch and a commit for a minute: either may become private', async () => {
    const { lookups, asked, clock } = world(async () => found)
    expect(await Promise.all([1, 2, 3].map(() => lookups.look('acme/model', undefined)))).toEqual([found, found, found])
    expect(await lookups.look('Acme/Model', COMMIT)).toBe(found)
    expect(asked).toEqual(['acme/model '])
    clock.nowMs = 59_000
    await lookups.look('acme/model', COMMIT)
    expect(asked).toEqual(['acme/model '])
    clock.nowMs = 61_000
    await lookups.look('acme/model', COMMIT)
    await lookups.look('acme/model', undefined)
    expect(asked).toEqual(['acme/model ', `acme/model ${COMMIT}`, 'acme/model '])
  })

  it.each(['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_BAD_LISTING'] as const)(
    'remember %s for a minute',
    async (code) => {
      const { lookups, asked, clock } = world(refuses(code))
      for (let i = 0; i < 3; i++) expect(await lookups.look('acme/model', undefined)).toBeUndefined()
      expect(asked.length).toBe(1)
      clock.nowMs = 61_000
      await lookups.look('acme/model', undefined)
      expect(asked.length).toBe(2)
    }
  )

  it('remember for a few seconds that a hub does not answer', async () => {
    const { lookups, asked, clock } = world(refuses('E_SOURCE_UNAVAILABLE'))
    const look = () => lookups.look('acme/model', undefined)
    await expect(look()).rejects.toMatchObject({ status: 503, retryAfterSeconds: 10 })
    await expect(look()).rejects.toBeInstanceOf(NotNowError)
    expect(asked.length).toBe(1)
    clock.nowMs = 16_000
    await expect(look()).rejects.toBeInstanceOf(NotNowError)
    expect(asked.length).toBe(2)
  })

  it('pass on a rate limit', async () => {
    const { lookups } = world(refuses('E_RATE_LIMITED'))
    await expect(lookups.look('acme/model', undefined)).rejects.toMatchObject({ status: 429, retryAfterSeconds: 30 })
  })

  it('respect the limits of their queue, and refuse the others', async () => {
    let goOn = (): void => undefined
    const gate = new Promise<void>((resolve) => (goOn = resolve))
    const { lookups, asked } = world(async (repo) => {
      await gate
      return { ...found, repo }
    })
    const all = Array.from({ length: 72 }, (_, i) => lookups.look(`acme/m${i}`, undefined))
    const outcomes = Promise.allSettled(all)
    await expect(all[71]).rejects.toMatchObject({ status: 429 })
    expect(asked.length).toBe(2)
    goOn()
    const refused = (await outcomes).filter(({ status }) => status === 'rejected')
    expect([refused.length, asked.length]).toEqual([38, 34])
  })

  it('of a host with all places give one up for another host, the oldest first', async () => {
    const goOn = Promise.withResolvers<void>()
    const { lookups, asked } = world(async (repo) => {
      await goOn.promise
      return { ...found, repo }
    })
    const all = Array.from({ length: 34 }, (_, i) => lookups.look(`acme/m${i}`, undefined))
    const outcomes = Promise.allSettled(all)
    const other = lookups.look('other/model', undefined, '192.0.2.2')
    await expect(all[2]).rejects.toMatchObject({ status: 429, retryAfterSeconds: 5 })
    await expect(lookups.look('acme/m37', undefined)).rejects.toMatchObject({ status: 429 })
    goOn.resolve()
    expect(await other).toMatchObject({ repo: 'other/model' })
    expect((await outcomes).flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([2])
    expect(asked).toHaveLength(34)
  })

  it('keep some MiB of names, and 1,000 absences', async () => {
    const names = (repo: string) => Array.from({ length: 2_000 }, (_, i) => `${repo}/${'x'.repeat(900)}${i}.gguf`)
    const { lookups, asked } = world(async (repo) => {
      if (repo.includes('absent')) throw new DaemonError('E_UNKNOWN_REF', 'no')
      const files = new Map(names(repo).map((name) => [name, { name } as UpstreamFile]))
      return { repo, commit: repo.slice(-2).padStart(40, '0'), files, leftOut }
    })
    for (let i = 10; i < 20; i++) await lookups.look(`acme/m${i}`, undefined)
    expect(asked.length).toBe(10)
    await lookups.look('acme/m19', undefined)
    expect(asked.length).toBe(10)
    await lookups.look('acme/m10', undefined)
    expect(asked.length).toBe(11)
    for (let i = 0; i < 1001; i++) await lookups.look(`acme/absent${i}`, undefined)
    await lookups.look('acme/absent1000', undefined)
    await lookups.look('acme/absent0', undefined)
    expect(asked.length).toBe(11 + 1002)
  })
})

describe('the budget of a day', () => {
  it('is spent, and comes back after 24 hours', () => {
    const clock = { nowMs: 0 }
    const budget = new DayBudget(100, () => clock.nowMs)
    const spent = (bytes: number): boolean => budget.trySpend(bytes) !== undefined
    expect(spent(60)).toBe(true)
    clock.nowMs = 12 * 3_600_000
    expect([spent(41), spent(40), budget.spentBytes()]).toEqual([false, true, 100])
    clock.nowMs = 24 * 3_600_000 + 60_000
    expect([budget.spentBytes(), spent(61), spent(60)]).toEqual([40, false, true])
  })

  it('gets unused bytes back, once, and not on another day', () => {
    const clock = { nowMs: 0 }
    const budget = new DayBudget(100, () => clock.nowMs)
    const spending = budget.trySpend(60)!
    spending.giveBack(20)
    expect(budget.spentBytes()).toBe(40)
    clock.nowMs = 3_600_000
    budget.trySpend(30)
    spending.giveBack(Infinity)
    spending.giveBack(Infinity)
    expect(budget.spentBytes()).toBe(30)
    const late = budget.trySpend(50)!
    clock.nowMs += 24 * 3_600_000 + 60_000
    budget.trySpend(10)
    late.giveBack(50)
    expect(budget.spentBytes()).toBe(10)
  })
})
