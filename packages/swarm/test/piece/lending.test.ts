import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BlockReceiver } from '../../src/peer/block-receiver.ts'
import type { PendingRequest } from '../../src/peer/requests.ts'
import { Lending, lending } from '../../src/piece/lending.ts'
import { type BlockRun, PieceBuffer } from '../../src/piece/piece-buffer.ts'
import { SlotPool } from '../../src/piece/slot-pool.ts'
import { WireDecoder, type WireSink } from '../../src/wire/decoder.ts'
import { formatIndex, formatPieceHeader, MESSAGE } from '../../src/wire/messages.ts'

const BLOCK = 16_384
const HEAD_BYTES = 13

/** A connection as a socket with a buffer of its own sees it: bytes are written to its target first, and told of then. */
class Connection implements WireSink {
  readonly receiver: BlockReceiver
  readonly requests: PendingRequest[] = []
  readonly #shared = new Uint8Array(1 << 18)
  readonly #decoder = new WireDecoder(this)
  readonly #stream: Uint8Array
  target: Uint8Array
  #at = 0
  /** Bytes that were written where they belong. */
  direct = 0

  constructor(sender: number, requests: readonly PendingRequest[], gossip = false) {
    this.receiver = new BlockReceiver(sender)
    this.requests.push(...requests)
    const parts = requests.flatMap(({ piece, begin, length }) => [
      ...(gossip ? [formatIndex(MESSAGE.have, 7)] : []),
      formatPieceHeader(piece, begin, length),
      new Uint8Array(length).fill(sender)
    ])
    this.#stream = Buffer.concat(parts)
    this.target = this.#shared
  }

  /** The system writes up to `bytes` to the target, and the connection hears of it. False: there is nothing more. */
  read(bytes: number): boolean {
    const part = this.#stream.subarray(this.#at, this.#at + Math.min(bytes, this.target.length))
    if (part.length === 0) return false
    this.#at += part.length
    this.target.set(part)
    if (this.target.buffer !== this.#shared.buffer) this.direct += part.length
    this.receiver.settle()
    this.#decoder.push(this.target.subarray(0, part.length))
    this.target = this.#decoder.inBlocks ? this.receiver.target(this.#shared) : this.#shared
    return true
  }

  keepAlive(): void {}
  message(): void {
    this.receiver.interrupt()
  }
  requested(): void {}
  admits(): boolean {
    return true
  }
  blockStart(_piece: number, begin: number): void {
    this.receiver.start(this.requests.find((request) => request.begin === begin)!)
  }
  blockData(fragment: Uint8Array): void {
    this.receiver.data(fragment)
  }
  blockEnd(): void {
    this.receiver.end()
  }
}

const piece = (blocks: number): PieceBuffer => new PieceBuffer(0, new SlotPool(1 << 24).take(blocks * BLOCK - 5)!)
const requestOf = (buffer: PieceBuffer, run: BlockRun): PendingRequest => ({
  piece: 0,
  begin: run.first * BLOCK,
  length: buffer.runBytes(run),
  run,
  buffer,
  sentAt: 0,
  aheadBytes: 0,
  void: false
})
function take(buffer: PieceBuffer, blocks: number, sender: number): readonly PendingRequest[] {
  const requests: PendingRequest[] = []
  for (let run = buffer.take(blocks, sender); run !== undefined; run = buffer.take(blocks, sender))
    requests.push(requestOf(buffer, run))
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

test('large answers are written where they belong, but for the first one and the heads in front of missing blocks', () => {
  const buffer = piece(32)
  const connection = new Connection(1, take(buffer, 8, 1))
  while (connection.read(1 << 20)) buffer.checkInvariants()
  expect(buffer.complete).toBe(true)
  expect(intact(buffer)).toBe(true)
  // the first read does not know what comes; it brings two answers and the beginning of a third one
  expect(connection.direct).toBeGreaterThan(buffer.sizeBytes - (1 << 18) - BLOCK)
  expect(buffer.isLent).toBe(false)
  expect(lending.lentBytes).toBe(0)
})

test('what counts as received does not change, whoever else is written to the same memory, in whatever pieces it comes', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 300_000 }), fc.integer({ min: 1, max: HEAD_BYTES })), {
    minLength: 1,
    maxLength: 40
  })
  const side = fc.record({ sizes, gossip: fc.boolean() })
  let direct = 0
  let moved = 0
  fc.assert(
    fc.property(
      side,
      side,
      fc.array(fc.boolean(), { maxLength: 80 }),
      fc.integer({ min: 4, max: 8 }),
      (a, b, turns, n) => {
        const buffer = piece(20)
        const { slot } = buffer
        const requests = take(buffer, n, 1)
        while (buffer.takeAgain(n, 2) !== undefined) {
          /* the other one is asked for the same */
        }
        const connections = [a, b].map(({ gossip }, index) => new Connection(index + 1, requests, gossip))
        const step = (index: number): boolean => {
          const { sizes: list } = [a, b][index]!
          const going = connections[index]!.read(list.shift() ?? 1 << 18)
          buffer.checkInvariants()
          expect(intact(buffer)).toBe(true)
          return going
        }
        for (const turn of turns) step(turn ? 1 : 0)
        while (step(0) || step(1)) {
          /* until both are through */
        }
        expect(buffer.complete).toBe(true)
        expect(buffer.isLent).toBe(false)
        expect(lending.lentBytes).toBe(0)
        direct += connections[0]!.direct + connections[1]!.direct
        if (buffer.slot !== slot) moved += 1
      }
    ),
    { numRuns: 60 }
  )
  // the property is about these
  expect(direct).toBeGreaterThan(0)
  expect(moved).toBeGreaterThan(0)
})

test('a piece that is given up while the system may write to it leaves it the memory, and takes nothing more', () => {
  const pool = new SlotPool(1 << 20)
  const slot = pool.take(8 * BLOCK)!
  const buffer = new PieceBuffer(0, slot)
  const connection = new Connection(1, take(buffer, 8, 1))
  connection.read(HEAD_BYTES)
  expect(connection.target.buffer).toBe(slot.bytes.buffer)
  expect(buffer.isLent).toBe(true)
  buffer.retire()
  pool.give(buffer.slot, !buffer.isLent)
  const next = pool.take(8 * BLOCK)!
  expect(next.bytes.buffer).not.toBe(slot.bytes.buffer)
  while (connection.read(1 << 18)) {
    /* the rest comes */
  }
  expect(buffer.receivedBlocks).toBe(0)
  expect(next.bytes.every((byte) => byte === 0)).toBe(true)
  expect(lending.lentBytes).toBe(0)
})

test('a connection that ends in the middle of an answer gives back what was lent, and others may have its blocks', () => {
  const buffer = piece(8)
  const requests = take(buffer, 8, 1)
  const connection = new Connection(1, requests)
  connection.read(HEAD_BYTES + BLOCK + 1)
  expect(buffer.isLent).toBe(true)
  connection.receiver.abandon()
  expect(buffer.isLent).toBe(false)
  expect(lending.lentBytes).toBe(0)
  expect(buffer.receivedBlocks).toBe(1)
  for (let block = 1; block < 8; block += 1) expect(buffer.claim(block, 2)).toBe(true)
})

test('what is lent at once is bounded; beyond it bytes are copied', () => {
  const bounded = new Lending(100)
  expect(bounded.take(60)).toBe(true)
  expect(bounded.take(41)).toBe(false)
  expect(bounded.take(40)).toBe(true)
  bounded.giveBack(60)
  expect(bounded.lentBytes).toBe(40)

  // all of it is lent elsewhere
  const all = 1 << 25
  expect(lending.take(all)).toBe(true)
  const buffer = piece(16)
  const connection = new Connection(1, take(buffer, 8, 1))
  while (connection.read(1 << 20)) expect(buffer.isLent).toBe(false)
  lending.giveBack(all)
  expect(connection.direct).toBe(0)
  expect(buffer.complete && intact(buffer)).toBe(true)
})
