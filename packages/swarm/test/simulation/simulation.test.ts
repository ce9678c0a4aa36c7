import { expect, test } from 'vitest'
import { type SimulationOptions, simulate } from './simulation.ts'

// 96 pieces of 1 MiB over links of 4 MB/s: F/C is 25 s of virtual time
const SMALL = { fileBytes: 96 * 1_048_576, pieces: 96, bytesPerSecond: 4e6, dials: 40 }
const UNIT = SMALL.fileBytes / SMALL.bytesPerSecond

function run(options: Partial<SimulationOptions> & Pick<SimulationOptions, 'receivers'>) {
  const { seconds, ...others } = simulate({ ...SMALL, ...options })
  const slowest = Math.max(...seconds) / UNIT
  return { ...others, slowest, count: seconds.length }
}

test('a flash crowd completes within 1.5 F/C, and the first seed uploads few pieces twice', () => {
  for (const receivers of [1, 4, 8, 16]) {
    const { slowest, origin, count } = run({ receivers })
    expect(count).toBe(receivers)
    expect(slowest).toBeGreaterThanOrEqual(1)
    expect(slowest).toBeLessThan(1.5)
    expect(origin).toBeLessThan(1.5)
  }
})

test('when nodes arrive one after another, the first seed or bucket uploads little more than one copy', () => {
  for (const bucket of [undefined, 4e7]) {
    const { slowest, origin } = run({ receivers: 8, staggerMs: UNIT * 500, ...(bucket && { bucket }) })
    expect(origin).toBeLessThan(1.1)
    expect(slowest).toBeLessThan(1.5)
  }
})

test('a flash crowd fetches each piece from a bucket about once', () => {
  const { slowest, origin } = run({ receivers: 16, bucket: 4e7 })
  expect(origin).toBeLessThan(1.5)
  expect(slowest).toBeLessThan(1.5)
})

test('few pieces cross between zones twice', () => {
  for (const receivers of [8, 16]) {
    const { slowest, crossing } = run({ receivers, zones: 2 })
    expect(crossing[0]).toBeLessThan(1.2)
    expect(slowest).toBeLessThan(1.6)
  }
})

test('the same random seed gives the same rollout', () => {
  expect(simulate({ ...SMALL, receivers: 8, seed: 7 })).toEqual(simulate({ ...SMALL, receivers: 8, seed: 7 }))
})
