import { connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isHost, tryParseAddress } from '../src/index.ts'

describe('isHost', () => {
  test.each([
    'localhost',
    'example.org',
    'example.org.',
    'a_b.example',
    '127.0.0.1',
    '::1',
    '2001:db8::1',
    'x'.repeat(63),
    'xn--bcher-kva.example'
  ])('takes %j', (text) => expect(isHost(text)).toBe(true))

  test.each([
    '',
    '.',
    'a..b',
    '-a',
    'a-',
    'a b',
    'a\0b',
    'a\n',
    'a/b',
    'a@b',
    'a%00',
    'fe80::1%eth0',
    '1',
    '1.2',
    '0x7f.1',
    '127.1',
    '[::1]',
    'ü.example',
    'x'.repeat(64),
    `${'x.'.repeat(130)}x`
  ])('refuses %j', (text) => expect(isHost(text)).toBe(false))
})

test('connect does not throw for any host that it accepts', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.domain(), fc.ipV6()), (text) => {
      if (!isHost(text)) return
      // nothing is sent: a lookup of our own answers, and the socket is gone before it could connect.
      connect({ host: text, port: 1, lookup: () => undefined }).destroy()
    }),
    { numRuns: 2_000 }
  )
})

test.each([
  ['127.0.0.1:6881', { host: '127.0.0.1', port: 6881 }],
  ['[::1]:1', { host: '::1', port: 1 }],
  ['peer.example:65535', { host: 'peer.example', port: 65_535 }],
  ['a\0b:1', undefined],
  ['a:0', undefined],
  ['a:65536', undefined],
  ['::1:1', undefined],
  ['[peer.example]:1', undefined],
  ['[fe80::1%lo]:1', undefined]
])('tryParseAddress(%j)', (text, address) => expect(tryParseAddress(text)).toEqual(address))
