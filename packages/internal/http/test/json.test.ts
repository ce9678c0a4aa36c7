import { expect, test } from 'vitest'
import { JsonExcessError, jsonExcess, parseJson } from '../src/index.ts'

const json = (text: string): Buffer => Buffer.from(text)
const BOUNDS = { depth: 3, values: 6, keys: 2 }

test.each([
  ['[[[]]]', undefined],
  ['[[[[]]]]', 'depth'],
  ['[1,2,3,4,5]', undefined],
  ['[1,2,3,4,5,6]', 'values'],
  ['[[],[],[1]]', 'values'],
  ['{"a":1,"b":{"a":2}}', undefined],
  ['{"a":1,"b":{"c":2}}', 'keys'],
  ['{"a" :1,\n"b"\t: 2}', undefined],
  ['"[[[[{{{{,,,,,,,,:::::"', undefined],
  ['"\\"[[[[\\\\"', undefined],
  ['["\\\\",[[[]]]]', 'depth'],
  ['"an open string [[[[[', undefined],
  [']]]][[[[', undefined]
])('%s: %s', (text, excess) => {
  expect(jsonExcess(text, BOUNDS)).toBe(excess)
})

test.each([
  ['depth', '['.repeat(2_000_000)],
  ['values', `[${'{},'.repeat(1_000_000)}{}]`],
  ['values', `[${'1,'.repeat(2_000_000)}1]`],
  ['keys', `{${Array.from({ length: 100_000 }, (_, i) => `"${i}":1`).join()}}`],
  ['keys', `[${Array.from({ length: 100_000 }, (_, i) => `{"${i}":1}`).join()}]`]
])('more %s than a document needs is refused before anything is parsed', (_, text) => {
  expect(() => parseJson(json(text))).toThrow(JsonExcessError)
})

test('a key is counted once, however often a colon follows it', () => {
  const began = process.cpuUsage().user
  expect(jsonExcess(`"${'x'.repeat(2_000_000)}"${':'.repeat(2_000_000)}`, BOUNDS)).toBeUndefined()
  expect(jsonExcess(`"${'\\'.repeat(2_000_000)}"`, BOUNDS)).toBeUndefined()
  expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(1_000)
})

test('members that nobody asked for are not looked at', () => {
  const siblings = `"siblings":[${'{"rfilename":"a,\\"}{"},'.repeat(200_000)}{}]`
  const text = `  {${siblings}, "sha" : "x", "tags":["a","b"],"sha2":{"sha":1},"id":null}`
  expect(parseJson(json(text), { only: ['sha', 'tags', 'id', 'absent'] })).toEqual({
    sha: 'x',
    tags: ['a', 'b'],
    id: null
  })
  expect(parseJson(json('{}'), { only: ['sha'] })).toEqual({})
  expect(parseJson(json('[1]'), { only: ['sha'] })).toEqual([1])
  expect(() => parseJson(json(`{"sha":${'['.repeat(40)}`), { only: ['sha'] })).not.toThrow(RangeError)
  expect(() => parseJson(json('{"sha":[1,2,3]}'), { only: ['sha'], values: 2 })).toThrow(JsonExcessError)
  expect(() => parseJson(json('{"sha":1,"sha"'), { only: ['sha'] })).not.toThrow(JsonExcessError)
})
