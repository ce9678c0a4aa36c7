import { expect, test } from 'vitest'
import { Neighbourhood, nodeHash } from '../../src/download/responsibility.ts'

const NODES = Array.from({ length: 16 }, (_, n) => nodeHash(Uint8Array.from({ length: 20 }, (_, at) => n * 31 + at)))

function viewOf(own: number): Neighbourhood {
  const view = new Neighbourhood(NODES[own]!)
  for (const [id, hash] of NODES.entries()) if (id !== own) view.joined(id, hash)
  return view
}

test('of nodes that see each other, exactly one is responsible for each piece, evenly distributed', () => {
  const views = NODES.map((_, own) => viewOf(own))
  const counts = new Map(views.map((view) => [view, 0]))
  for (let piece = 0; piece < 4_000; piece += 1) {
    const responsibleAt = (rank: number): readonly Neighbourhood[] => views.filter((view) => view.isMine(piece, rank))
    const responsible = responsibleAt(0)
    expect(responsible).toHaveLength(1)
    if (piece < 100) expect([1, 2, 15, 40].map((rank) => responsibleAt(rank).length)).toEqual([2, 3, 16, 16])
    counts.set(responsible[0]!, counts.get(responsible[0]!)! + 1)
  }
  for (const count of counts.values()) expect(count).toBeGreaterThan(150)
  expect(new Neighbourhood(NODES[0]!).isMine(7)).toBe(true)
})

test('after three missed turns a node is not awaited until it delivers again', () => {
  const [own, other] = [viewOf(0), 1] as const
  for (const id of NODES.keys()) if (id > 1) own.gone(id)
  const theirs = Array.from({ length: 100 }, (_, piece) => piece).filter((piece) => !own.isMine(piece))
  for (const piece of theirs.slice(0, 3)) {
    expect(own.isMine(theirs[5]!)).toBe(false)
    own.took(piece)
  }
  expect(theirs.every((piece) => own.isMine(piece))).toBe(true)
  own.brought(other)
  expect(theirs.some((piece) => own.isMine(piece))).toBe(false)
  // what is this node's own says nothing of others
  const mine = Array.from({ length: 100 }, (_, piece) => piece).filter((piece) => own.isMine(piece))
  for (const piece of mine) own.took(piece)
  expect(theirs.some((piece) => own.isMine(piece))).toBe(false)
})
