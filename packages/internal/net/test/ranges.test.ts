import { describe, expect, test } from 'vitest'
import { AddressRanges, formatCompact, parseCompact, tryParseRange } from '../src/index.ts'

const rangesOf = (...texts: readonly string[]): AddressRanges =>
  new AddressRanges(texts.map((text) => tryParseRange(text)!))

describe('an address range', () => {
  test.each(['10.0.0.0/8', '10.1.2.3', '0.0.0.0/0', '192.168.4.0/22', 'fd00::/8', '2001:db8::1', '::/0', 'fe80::/10'])(
    '%s is one',
    (text) => expect(tryParseRange(text)).toBeDefined()
  )

  test.each([
    '',
    '10',
    '10.0.0.0/33',
    '10.0.0.1/8',
    'fd00::1/8',
    '::/129',
    'host/8',
    '10.0.0.0/',
    '10.0.0.0/8 ',
    'fe80::1%eth0'
  ])('%j is no range', (text) => expect(tryParseRange(text)).toBeUndefined())

  test.each([
    ['10.255.0.1', true],
    ['11.0.0.1', false],
    ['::ffff:10.1.1.1', true],
    ['fd12::1', true],
    ['fe80::1', false],
    ['192.168.7.255', true],
    ['192.168.8.0', false],
    ['ten.example', false],
    ['', false]
  ])('%s is within three ranges: %s', (ip, within) =>
    expect(rangesOf('10.0.0.0/8', 'fd00::/8', '192.168.4.0/22').has(ip)).toBe(within)
  )

  test('nothing is in an empty set', () => {
    expect(rangesOf().isEmpty).toBe(true)
    expect(rangesOf().has('127.0.0.1')).toBe(false)
  })
})

test('compact IPv6 peers round-trip, others are left out', () => {
  const peers = [
    { host: '2001:db8::1', port: 6881 },
    { host: '::ffff:192.0.2.1', port: 65_535 },
    { host: 'fd00:1:2:3:4:5:6:7', port: 1 }
  ]
  const bytes = formatCompact([...peers, { host: '192.0.2.1', port: 9 }], 16)
  expect(bytes).toHaveLength(54)
  expect([...formatCompact([...peers, { host: '192.0.2.1', port: 258 }], 4)]).toEqual([192, 0, 2, 1, 1, 2])
  expect(parseCompact(bytes, 16)).toEqual([
    { host: '2001:db8:0:0:0:0:0:1', port: 6881 },
    { host: '0:0:0:0:0:ffff:c000:201', port: 65_535 },
    { host: 'fd00:1:2:3:4:5:6:7', port: 1 }
  ])
})
