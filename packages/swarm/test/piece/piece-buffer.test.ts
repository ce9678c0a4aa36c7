import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BlockReceiver } from '../../src/peer/block-receiver.ts'
import { pendingRequest } from '../../src/peer/requests.ts'
import { type BlockRun, PieceBuffer } from '../../src/piece/piece-buffer.ts'
import { SlotPool } from '../../src/piece/slot-pool.ts'

const BLOCK = 16_384
const buffer = (bytes: number): PieceBuffer => new PieceBuffer(0, new SlotPool(1 << 24).acquire(bytes)!)

const blocksOf = ({ first, count }: BlockRun): number[] => Array.from({ length: count }, (_, at) => first + at)

test('any order of taking, releasing, receiving and forgetting keeps the counts', () => {
  const step = fc.record({
    kind: fc.constantFrom('take', 'again', 'release', 'receive', 'forget'),
    source: fc.integer({ min: 1, max: 3 }),
    max: fc.integer({ min: 1, max: 8 })
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (list) => {
      const piece = buffer(20 * BLOCK - 100)
      const runs: { run: BlockRun; source: number }[] = []
      const model = new Array<readonly number[] | 'received'>(20).fill([])
      const firstFree = (): number => model.findIndex((asked) => asked.length === 0)
      for (const { kind, source, max } of list) {
        if (kind === 'take' || kind === 'again') {
          const before = firstFree()
          const run = kind === 'take' ? piece.take(max, source) : piece.takeAgain(max, source)
          if (kind === 'take') expect(run?.first ?? -1).toBe(before)
          if (run === undefined) continue
          runs.push({ run, source })
          for (const block of blocksOf(run)) {
            const asked = model[block] as readonly number[]
            expect(asked).toHaveLength(kind === 'take' ? 0 : 1)
            expect(asked).not.toContain(source)
            model[block] = [...asked, source]
          }
        } else if (kind === 'forget') {
          piece.forget(max)
          if (model[max] === 'received') model[max] = []
        } else {
          const entry = runs.splice(max % Math.max(1, runs.length), 1)[0]
          if (entry === undefined) continue
          if (kind === 'release') piece.release(entry.run, entry.source)
          for (const block of blocksOf(entry.run)) {
            const asked = model[block]!
            if (kind === 'receive') piece.receive(block, entry.source)
            if (kind === 'receive') model[block] = 'received'
            else if (asked !== 'received') model[block] = asked.filter((id) => id !== entry.source)
          }
        }
        expect(piece.freeBlocks).toBe(model.filter((asked) => asked.length === 0).length)
        expect(piece.receivedBlocks).toBe(model.filter((asked) => asked === 'received').length)
        for (const [block, asked] of model.entries()) expect(piece.isReceived(block)).toBe(asked === 'received')
      }
    }),
    { numRuns: 300 }
  )
})

test('a block that two peers send at once has the whole bytes of one of them', () => {
  const answer = fc.record({
    cuts: fc.array(fc.integer({ min: 1, max: 30_000 }), { maxLength: 10 }),
    blocks: fc.integer({ min: 1, max: 4 })
  })
  fc.assert(
    fc.property(answer, answer, fc.array(fc.boolean(), { maxLength: 30 }), (a, b, turns) => {
      const piece = buffer(4 * BLOCK - 5)
      const run = piece.take(4, 1)!
      piece.takeAgain(4, 2)
      const sides = [a, b].map(({ cuts }, index) => {
        const receiver = new BlockReceiver(index + 1)
        const request = pendingRequest({ buffer: piece, run }, 0)
        receiver.start(request)
        const bytes = new Uint8Array(request.length).fill(index + 1)
        let at = 0
        return () => {
          if (at >= bytes.length) return false
          const take = cuts.shift() ?? bytes.length
          receiver.data(bytes.subarray(at, at + take))
          at += take
          return true
        }
      })
      for (const turn of turns) sides[turn ? 1 : 0]!()
      while (sides[0]!() || sides[1]!()) {
        /* until both are through */
      }
      expect(piece.complete).toBe(true)
      for (let block = 0; block < piece.blockCount; block += 1) {
        const bytes = piece.slot.bytes.subarray(block * BLOCK, (block + 1) * BLOCK)
        expect(new Set(bytes)).toEqual(new Set([piece.senderOf(block)]))
      }
    }),
    { numRuns: 200 }
  )
})

test('a sealed piece is not touched by late answers', () => {
  const piece = buffer(BLOCK)
  const run = piece.take(1, 1)!
  const receiver = new BlockReceiver(2)
  receiver.start(pendingRequest({ buffer: piece, run }, 0))
  piece.receive(0, 1)
  piece.sealed = true
  receiver.data(new Uint8Array(BLOCK).fill(9))
  expect(piece.slot.bytes.every((byte) => byte === 0)).toBe(true)
})

test('slots stay within the budget, are returned, and waiters are served in order', () => {
  const pool = new SlotPool(4 * BLOCK)
  const slots = [1, 2, 3, 4].map(() => pool.acquire(BLOCK)!)
  expect(pool.acquire(1)).toBeUndefined()
  const told: string[] = []
  pool.wait(() => told.push('first'))
  pool.wait(() => told.push('second'))
  pool.release(slots.pop()!)
  expect(told).toEqual(['first'])
  pool.release(slots.pop()!)
  expect(told).toEqual(['first', 'second'])
  // larger than everything, but it is the only one.
  for (const slot of slots) pool.release(slot)
  expect(pool.acquire(100 * BLOCK)).toBeDefined()
})
