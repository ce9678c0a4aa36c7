import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type EvictionCandidate, keptFact, planEviction } from '../src/eviction.ts'

const digest = (kind: string, number: number): Sha256Digest =>
  digestFromBytes(Buffer.from(`${kind}${number}`.padStart(32, '.')))
const LIMITS = { nowMs: 1_000, proofMs: 100 }

const candidates = fc
  .array(
    fc.record({
      blobs: fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { minLength: 0, maxLength: 4 }),
      usedMs: fc.integer({ min: 0, max: 20 }),
      kept: fc.option(fc.constantFrom('pinned', 'viewed', 'in-use'), { nil: undefined, freq: 2 }),
      provenMs: fc.option(fc.integer({ min: 850, max: 1_010 }), { nil: undefined })
    }),
    { maxLength: 8 }
  )
  .map((list) =>
    list.map(
      ({ blobs, ...rest }, i): EvictionCandidate => ({
        ...rest,
        manifest: digest('manifest', i),
        blobs: blobs.map((number) => ({ digest: digest('blob', number), sizeBytes: number * 10 + 1 }))
      })
    )
  )

/** Bytes of what nothing needs once these are evicted, counted from scratch. */
function bytesWithout(all: readonly EvictionCandidate[], evicted: ReadonlySet<Sha256Digest>): number {
  const stays = new Set(
    all.filter(({ manifest }) => !evicted.has(manifest)).flatMap(({ blobs }) => blobs.map((blob) => blob.digest))
  )
  const here = new Map(all.flatMap(({ blobs }) => blobs.map((blob) => [blob.digest, blob.sizeBytes] as const)))
  return [...here].reduce((sum, [each, sizeBytes]) => sum + (stays.has(each) ? 0 : sizeBytes), 0)
}

test('a plan has only evictable models, frees the bytes that it states, and enough if possible', () => {
  fc.assert(
    fc.property(candidates, fc.integer({ min: 0, max: 300 }), (all, wantedBytes) => {
      const { evicted, freedBytes } = planEviction(all, wantedBytes, LIMITS)
      const going = new Set(evicted)
      for (const each of all) if (going.has(each.manifest)) expect(keptFact(each, LIMITS)).toBeUndefined()
      expect(freedBytes).toBe(bytesWithout(all, going))
      const mayGo = new Set(all.filter((each) => keptFact(each, LIMITS) === undefined).map(({ manifest }) => manifest))
      expect(freedBytes).toBeGreaterThanOrEqual(Math.min(wantedBytes, bytesWithout(all, mayGo)))
      expect(wantedBytes > 0 || evicted.length === 0).toBe(true)
    })
  )
})

test('the least recently used goes first', () => {
  const all = [30, 10, 20].map(
    (usedMs, i): EvictionCandidate => ({
      manifest: digest('manifest', i),
      blobs: [{ digest: digest('blob', i), sizeBytes: 100 }],
      usedMs,
      provenMs: 990
    })
  )
  expect(planEviction(all, 150, LIMITS)).toEqual({ evicted: [all[1]!.manifest, all[2]!.manifest], freedBytes: 200 })
})

test('a proof that is too old or from the future does not count', () => {
  const factAt = (provenMs: number | undefined): string | undefined => keptFact({ kept: undefined, provenMs }, LIMITS)
  expect([undefined, 899, 1_001].map(factAt)).toEqual(['unproven', 'unproven', 'unproven'])
  expect([900, 1_000].map(factAt)).toEqual([undefined, undefined])
})
