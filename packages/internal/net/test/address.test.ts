import { describe, expect, test } from 'vitest'
import { addressReach, isPublicAddress, parseCompact } from '../src/index.ts'

describe("may be contacted on a stranger's word", () => {
  test.each(['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808', '64:FF9B::8.8.8.8'])(
    '%s',
    (address) => expect(isPublicAddress(address)).toBe(true)
  )
})

describe('may not', () => {
  test.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::8.8.8.8',
    '::808:808',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    '64:ff9b::10.0.0.1',
    '64:ff9b:1::808:808',
    '100::1',
    '2001::1',
    '2001:db8::1',
    '2002:808:808::1',
    'fc00::1',
    'fd00::1',
    'fe80::1',
    'fe80::1%lo',
    'fec0::1',
    'ff02::1',
    'example.org',
    'localhost',
    '0x8.8.8.8',
    '8.8',
    ''
  ])('%j', (address) => expect(isPublicAddress(address)).toBe(false))
})

test('compact addresses are read; those without a port or cut in half are left out', () => {
  expect(parseCompact(new Uint8Array([1, 2, 3, 4, 0, 80, 9, 9, 9, 9, 0, 0, 7]), 4)).toEqual([
    { host: '1.2.3.4', port: 80 }
  ])
})

test.each([
  ['8.8.8.8', 'public'],
  ['10.1.2.3', 'private'],
  ['100.64.0.1', 'private'],
  ['fd00::1', 'private'],
  ['::ffff:192.168.0.1', 'private'],
  ['127.0.0.1', 'loopback'],
  ['::1', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['169.254.169.254', 'other'],
  ['fe80::1%eth0', 'other'],
  ['0.0.0.0', 'other'],
  ['2002:a00:1::1', 'other'],
  ['localhost', 'other']
])('%s is %s', (address, reach) => expect(addressReach(address)).toBe(reach))
