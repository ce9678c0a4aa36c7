import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatLsd, MAX_LSD_INFOHASHES, tryParseLsd } from '../../src/wire/lsd.ts'

const A = 'aa'.repeat(20)
const B = 'bb'.repeat(20)

test('an announce follows BEP 14, and round-trips', () => {
  const announce = { port: 6881, infohashes: [A, B], cookie: '0011' }
  expect(formatLsd(announce, 4)).toBe(
    `BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\nPort: 6881\r\nInfohash: ${A}\r\nInfohash: ${B}\r\ncookie: 0011\r\n\r\n\r\n`
  )
  for (const family of [4, 6] as const) expect(tryParseLsd(Buffer.from(formatLsd(announce, family)))).toEqual(announce)
})

test('one datagram holds as much as fits', () => {
  const infohashes = Array.from({ length: 100 }, (_, n) => n.toString(16).padStart(40, '0'))
  const datagram = formatLsd({ port: 65_535, infohashes, cookie: 'c'.repeat(16) }, 6)
  expect(datagram.length).toBeLessThanOrEqual(1_400)
  expect(tryParseLsd(Buffer.from(datagram))?.infohashes).toEqual(infohashes.slice(0, MAX_LSD_INFOHASHES))
})

test.each([
  ['another request', `GET / HTTP/1.1\r\nPort: 1\r\nInfohash: ${A}\r\n\r\n`],
  ['no port', `BT-SEARCH * HTTP/1.1\r\nInfohash: ${A}\r\n\r\n`],
  ['port 0', `BT-SEARCH * HTTP/1.1\r\nPort: 0\r\nInfohash: ${A}\r\n\r\n`],
  ['port 65536', `BT-SEARCH * HTTP/1.1\r\nPort: 65536\r\nInfohash: ${A}\r\n\r\n`],
  ['no infohash', 'BT-SEARCH * HTTP/1.1\r\nPort: 1\r\n\r\n'],
  ['a short infohash', 'BT-SEARCH * HTTP/1.1\r\nPort: 1\r\nInfohash: aabb\r\n\r\n'],
  ['more than a datagram should be', `BT-SEARCH * HTTP/1.1\r\nPort: 1\r\n${`Infohash: ${A}\r\n`.repeat(40)}\r\n`]
])('%s is not an announce', (_name, text) => expect(tryParseLsd(Buffer.from(text))).toBeUndefined())

test('any datagram is read or refused', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => void tryParseLsd(bytes)))
})
