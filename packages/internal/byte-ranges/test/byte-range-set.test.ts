import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByteRangeSet } from '../src/byte-range-set.ts'

test('behaves as a set of positions', () => {
  const step = fc.record({ add: fc.boolean(), start: fc.nat(40), length: fc.nat(15) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.nat(45), fc.nat(15), (steps, from, length) => {
      const set = new ByteRangeSet()
      const model = new Set<number>()
      for (const { add, start, length } of steps) {
        for (let i = start; i < start + length; i++) add ? model.add(i) : model.delete(i)
        add ? set.add(start, start + length) : set.remove(start, start + length)
        const ranges = set.toRanges()
        for (const [i, [from, to]] of ranges.entries()) {
          expect(from).toBeLessThan(to)
          expect(from).toBeGreaterThan(ranges[i - 1]?.[1] ?? -1)
        }
      }
      const positions = Array.from({ length }, (_, i) => from + i)
      expect(set.contains(from, from + length)).toBe(positions.every((i) => model.has(i)))
      expect(set.overlaps(from, from + length)).toBe(positions.some((i) => model.has(i)))
      expect(set.totalBytes).toBe(model.size)
      let prefix = 0
      while (model.has(prefix)) prefix++
      expect(set.prefixEnd).toBe(prefix)
      expect(new ByteRangeSet(set.toRanges()).toRanges()).toEqual(set.toRanges())
    })
  )
})
