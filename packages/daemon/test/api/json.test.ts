import { expect, test } from 'vitest'
import { parseJsonBody } from '../../src/api/json.ts'

const nested = (levels: number): Buffer => Buffer.from(`{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`)

test('bodies of up to 32 levels are read, deeper ones are refused before parsing', () => {
  expect(parseJsonBody(nested(32))).toHaveProperty('a')
  const refused = expect.objectContaining({ code: 'E_BAD_REQUEST' })
  for (const levels of [33, 64, 500_000]) expect(() => parseJsonBody(nested(levels)), `${levels}`).toThrowError(refused)
  // brackets in strings are none
  expect(parseJsonBody(Buffer.from(JSON.stringify({ a: '[{'.repeat(100) })))).toHaveProperty('a')
})

test('bodies that are not JSON objects in UTF-8 are refused; "__proto__" is an ordinary key', () => {
  for (const text of ['[]', '1', 'null', '"a"', '{', '', '{"a":1}x'])
    expect(() => parseJsonBody(Buffer.from(text)), text).toThrowError(
      expect.objectContaining({ code: 'E_BAD_REQUEST' })
    )
  expect(() => parseJsonBody(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toThrowError(
    expect.objectContaining({ code: 'E_BAD_REQUEST' })
  )
  const body = parseJsonBody(Buffer.from('{"__proto__":{"x":1}}'))
  expect([Object.hasOwn(body, '__proto__'), (body as { x?: unknown }).x]).toEqual([true, undefined])
})
