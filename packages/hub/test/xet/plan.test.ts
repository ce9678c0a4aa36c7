import { createHash } from 'node:crypto'
import { seededRandom } from '@svc/testkit/fake-hub-faults'
import { expect, test } from 'vitest'
import { planDelta } from '../../src/xet/plan.ts'
import type { Reconstruction, Term } from '../../src/xet/reconstruction.ts'

const CHUNKS = 40
const hashOf = (xorb: number): string => createHash('sha256').update(`${xorb}`).digest('hex')

/** Two files of runs of chunks of the same few xorbs, and ranges that are missing of the second one. */
function randomCase(seed: number) {
  const random = seededRandom(seed)
  const below = (n: number): number => Math.floor(random() * n)
  const sizes = Array.from({ length: 3 }, () => Array.from({ length: CHUNKS }, () => 1 + below(50)))
  /** The bytes of a file, as the chunks that they are of: each byte is named by its xorb, chunk and place. */
  const fileOf = (isSized: boolean): { readonly terms: Term[]; readonly bytes: string[] } => {
    const terms: Term[] = []
    const bytes: string[] = []
    for (let runs = 1 + below(8); runs > 0; runs--) {
      const xorb = below(3)
      const start = below(CHUNKS)
      const end = start + 1 + below(CHUNKS - start)
      const chunkBytes = sizes[xorb]!.slice(start, end)
      const lengthBytes = chunkBytes.reduce((sum, size) => sum + size, 0)
      terms.push({
        xorb: hashOf(xorb),
        start,
        end,
        offset: bytes.length,
        lengthBytes,
        chunkBytes: isSized ? chunkBytes : []
      })
      for (const [i, size] of chunkBytes.entries())
        for (let at = 0; at < size; at++) bytes.push(`${xorb} ${start + i} ${at}`)
    }
    return { terms, bytes }
  }
  const isSized = below(2) === 0
  const [older, newer] = [fileOf(isSized), fileOf(isSized)]
  const missing: [number, number][] = []
  for (let at = below(30); at < newer.bytes.length; at += 1 + below(60)) {
    const end = Math.min(newer.bytes.length, at + 1 + below(200))
    missing.push([at, end])
    at = end
  }
  const fetches = [0, 1, 2].map((xorb) => {
    const start = below(CHUNKS)
    const ranges = [{ start, end: CHUNKS, from: 0, to: 1 + below(2_000) }]
    return { xorb: hashOf(xorb), url: 'http://127.0.0.1/', ranges }
  })
  return { older, newer, missing, isSized, fetches }
}

const reconstruction = (
  { terms }: { readonly terms: Term[] },
  fetches: Reconstruction['fetches'] = []
): Reconstruction => ({
  terms,
  fetches
})

test('each missing chunk is copied once, with its bytes; with all lengths known, no shared chunk is skipped', () => {
  let copiedBytes = 0
  for (let seed = 0; seed < 400; seed++) {
    const { older, newer, missing, isSized, fetches } = randomCase(seed)
    const plan = planDelta(reconstruction(older), reconstruction(newer, fetches), missing)
    const isMissing = newer.bytes.map((_, at) => missing.some(([start, end]) => start <= at && at < end))
    const wrong: string[] = []
    const take = (at: number, what: string): void => {
      if (!isMissing[at]) wrong.push(`${what} ${at}`)
      isMissing[at] = false
    }
    for (const { from, to, lengthBytes } of plan.copies)
      for (let i = 0; i < lengthBytes; i++) {
        if (newer.bytes[to + i] !== older.bytes[from + i]) wrong.push(`copy to ${to + i}`)
        take(to + i, 'copy')
        copiedBytes++
      }
    for (const { terms } of plan.fetches)
      for (const [start, end] of [...terms.values()].flat()) for (let at = start; at < end; at++) take(at, 'fetch')
    expect(wrong, `seed ${seed}`).toEqual([])
    if (!isSized) continue
    const known = new Set(older.bytes)
    expect(
      isMissing.some((is, at) => is && known.has(newer.bytes[at]!)),
      `seed ${seed}`
    ).toBe(false)
  }
  expect(copiedBytes).toBeGreaterThan(10_000)
})
