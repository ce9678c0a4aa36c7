import fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupsOf, layOut } from '../src/parts/disk-map.tsx'
import { squarify } from '../src/parts/treemap.ts'

const EPSILON = 1e-9
const use = (ref: string, aloneBytes: number) => ({ ref, aloneBytes })

test('tiles cover the whole in proportion, without overlap', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 1e6 }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(sizes, fc.constantFrom(1, 3, 0.5), (all, aspect) => {
      const total = all.reduce((sum, size) => sum + size, 0)
      const tiles = squarify(all, (size) => size, aspect)
      expect(tiles).toHaveLength(all.length)
      for (const { item, x, y, width, height } of tiles) {
        expect(Math.abs(width * height - item / total)).toBeLessThan(EPSILON)
        expect(Math.min(x, y)).toBeGreaterThan(-EPSILON)
        expect(Math.max(x + width, y + height)).toBeLessThan(1 + EPSILON)
      }
      for (const [i, a] of tiles.entries())
        for (const b of tiles.slice(i + 1)) {
          const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x)
          const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y)
          expect(across > EPSILON && down > EPSILON).toBe(false)
        }
    })
  )
})

test('equal sizes become squares', () => {
  for (const { width, height } of squarify([1, 1, 1, 1], (size) => size, 1)) expect(width / height).toBeCloseTo(1)
})

test('items without a size have no tile', () => {
  expect(squarify([0, 3], (size) => size, 1).map(({ item }) => item)).toEqual([3])
  expect(squarify([], (size: number) => size, 1)).toEqual([])
})

test('the disk map has all bytes of the store, with the smallest models as one tile', () => {
  const models = Array.from({ length: 1000 }, (_, i) => use(`acme/m${i >> 1}:${i % 2 === 0 ? 'q8_0' : 'f16'}`, i))
  const alone = (1000 * 999) / 2
  const disk = { models, repositories: [], sharedBytes: 5, keptBytes: 7, freeableBytes: 0 }
  const groups = groupsOf(disk)
  expect(groups.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(alone + 12)
  expect(groups.flatMap(({ parts }) => parts).length).toBeLessThan(70)
  expect(groups[0]).toMatchObject({ name: 'acme/m499', parts: [{ name: 'acme/m499:f16' }, { name: 'acme/m499:q8_0' }] })
})

test("bytes shared by a model's quants are with that model, bytes shared by several models apart", () => {
  const models = [use('acme/a:f16', 40), use('acme/a:q8_0', 20), use('acme/b:q8_0', 30)]
  const repositories = [use('acme/a', 70), use('acme/b', 30)]
  const groups = groupsOf({ models, repositories, sharedBytes: 15, keptBytes: 0, freeableBytes: 9 })
  const said = groups.map(({ bytes, parts }) => [bytes, ...parts.map(({ kind }) => kind)])
  expect(said).toEqual([
    [70, 'model', 'model', 'shared'],
    [30, 'model'],
    [5, 'shared'],
    [9, 'garbage']
  ])
  const { frames, tiles } = layOut(groups, 900, 300)
  expect(frames.map(({ name }) => name)).toEqual(['acme/a'])
  const [frame] = frames
  for (const { x, y, width, height } of tiles.slice(0, 3)) {
    expect(x >= frame!.x && y > frame!.y).toBe(true)
    expect(x + width <= frame!.x + frame!.width && y + height <= frame!.y + frame!.height).toBe(true)
  }
})
