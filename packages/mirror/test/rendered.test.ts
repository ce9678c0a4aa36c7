import { expect, it } from 'vitest'
import { Rendered } from '../src/rendered.ts'

it('computes an answer once for concurrent requests, and evicts the least recently used', async () => {
  const made: string[] = []
  const rendered = new Rendered(250)
  const get = (key: string): Promise<Buffer> =>
    rendered.get(key, async () => {
      made.push(key)
      return key.repeat(98)
    })
  const [first, same] = await Promise.all([get('a'), get('a')])
  expect(first).toBe(same)
  await get('b')
  await get('a')
  await get('c')
  expect(await get('a')).toBe(first)
  await get('b')
  expect(made).toEqual(['a', 'b', 'c', 'b'])
})

it('counts the size of its keys', async () => {
  const made: string[] = []
  const rendered = new Rendered(250)
  const get = (name: string): Promise<Buffer> =>
    rendered.get(name.repeat(100), async () => {
      made.push(name)
      return ''
    })
  for (const name of ['a', 'b', 'c', 'a']) await get(name)
  expect(made).toEqual(['a', 'b', 'c', 'a'])
})

it('computes a failed answer again', async () => {
  const rendered = new Rendered()
  await expect(rendered.get('a', () => Promise.reject(new RangeError('no')))).rejects.toThrow(RangeError)
  expect(`${await rendered.get('a', async () => 1)}`).toBe('1')
})
