import { expect, test } from 'vitest'
import { BannedPeers } from '../src/banned-peers.ts'

test('a public address is banned with all its ports, but not its neighbours', () => {
  const banned = new BannedPeers()
  banned.ban({ host: '8.8.4.4', port: 6881 }, 0)
  expect(banned.isBanned({ host: '8.8.4.4', port: 50_000 })).toBe(true)
  expect(banned.admits({ host: '8.8.4.4', port: 50_000 }, 1e9)).toBe(false)
  expect(banned.isBanned({ host: '8.8.4.5', port: 6881 })).toBe(false)
})

test('a private host is banned by port; if it returns with new ports, it waits longer each time', () => {
  const banned = new BannedPeers()
  const from = (port: number) => ({ host: '10.0.0.7', port })
  for (let port = 1; port <= 3; port += 1) banned.ban(from(port), 0)
  // the same again is no further one
  banned.ban(from(3), 0)
  expect(banned.isBanned(from(3))).toBe(true)
  expect(banned.admits(from(9), 0)).toBe(true)
  const joinedAt: number[] = []
  let nowMs = 0
  for (let port = 4; nowMs < 3_600_000; nowMs += 500) {
    if (!banned.admits(from(port), nowMs)) continue
    joinedAt.push(nowMs)
    banned.ban(from(port), nowMs)
    port += 1
  }
  expect(joinedAt.slice(0, 5)).toEqual([0, 1_000, 3_000, 7_000, 15_000])
  expect(joinedAt.length).toBeLessThan(25)
  // who listens there is dialled all the same, and another host is not concerned
  expect(banned.isBanned(from(6_881))).toBe(false)
  expect(banned.admits({ host: '10.0.0.8', port: 5 }, 0)).toBe(true)
})
