import { cutRanges, gapsOf, totalBytes } from '@svc/internal-byte-ranges'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createMemorySink } from '../src/index.ts'

test('gaps and present ranges always add up to the whole', async () => {
  const span = fc.tuple(fc.nat(99), fc.nat(99)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.boolean(), span)),
      span,
      fc.integer({ min: 1, max: 40 }),
      async (steps, window, cut) => {
        const sink = createMemorySink(100)
        const model = new Set<number>()
        for (const [write, [start, end]] of steps) {
          if (write) await sink.write(start, new Uint8Array(end - start))
          else sink.unmark(start, end)
          for (let i = start; i < end; i++) write ? model.add(i) : model.delete(i)
        }
        expect(totalBytes(sink.ranges())).toBe(model.size)
        const [from, to] = window
        const pieces = cutRanges(gapsOf(sink.ranges(), from, to), cut)
        const missing = pieces.flatMap(([start, end]) => Array.from({ length: end - start }, (_, i) => start + i))
        expect(missing).toEqual(Array.from({ length: to - from }, (_, i) => from + i).filter((i) => !model.has(i)))
        expect(pieces.every(([start, end]) => end - start <= cut)).toBe(true)
      }
    )
  )
})
