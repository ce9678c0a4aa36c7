import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BlockReceiver } from '../../src/peer/block-receiver.ts'
import { type PendingRequest, pendingRequest } from '../../src/peer/requests.ts'
import { PieceBuffer } from '../../src/piece/piece-buffer.ts'
import { SlotPool } from '../../src/piece/slot-pool.ts'

const BLOCK = 16_384

/** One peer's answers to its requests, read in parts of any size; each byte is the sender's number. */
class Answers {
  readonly receiver: BlockReceiver
  readonly #sender: number
  readonly #requests: PendingRequest[]
  #at = 0

  constructor(sender: number, requests: readonly PendingRequest[]) {
    this.receiver = new BlockReceiver(sender)
    this.#sender = sender
    this.#requests = [...requests]
  }

  /** False: there is nothing more. */
  read(bytes: number): boolean {
    const request = this.#requests[0]
    if (request === undefined) return false
    if (this.#at === 0) this.receiver.start(request)
    const count = Math.min(bytes, request.length - this.#at)
    this.receiver.data(new Uint8Array(count).fill(this.#sender))
    this.#at += count
    if (this.#at < request.length) return true
    this.receiver.end()
    this.#requests.shift()
    this.#at = 0
    return true
  }
}

const piece = (blocks: number): PieceBuffer => new PieceBuffer(0, new SlotPool(1 << 24).acquire(blocks * BLOCK - 5)!)
function take(buffer: PieceBuffer, blocks: number, sender: number): readonly PendingRequest[] {
  const requests: PendingRequest[] = []
  for (let run = buffer.take(blocks, sender); run !== undefined; run = buffer.take(blocks, sender))
    requests.push(pendingRequest({ buffer, run }, 0))
  return requests
}
/** Whether every block that counts as received has all of its bytes from its sender. */
function intact(buffer: PieceBuffer): boolean {
  const { bytes } = buffer.slot
  for (let block = 0; block < buffer.blockCount; block += 1) {
    if (!buffer.isReceived(block)) continue
    const sender = buffer.senderOf(block)
    const end = Math.min((block + 1) * BLOCK, bytes.length)
    if (Buffer.compare(bytes.subarray(block * BLOCK, end), Buffer.alloc(end - block * BLOCK, sender)) !== 0)
      return false
  }
  return true
}

test('a received block never changes, in whatever parts two peers send the same blocks', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 300_000 }), { minLength: 1, maxLength: 40 })
  let second = 0
  fc.assert(
    fc.property(
      fc.tuple(sizes, sizes),
      fc.array(fc.boolean(), { maxLength: 80 }),
      fc.integer({ min: 4, max: 8 }),
      (lists, turns, n) => {
        const buffer = piece(20)
        const requests = take(buffer, n, 1)
        while (buffer.takeAgain(n, 2) !== undefined) {
          /* the second peer is asked for the same blocks */
        }
        const peers = lists.map((_, index) => new Answers(index + 1, requests))
        const step = (index: number): boolean => {
          const isMore = peers[index]!.read(lists[index]!.shift() ?? 1 << 18)
          expect(intact(buffer)).toBe(true)
          return isMore
        }
        for (const turn of turns) step(turn ? 1 : 0)
        while (step(0) || step(1)) {
          /* until both are through */
        }
        expect(buffer.complete).toBe(true)
        if (buffer.senders().has(2)) second += 1
      }
    ),
    { numRuns: 60 }
  )
  // these are the cases that the property is about
  expect(second).toBeGreaterThan(0)
})

test('a connection that ends during an answer leaves its blocks to others', () => {
  const buffer = piece(8)
  const peer = new Answers(1, take(buffer, 8, 1))
  peer.read(BLOCK + 1)
  expect(buffer.claim(1, 2)).toBe(false)
  peer.receiver.abandon()
  expect(buffer.receivedBlocks).toBe(1)
  for (let block = 1; block < 8; block += 1) expect(buffer.claim(block, 2)).toBe(true)
})

test('an abandoned piece accepts nothing more', () => {
  const buffer = piece(8)
  const peer = new Answers(1, take(buffer, 8, 1))
  peer.read(1)
  buffer.retire()
  while (peer.read(1 << 18)) {
    /* the rest comes */
  }
  expect(buffer.receivedBlocks).toBe(0)
  expect(buffer.slot.bytes.subarray(1).every((byte) => byte === 0)).toBe(true)
})
