import { expect, test } from 'vitest'
import { type Course, coursesOf, endedSince, isStalled, mergeJobs, rateOf, ratesOf } from '../src/store.ts'
import { job, status } from './world.ts'

const LOOK_MS = 2000

/** Looks at a job, one after the other. */
function look(times: number, of: (at: number) => Parameters<typeof job>[0]): ReadonlyMap<string, Course> {
  let courses: ReadonlyMap<string, Course> = new Map()
  for (let at = 0; at < times; at++) courses = coursesOf([job(of(at))], courses, at * LOOK_MS)
  return courses
}

test('a job without new bytes is stalled until the next byte', () => {
  const still = { bytesDone: 5, bytesTotal: 10, rateBytesPerSecond: 3 }
  const courses = look(10, () => still)
  expect(isStalled(job(still), courses.get('01'))).toBe(true)
  expect(courses.get('01')!.rates.at(-1)).toBe(0)
  const moved = { ...still, bytesDone: 6 }
  expect(isStalled(job(moved), coursesOf([job(moved)], courses, 10 * LOOK_MS).get('01'))).toBe(false)
})

test("a job's rate is measured over several samples if the job does not report it", () => {
  const grown = (at: number) => ({ bytesDone: 1000 * at })
  const courses = look(4, grown)
  expect(courses.get('01')!.rates).toEqual([500, 500, 500])
  expect(rateOf(job(grown(3)), courses.get('01'))).toBe(500)
  expect(rateOf(job({ ...grown(3), rateBytesPerSecond: 7 }), courses.get('01'))).toBe(7)
})

test('a waiting job, or one of unknown size, is not stalled', () => {
  for (const more of [{ state: 'waiting', bytesTotal: 10 }, { state: 'fetching' }] as const)
    expect(isStalled(job(more), look(50, () => more).get('01'))).toBe(false)
})

test('rates over time are bounded', () => {
  const courses = look(500, (at) => ({ bytesDone: at, rateBytesPerSecond: at }))
  expect(courses.get('01')!.rates).toHaveLength(90)
  expect(courses.get('01')!.rates.at(-1)).toBe(499)
})

test('the progress of a removed job is forgotten', () => {
  expect(
    coursesOf(
      [],
      look(2, () => ({})),
      0
    ).size
  ).toBe(0)
})

test('changed jobs are updated, newest first, and removed jobs disappear', () => {
  const [first, second] = [job({ id: '1', createdAt: '2026-01-01' }), job({ id: '2', createdAt: '2026-01-02' })]
  const both = mergeJobs([first], [second], [])
  expect(both.map(({ id }) => id)).toEqual(['2', '1'])
  expect(mergeJobs(both, [{ ...first, state: 'done' }], ['2'])).toEqual([{ ...first, state: 'done' }])
})

test('a job that began and ended between two looks is told, but not what ended before the page came', () => {
  const quick = job({ id: '3', state: 'failed', finishedAt: '2026-01-03' })
  expect(endedSince([], [quick], true)).toEqual([quick])
  expect(endedSince([], [quick], false)).toEqual([])
  expect(endedSince([quick], [quick], true)).toEqual([])
  const running = job({ id: '3', state: 'fetching' })
  expect(endedSince([running], [quick], false)).toEqual([quick])
  expect(endedSince([], [{ ...quick, dryRun: true }, running], true)).toEqual([])
})

test('a download of the swarm that has no new piece, but a rate, is not stalled', () => {
  const slow = { kind: 'import-bt', bytesDone: 0, bytesTotal: 10, rateBytesPerSecond: 500_000, peers: 1 } as const
  const courses = look(20, () => slow)
  expect(isStalled(job(slow), courses.get('01'))).toBe(false)
  expect(courses.get('01')!.rates.at(-1)).toBe(500_000)
})

test('the rates of the machine are those of peers, and of jobs that fetch from elsewhere', () => {
  const now = { ...status({ downBytesPerSecond: 7, upBytesPerSecond: 3 }) }
  const hub = { bytesDone: 4000, bytesTotal: 9000 }
  const courses = look(4, (at) => ({ ...hub, bytesDone: at * 1000 }))
  expect(ratesOf(now, [job(hub)], courses)).toEqual({ down: 507, up: 3 })
  // counted with the peers already, or nothing that comes over the network
  for (const more of [{ kind: 'import-bt', peers: 1 }, { kind: 'import-local' }, { state: 'done' }] as const)
    expect(ratesOf(now, [job({ ...hub, ...more })], courses)).toEqual({ down: 7, up: 3 })
})
