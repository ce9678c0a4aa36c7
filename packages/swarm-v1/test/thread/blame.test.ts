import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Blame } from '../../src/thread/blame.ts'

const GOOD = new Uint8Array(64).fill(1)
const good = GOOD.subarray(0, 32)
const bad = new Uint8Array(32)

test('a peer that alone sent a wrong piece is banned', () => {
  const blame = new Blame()
  blame.sent(0, 0, bad, 'liar', 0)
  expect(blame.failed(0)).toEqual(['liar'])
  expect(blame.isBanned('liar')).toBe(true)
  expect(blame.failed(0)).toEqual([])
})

test('none of several senders is banned without proof, however many pieces fail', () => {
  const blame = new Blame()
  for (let piece = 0; piece < 100; piece++) {
    blame.sent(piece, 0, bad, 'liar', 0)
    blame.sent(piece, 32, good, 'honest', 0)
    expect(blame.failed(piece)).toEqual([])
  }
  expect(blame.isBanned('honest')).toBe(false)
})

test('a failing piece is then requested from one peer at a time, whose first failure is proof', () => {
  const blame = new Blame(5_000)
  blame.sent(0, 0, bad, 'liar', 0)
  blame.sent(0, 32, good, 'honest', 0)
  blame.failed(0)
  expect(blame.suspects).toBe(1)
  expect(blame.mayAsk(0, 'liar', 0)).toBe(true)
  blame.asked(0, 'liar', 0)
  expect(blame.mayAsk(0, 'honest', 1)).toBe(false)
  expect(blame.mayAsk(1, 'honest', 1)).toBe(true)
  blame.sent(0, 0, bad, 'liar', 2)
  blame.sent(0, 32, bad, 'liar', 2)
  expect(blame.failed(0)).toEqual(['liar'])
  expect(blame.mayAsk(0, 'honest', 3)).toBe(true)
})

test('the correct piece shows who sent wrong blocks before', () => {
  const blame = new Blame()
  blame.sent(0, 0, bad, 'liar', 0)
  blame.sent(0, 32, good, 'honest', 0)
  blame.failed(0)
  blame.asked(0, 'honest', 1)
  blame.sent(0, 0, good, 'honest', 1)
  // a block of the earlier try that comes late.
  blame.sent(0, 32, bad, 'liar', 1)
  blame.sent(0, 32, good, 'honest', 1)
  expect(blame.verified(0, GOOD)).toEqual(['liar'])
  expect(blame.isBanned('honest')).toBe(false)
  expect(blame.suspects).toBe(0)
})

test('a peer that sends nothing, or leaves, loses its turn', () => {
  const blame = new Blame(5_000)
  blame.failed(0)
  blame.asked(0, 'slow', 0)
  expect(blame.mayAsk(0, 'other', 4_999)).toBe(false)
  expect(blame.mayAsk(0, 'other', 5_000)).toBe(true)
  blame.left('slow')
  expect(blame.mayAsk(0, 'other', 1)).toBe(true)
})

test('a peer that sends now and then keeps its turn for a minute at most, and does not get the next one', () => {
  const blame = new Blame(5_000)
  blame.failed(0)
  blame.asked(0, 'drips', 0)
  let now = 0
  for (; now < 59_000; now += 1_000) {
    blame.sent(0, now, good, 'drips', now)
    expect(blame.mayAsk(0, 'other', now + 999)).toBe(false)
  }
  expect(blame.mayAsk(0, 'other', 60_000)).toBe(true)
  blame.asked(0, 'other', 60_000)
  blame.failed(0)
  expect(blame.mayAsk(0, 'drips', 65_000)).toBe(false)
  expect(blame.mayAsk(0, 'other', 65_000)).toBe(true)
  expect(blame.mayAsk(0, 'drips', 70_000)).toBe(true)
})

test('a liar is banned at a public address with all ports, at a private one with its own port', () => {
  const blame = new Blame()
  for (const [piece, liar] of ['8.8.4.4:6881', '127.0.0.1:5000'].entries()) {
    blame.sent(piece, 0, bad, liar, 0)
    expect(blame.failed(piece)).toEqual([liar])
  }
  expect(
    ['8.8.4.4:50000', '8.8.4.5:6881', '127.0.0.1:5000', '127.0.0.1:5001'].map((each) => blame.isBanned(each))
  ).toEqual([true, false, true, false])
})

test('whatever the order of blocks, honest peers are never banned, and each liar is once the piece is correct', () => {
  const BLOCKS = 4
  const right = Uint8Array.from({ length: BLOCKS * 32 }, (_, at) => at)
  const block = fc.record({
    at: fc.nat(BLOCKS - 1),
    sender: fc.constantFrom('honest-a', 'honest-b', 'liar-a', 'liar-b'),
    lies: fc.boolean()
  })
  fc.assert(
    fc.property(
      fc.array(fc.array(block, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 7 }),
      (attempts) => {
        const blame = new Blame()
        const banned = new Set<string>()
        const liars = new Set<string>()
        for (const attempt of attempts) {
          for (let at = 0; at < BLOCKS; at++) {
            const given = attempt.filter((each) => each.at === at)
            // somebody has to give each block, and some are given twice.
            for (const { sender, lies } of given.length > 0 ? given : [{ sender: 'honest-a', lies: false }]) {
              const isWrong = lies && sender.startsWith('liar')
              const bytes = right.slice(at * 32, at * 32 + 32)
              if (isWrong) {
                bytes[0]! ^= 255
                liars.add(sender)
              }
              blame.sent(0, at * 32, bytes, sender, 0)
            }
          }
          if (!attempt.some(({ lies, sender }) => lies && sender.startsWith('liar'))) continue
          for (const each of blame.failed(0)) banned.add(each)
        }
        for (let at = 0; at < BLOCKS; at++) blame.sent(0, at * 32, right.slice(at * 32, at * 32 + 32), 'honest-b', 0)
        for (const each of blame.verified(0, right)) banned.add(each)
        expect([...banned].sort()).toEqual([...liars].sort())
      }
    ),
    { numRuns: 1_000 }
  )
})
