import { expect } from 'vitest'
import { Verifier } from '../../src/download/verifier.ts'
import { makeTorrent } from '../torrent-fixture.ts'
import { runSchedule } from './poisoned-schedule.ts'

/** Runs this many schedules, the first with this seed. Each gives a right file, and bans exactly the peers that lied. */
export async function expectOnlyLiarsBanned(firstSeed: number, count: number): Promise<{ readonly culprits: number }> {
  const fixture = await makeTorrent({ a: 5 * 65_536 }, 65_536)
  const verifier = new Verifier(1)
  let culprits = 0
  try {
    const right = fixture.files.get('a')!
    for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
      const outcome = await runSchedule(fixture, verifier, seed)
      const label = `schedule ${seed}`
      expect([...outcome.banned].sort(), label).toEqual([...outcome.culprits].sort())
      expect(
        [...outcome.banned].filter((name) => name.startsWith('honest')),
        label
      ).toEqual([])
      expect(Buffer.compare(outcome.bytes, right), label).toBe(0)
      culprits += outcome.culprits.size
    }
  } finally {
    await verifier.close()
    await fixture.remove()
  }
  return { culprits }
}
