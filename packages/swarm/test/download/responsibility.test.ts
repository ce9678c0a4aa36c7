import { expect, test } from 'vitest'
import { isResponsible, nodeHash } from '../../src/download/responsibility.ts'

test('of nodes that see each other exactly one is responsible for each piece, and all for about as many', () => {
  const nodes = Array.from({ length: 16 }, (_, n) => nodeHash(Uint8Array.from({ length: 20 }, (_, at) => n * 31 + at)))
  const counts = new Map(nodes.map((node) => [node, 0]))
  for (let piece = 0; piece < 4_000; piece += 1) {
    const responsibleAt = (rank: number): readonly number[] =>
      nodes.filter((own) =>
        isResponsible(
          own,
          nodes.filter((other) => other !== own),
          piece,
          rank
        )
      )
    const responsible = responsibleAt(0)
    expect(responsible).toHaveLength(1)
    if (piece < 100) expect([1, 2, 15, 40].map((rank) => responsibleAt(rank).length)).toEqual([2, 3, 16, 16])
    counts.set(responsible[0]!, counts.get(responsible[0]!)! + 1)
  }
  for (const count of counts.values()) expect(count).toBeGreaterThan(150)
  expect(isResponsible(nodes[0]!, [], 7)).toBe(true)
})
