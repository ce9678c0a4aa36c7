import { expect, test } from 'vitest'
import { reachOf } from '../src/views/share.tsx'

const told = { announced: true, peers: ['192.168.1.7:6881'], webseeds: [], trackers: [] } as never

test.each([
  ['nobody', { announced: false, note: 'it is private' }, true],
  ['machine', { note: 'this daemon listens on this machine only' }, false],
  ['network', {}, false],
  ['network', { peers: ['[fd00::1]:6881', '10.0.0.1:6881'], webseeds: ['http://172.20.0.1:80/'] }, false],
  ['anybody', { peers: ['203.0.113.7:6881'] }, false],
  ['anybody', { trackers: ['https://tracker.example/announce'] }, false],
  // listed in the DHT
  ['anybody', {}, true]
] as const)('%s can reach what is shared', (reach, more, isListed) => {
  expect(reachOf({ ...(told as object), ...more } as never, isListed)).toBe(reach)
})
