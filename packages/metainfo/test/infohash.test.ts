import { expect, test } from 'vitest'
import { toHex, tryFromHex } from '../src/infohash.ts'

test.each([0, 1, 20, 32, 1024, 1025, 5000])('%i bytes to hex and back', (length) => {
  const bytes = Uint8Array.from({ length }, (_, i) => (i * 7) & 0xff)
  expect(toHex(bytes)).toBe(Buffer.from(bytes).toString('hex'))
  expect(tryFromHex(toHex(bytes))).toEqual(bytes)
})

test('16 MiB do not exceed the call stack', () => {
  const bytes = Buffer.alloc(16 << 20, 0xa5)
  expect(toHex(bytes) === bytes.toString('hex')).toBe(true)
})
