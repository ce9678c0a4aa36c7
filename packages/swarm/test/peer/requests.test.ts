import { BLOCK_BYTES } from '@svc/metainfo'
import { expect, test } from 'vitest'
import { PendingRequests } from '../../src/peer/requests.ts'

function answered(requests: PendingRequests, count: number, tookMs: number, nowMs = 0): void {
  for (let each = 0; each < count; each += 1) requests.grow(BLOCK_BYTES, tookMs, nowMs)
}

const blocksOf = (requests: PendingRequests): number => requests.roomBytes() / BLOCK_BYTES

test('in a fleet the window shrinks while answers take longer than the fastest, and grows again when they do not', () => {
  const requests = new PendingRequests(true)
  requests.sharers = 40
  answered(requests, 16, 20)
  expect(blocksOf(requests)).toBe(32)
  answered(requests, 32, 271)
  expect(blocksOf(requests)).toBe(16)
  answered(requests, 500, 2_000)
  expect(blocksOf(requests)).toBe(2)
  // a second passes: a low rate does not widen it, a fast answer does
  requests.adapt(1_000_000)
  expect(blocksOf(requests)).toBe(2)
  answered(requests, 1, 250)
  expect(blocksOf(requests)).toBe(3)
})

test('one fast answer of long ago does not keep the window small', () => {
  const requests = new PendingRequests(true)
  requests.sharers = 40
  // a block from the cache, then a disk or a limit that takes 300 ms for each, whatever is asked for
  answered(requests, 1, 1)
  for (let second = 0; second < 30; second += 1) answered(requests, 10, 300, second * 1_000)
  expect(blocksOf(requests)).toBe(2)
  for (let second = 30; second < 60; second += 1) answered(requests, 10, 300, second * 1_000)
  expect(blocksOf(requests)).toBeGreaterThan(64)
})

test('the fewer peers are asked, the more each of them is asked for at least', () => {
  for (const [sharers, least] of [
    [1, 16],
    [2, 16],
    [4, 8],
    [15, 3],
    [100, 2]
  ]) {
    const requests = new PendingRequests(true)
    requests.sharers = sharers!
    answered(requests, 1, 1)
    answered(requests, 500, 2_000)
    expect(blocksOf(requests)).toBe(least)
  }
})

test('elsewhere it follows the rate, however long answers take', () => {
  const requests = new PendingRequests()
  answered(requests, 16, 5_000)
  expect(blocksOf(requests)).toBe(32)
  requests.adapt(1_000_000)
  expect(requests.roomBytes()).toBe(2_500_000)
})
