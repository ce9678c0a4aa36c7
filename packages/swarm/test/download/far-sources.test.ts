import { expect, test } from 'vitest'
import { FarSources, nodeHash } from '../../src/download/far-sources.ts'

const MIB = 1_048_576
const NODES = Array.from({ length: 16 }, (_, n) => nodeHash(Uint8Array.from({ length: 20 }, (_, at) => n * 31 + at)))
/** When turns begin: no node takes a piece before. */
const READY = 300

/** The rules of one node, which sees the others. */
function viewOf(own: number): FarSources {
  const view = new FarSources(NODES[own]!, 0, 0, MIB)
  for (const [id, hash] of NODES.entries()) if (id !== own) view.joined(id, hash)
  return view
}

test('an origin is asked after a delay that differs by node', () => {
  const [early, late] = [0, 0.99].map((jitter) => new FarSources(0, 0, jitter, MIB)) as [FarSources, FarSources]
  const sparing = { scattered: true, sparing: expect.any(Function) }
  const all = { scattered: true, sparing: undefined }
  expect([early.allowance(0, true), late.allowance(0, true)]).toEqual([undefined, undefined])
  expect([early.allowance(500, true), late.allowance(500, false)]).toEqual([all, undefined])
  expect([early.allowance(2_000, false), late.allowance(2_000, false)]).toEqual([sparing, sparing])
  expect(early.allowance(20_000, false)).toEqual(all)
})

test('pieces that other nodes leave may be fetched turn by turn', () => {
  const view = viewOf(0)
  const pieces = Array.from({ length: 500 }, (_, piece) => piece)
  const own = pieces.filter(view.mine(0))
  const countAt = (now: number): number => pieces.filter(view.mine(now)).length
  const counts = [0, 2_299, 2_300, 4_299, 4_300].map(countAt)
  expect(counts.map((count) => count / own.length > 1)).toEqual([false, false, true, true, true])
  expect(counts[4]).toBeGreaterThan(counts[3]!)
  view.took(own[0]!, 4_300)
  const [first, second] = [counts[0]!, counts[2]!]
  expect([countAt(4_301), countAt(6_300)]).toEqual([first, second])
  // more of the same piece is a request as well
  view.took(own[0]!, 4_310, true)
  expect([countAt(6_309), countAt(6_310)]).toEqual([first, second])
  view.took(own[0]!, 4_300)
  // if a piece takes long, others are given more time, but not for ever
  view.brought(4_000)
  expect([countAt(16_299), countAt(16_300)]).toEqual([first, second])
  view.brought(100_000)
  expect([countAt(24_299), countAt(24_300)]).toEqual([first, second])
  view.brought(10)
  expect(countAt(6_300)).toBe(second)
  // no node waits for more than a few
  expect([countAt(14_300) < pieces.length, countAt(16_300)]).toEqual([true, pieces.length])
})

test('of nodes that see each other, exactly one is responsible for each piece, evenly distributed', () => {
  const views = NODES.map((_, own) => viewOf(own))
  const counts = new Map(views.map((view) => [view, 0]))
  for (let piece = 0; piece < 4_000; piece += 1) {
    const responsibleAfter = (turns: number): readonly FarSources[] =>
      views.filter((view) => view.mine(READY + 2_000 * turns)(piece))
    const responsible = responsibleAfter(0)
    expect(responsible).toHaveLength(1)
    if (piece < 100) expect([1, 2, 6].map((turns) => responsibleAfter(turns).length)).toEqual([2, 3, 16])
    counts.set(responsible[0]!, counts.get(responsible[0]!)! + 1)
  }
  for (const count of counts.values()) expect(count).toBeGreaterThan(150)
  expect(new FarSources(NODES[0]!, 0, 0, MIB).mine(0)(7)).toBe(true)
})

test('after three missed turns a node is not awaited until it delivers again', () => {
  const [own, other] = [viewOf(0), 1] as const
  for (const id of NODES.keys()) if (id > 1) own.gone(id)
  const isMine = (piece: number): boolean => own.mine(0)(piece)
  const theirs = Array.from({ length: 100 }, (_, piece) => piece).filter((piece) => !isMine(piece))
  for (const piece of theirs.slice(0, 3)) {
    expect(isMine(theirs[5]!)).toBe(false)
    own.took(piece, 0)
    // once for a piece, however many requests it takes
    own.took(piece, 0, true)
  }
  expect(theirs.every(isMine)).toBe(true)
  own.delivered(other)
  expect(theirs.some(isMine)).toBe(false)
  // this node's own pieces say nothing about others
  for (const piece of Array.from({ length: 100 }, (_, piece) => piece).filter(isMine)) own.took(piece, 0)
  expect(theirs.some(isMine)).toBe(false)
})

test('near peers that send nothing count as absent until they send again; larger pieces take longer', () => {
  const sources = new FarSources(0, 0, 0, MIB)
  expect([sources.isStarving(4_999), sources.isStarving(5_000)]).toEqual([false, true])
  sources.nearGave(6_000, MIB)
  expect([sources.isStarving(6_000), sources.isStarving(10_999), sources.isStarving(11_000)]).toEqual([
    false,
    false,
    true
  ])
  sources.nearHasNothing(20_000)
  expect([sources.isStarving(24_999), sources.isStarving(25_000)]).toEqual([false, true])
  expect(new FarSources(0, 0, 0, 16 * MIB).isStarving(19_000)).toBe(false)
})

test("an occasional block does not count as sending; an eighth of the far source's rate does", () => {
  const trickle = new FarSources(0, 0, 0, MIB)
  for (let second = 1; second < 60; second += 1) trickle.nearGave(second * 1_000, 16_384)
  expect(trickle.isStarving(60_000)).toBe(true)
  for (const [share, starving] of [
    [1 / 20, true],
    [1 / 6, false]
  ] as const) {
    const sources = new FarSources(0, 0, 0, MIB)
    // the far source gives 10 MiB a second
    sources.brought(100)
    for (let second = 1; second < 60; second += 1) sources.nearGave(second * 1_000, share * 10 * MIB)
    expect(sources.isStarving(59_500)).toBe(starving)
  }
})
