import { expect, test } from 'vitest'
import { hostKey } from '../src/host-key.ts'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:DB8:1:2::3', '2001:db8:1:2'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['Peer.Example', 'peer.example'],
  ['', '']
])('%s counts as %s', (host, key) => {
  expect(hostKey(host)).toBe(key)
})
