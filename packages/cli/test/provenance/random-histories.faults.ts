// 100,000 steps of random histories, in two processes at a time. What fails names its seed: `main.ts FOLDER STEPS SEED` runs it
// alone, and says with SVC_PROVENANCE_TRACE what each step was about.
import { expect, test } from 'vitest'
import { histories } from './processes.ts'

const STEPS = Number(process.env.SVC_PROVENANCE_STEPS ?? 100_000)
const STEPS_EACH = 2_500
const FIRST_SEED = Number(process.env.SVC_PROVENANCE_SEED ?? 100)
/** Those that strangers ask for digests that nobody may know of. */
const ASKED = ['webseed', 'swarm', 'hub mirror', 'OCI mirror', 'S3 mirror']
const DOORS = ['webseed', 'swarm', 'hub mirror', 'OCI mirror', 'S3 mirror', 'v1 swarm', 'export', 'push', 'publish']

test('100,000 random steps: nothing that is withheld leaves by any door', { timeout: 4 * 60 * 60_000 }, async () => {
  const seeds = Array.from({ length: Math.ceil(STEPS / STEPS_EACH) }, (_, i) => FIRST_SEED + i)
  const halves = [0, 1].map((half) => seeds.filter((_, i) => i % 2 === half))
  const outcomes = (await Promise.all(halves.map((half) => histories({ seeds: half, steps: STEPS_EACH })))).flat()
  expect(outcomes.filter(({ leak }) => leak !== undefined)).toEqual([])
  expect(outcomes.reduce((sum, { steps }) => sum + steps, 0)).toBe(seeds.length * STEPS_EACH)
  const all = (counts: 'given' | 'refused', door: string): number =>
    outcomes.reduce((sum, outcome) => sum + (outcome[counts][door] ?? 0), 0)
  for (const door of DOORS) expect(all('given', door), door).toBeGreaterThan(seeds.length)
  for (const door of ASKED) expect(all('refused', door), door).toBeGreaterThan(100 * seeds.length)
})
