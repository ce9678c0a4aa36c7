import { BLOCK_BYTES } from '@svc/metainfo'
import { expect, test } from 'vitest'
import { PendingRequests } from '../../src/peer/requests.ts'

test('in a fleet the window shrinks while answers take longer than the fastest, and grows again when they do not', () => {
  const requests = new PendingRequests(true)
  for (let count = 0; count < 16; count += 1) requests.grow(BLOCK_BYTES, 20)
  expect(requests.roomBytes()).toBe(32 * BLOCK_BYTES)
  for (let count = 0; count < 32; count += 1) requests.grow(BLOCK_BYTES, 271)
  expect(requests.roomBytes()).toBe(16 * BLOCK_BYTES)
  for (let count = 0; count < 500; count += 1) requests.grow(BLOCK_BYTES, 2_000)
  expect(requests.roomBytes()).toBe(2 * BLOCK_BYTES)
  // a second passes: a low rate does not widen it, a fast answer does
  requests.adapt(1_000_000)
  expect(requests.roomBytes()).toBe(2 * BLOCK_BYTES)
  requests.grow(BLOCK_BYTES, 250)
  expect(requests.roomBytes()).toBe(3 * BLOCK_BYTES)
})

test('elsewhere it follows the rate, however long answers take', () => {
  const requests = new PendingRequests()
  for (let count = 0; count < 16; count += 1) requests.grow(BLOCK_BYTES, 5_000)
  expect(requests.roomBytes()).toBe(32 * BLOCK_BYTES)
  requests.adapt(1_000_000)
  expect(requests.roomBytes()).toBe(2_500_000)
})
