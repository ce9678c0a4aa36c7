import { expect, test } from 'vitest'
import { OriginGate } from '../../src/download/origin-gate.ts'

const MIB = 1_048_576

test('an origin is asked after a delay that differs by node', () => {
  const [early, late] = [0, 0.99].map((jitter) => new OriginGate({ nowMs: 0, jitter, pieceBytes: MIB }))
  const sparing = { scattered: true, unsharedOnly: true, rank: 0 }
  const all = { scattered: true, unsharedOnly: false, rank: 0 }
  expect([early!.allowance(0, true), late!.allowance(0, true)]).toEqual([undefined, undefined])
  expect([early!.allowance(500, true), late!.allowance(500, false)]).toEqual([all, undefined])
  expect([early!.allowance(2_000, false), late!.allowance(2_000, false)]).toEqual([sparing, sparing])
  // those of others in one's turn, one node's after the other's
  expect([0, 2_299, 2_300, 4_299, 4_300].map((now) => early!.rank(now))).toEqual([0, 0, 1, 1, 2])
  early!.took(4_300)
  expect([early!.rank(4_301), early!.rank(6_300)]).toEqual([0, 1])
  // where a piece takes long, others are given more time, but not for ever
  early!.brought(4_000)
  expect([early!.rank(16_299), early!.rank(16_300)]).toEqual([0, 1])
  early!.brought(100_000)
  expect([early!.rank(24_299), early!.rank(24_300)]).toEqual([0, 1])
  early!.brought(10)
  expect(early!.rank(6_300)).toBe(1)
  // nobody waits for more than a few
  expect([early!.rank(14_300), early!.rank(16_300)]).toEqual([5, Number.POSITIVE_INFINITY])
  expect(early!.allowance(20_000, false)).toEqual({ ...all, rank: Number.POSITIVE_INFINITY })
})

test('near peers that send nothing count as absent until they send again; larger pieces take longer', () => {
  const gate = new OriginGate({ nowMs: 0, jitter: 0, pieceBytes: MIB })
  expect([gate.isStarving(4_999), gate.isStarving(5_000)]).toEqual([false, true])
  gate.nearGave(6_000, MIB)
  expect([gate.isStarving(6_000), gate.isStarving(10_999), gate.isStarving(11_000)]).toEqual([false, false, true])
  gate.nearHasNothing(20_000)
  expect([gate.isStarving(24_999), gate.isStarving(25_000)]).toEqual([false, true])
  expect(new OriginGate({ nowMs: 0, jitter: 0, pieceBytes: 16 * MIB }).isStarving(19_000)).toBe(false)
})

test("an occasional block does not count as sending; an eighth of the far source's rate does", () => {
  const trickle = new OriginGate({ nowMs: 0, jitter: 0, pieceBytes: MIB })
  for (let second = 1; second < 60; second += 1) trickle.nearGave(second * 1_000, 16_384)
  expect(trickle.isStarving(60_000)).toBe(true)
  for (const [share, starving] of [
    [1 / 20, true],
    [1 / 6, false]
  ] as const) {
    const gate = new OriginGate({ nowMs: 0, jitter: 0, pieceBytes: MIB })
    // the far source gives 10 MiB a second
    gate.brought(100)
    for (let second = 1; second < 60; second += 1) gate.nearGave(second * 1_000, share * 10 * MIB)
    expect(gate.isStarving(59_500)).toBe(starving)
  }
})
