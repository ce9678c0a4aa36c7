import fc from 'fast-check'
import { expect, test } from 'vitest'
import { brokenSets, parseShardName, type Shard, shardOf } from '../src/shards.ts'

const shards = (...names: string[]): Shard[] => names.map((name) => shardOf(name)!)

test('the missing parts are named as runs, whatever total a name claims', () => {
  expect(brokenSets(shards('m-00005-of-999999.gguf', 'm-00003-of-999999.gguf'))).toEqual([
    {
      group: 'm*999999.gguf',
      names: ['m-00003-of-999999.gguf', 'm-00005-of-999999.gguf'],
      missing: '1-2, 4, 6-999999',
      repeated: []
    }
  ])
})

test('many gaps are cut short', () => {
  const odd = Array.from({ length: 500 }, (_, i) => `m-${String(2 * i + 1).padStart(5, '0')}-of-01000.gguf`)
  const [broken] = brokenSets(shards(...odd))
  expect(broken!.missing.length).toBeLessThan(200)
})

test('a part number that two names claim', () => {
  expect(brokenSets(shards('m-00001-of-00001.gguf', 'm_00001_of_00001.gguf'))).toMatchObject([
    { missing: '', repeated: [1] }
  ])
})

test('folder, base, ending and total tell sets apart', () => {
  const names = [
    'a/m-00001-of-00001.gguf',
    'b/m-00001-of-00001.gguf',
    'a/n-00001-of-00001.gguf',
    'a/m-00001-of-00001.safetensors',
    'a/m-00001-of-00002.gguf'
  ]
  expect(new Set(shards(...names).map(({ group }) => group)).size).toBe(5)
})

test('a set is broken exactly when a number of 1..total is missing', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 }), (total, left) => {
      const all = Array.from(
        { length: total },
        (_, i) => `m-${String(i + 1).padStart(5, '0')}-of-${String(total).padStart(5, '0')}.gguf`
      )
      const some = all.filter((_, i) => i + 1 !== left)
      const expected = left > total || some.length === 0 ? [] : [{ missing: String(left) }]
      expect(brokenSets(shards(...some))).toMatchObject(expected)
      expect(brokenSets(shards(...some))).toHaveLength(expected.length)
    })
  )
})

test('names without a shard suffix', () => {
  for (const stem of [
    'm-0001-of-0003',
    'm-0000001-of-0000003',
    'm.00001-of-00003',
    'm-00001-of-00003x',
    'm-00001of00003',
    'm-00001-OF-00003'
  ])
    expect(parseShardName(stem)).toBeUndefined()
  expect(parseShardName('-00001-of-00003')).toEqual({ base: '', part: 1, total: 3 })
})
