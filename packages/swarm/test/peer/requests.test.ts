import { BLOCK_BYTES } from '@svc/metainfo'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type PendingRequest, PendingRequests, pendingRequest } from '../../src/peer/requests.ts'
import { PieceBuffer } from '../../src/piece/piece-buffer.ts'
import { SlotPool } from '../../src/piece/slot-pool.ts'
import { formatBlockRef, formatRequests, MESSAGE } from '../../src/wire/messages.ts'

function answered(requests: PendingRequests, count: number, tookMs: number, nowMs = 0): void {
  for (let each = 0; each < count; each += 1) requests.grow(BLOCK_BYTES, tookMs, nowMs)
}

const blocksOf = (requests: PendingRequests): number => requests.roomBytes() / BLOCK_BYTES

test('in a fleet, the window shrinks while answers are slower than the fastest, then grows again', () => {
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

test('an old fast answer does not keep the window small', () => {
  const requests = new PendingRequests(true)
  requests.sharers = 40
  // a block from the cache, then a disk or a limit that takes 300 ms for each
  answered(requests, 1, 1)
  for (let second = 0; second < 30; second += 1) answered(requests, 10, 300, second * 1_000)
  expect(blocksOf(requests)).toBe(2)
  for (let second = 30; second < 60; second += 1) answered(requests, 10, 300, second * 1_000)
  expect(blocksOf(requests)).toBeGreaterThan(64)
})

test('the fewer the peers, the larger the minimum requested from each', () => {
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

test('one request is for 128 KiB, and for up to a quarter of a large window', () => {
  const requests = new PendingRequests()
  expect(requests.requestBytes).toBe(131_072)
  answered(requests, 32, 20)
  expect(requests.roomBytes()).toBe(48 * BLOCK_BYTES)
  expect(requests.requestBytes).toBe(12 * BLOCK_BYTES)
  answered(requests, 16, 20)
  expect(requests.requestBytes).toBe(16 * BLOCK_BYTES)
  // a slow peer is asked for little again
  requests.adapt(10_000)
  expect(requests.requestBytes).toBe(131_072)
})

test('elsewhere the window follows the rate, whatever the latency', () => {
  const requests = new PendingRequests()
  answered(requests, 16, 5_000)
  expect(blocksOf(requests)).toBe(32)
  requests.adapt(1_000_000)
  expect(requests.roomBytes()).toBe(2_500_000)
})

/** Requests for `count` blocks, one each. */
function blocks(count: number): readonly PendingRequest[] {
  const buffer = new PieceBuffer(0, new SlotPool(1).acquire(count * BLOCK_BYTES)!)
  return Array.from({ length: count }, (_, first) => pendingRequest({ buffer, run: { first, count: 1 } }, 0))
}

test('a window is refilled when an eighth of it is free, or nothing is outstanding', () => {
  const requests = new PendingRequests()
  answered(requests, 24, 1)
  const asked = blocks(40)
  expect(requests.wantsMore).toBe(true)
  for (const request of asked) requests.add(request)
  const refilledAt = asked.findIndex((request) => {
    requests.remove(request)
    return requests.wantsMore
  })
  expect(refilledAt).toBe(4)
  for (const request of asked) requests.remove(request)
  // however small the window and the peer's queue are
  requests.collapse()
  expect(requests.wantsMore).toBe(true)
  requests.queueLimit = 1
  expect(requests.wantsMore).toBe(true)
  requests.add(asked[0]!)
  expect(requests.wantsMore).toBe(false)
})

test('whatever is added, answered, cancelled and forgotten, what is outstanding is counted', () => {
  const step = fc.record({ kind: fc.constantFrom('add', 'remove', 'cancel', 'prune', 'clear'), block: fc.nat(9) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const requests = new PendingRequests()
      for (const { kind, block } of steps) {
        const found = requests.find(0, block * BLOCK_BYTES)
        if (kind === 'add' && found === undefined) requests.add(blocks(10)[block]!)
        if (kind === 'remove' && found !== undefined) requests.remove(found)
        if (kind === 'cancel' && found !== undefined) requests.invalidate(found)
        if (kind === 'prune') requests.prune(1)
        if (kind === 'clear' && block === 0) requests.clear()
        const live = [...requests.all()].filter((request) => !request.void)
        expect([requests.live, requests.outstandingBytes]).toEqual([live.length, live.length * BLOCK_BYTES])
        expect(requests.oldest()).toBe(live[0])
      }
    })
  )
})

test("a peer's short queue is also refilled by eighths", () => {
  const requests = new PendingRequests()
  requests.adapt(100_000_000)
  requests.queueLimit = 32
  const asked = blocks(32)
  for (const request of asked) requests.add(request)
  const refilledAt = asked.findIndex((request) => {
    requests.remove(request)
    return requests.wantsMore
  })
  expect(refilledAt).toBe(3)
})

test('requests sent together are the same messages as one by one', () => {
  const [first, second] = [
    { piece: 0xfedc_ba98, begin: 0, length: BLOCK_BYTES },
    { piece: 1, begin: 0x12_8000, length: 1 }
  ]
  const single = [first, second].map(({ piece, begin, length }) =>
    formatBlockRef(MESSAGE.request, piece, begin, length)
  )
  expect(Buffer.concat([formatRequests([first, second])])).toEqual(Buffer.concat(single))
})
