import { expect, test } from 'vitest'
import { Blame } from '../../src/thread/blame.ts'

const GOOD = new Uint8Array(64).fill(1)
const good = GOOD.subarray(0, 32)
const bad = new Uint8Array(32)

test('a peer that sent a wrong piece alone is banned', () => {
  const blame = new Blame()
  blame.sent(0, 0, bad, 'liar', 0)
  expect(blame.failed(0)).toEqual(['liar'])
  expect(blame.isBanned('liar')).toBe(true)
  expect(blame.failed(0)).toEqual([])
})

test('of several senders nobody is banned without proof, however often it happens', () => {
  const blame = new Blame()
  for (let piece = 0; piece < 100; piece++) {
    blame.sent(piece, 0, bad, 'liar', 0)
    blame.sent(piece, 32, good, 'honest', 0)
    expect(blame.failed(piece)).toEqual([])
  }
  expect(blame.isBanned('honest')).toBe(false)
})

test('after that the piece is asked of one peer at a time; the first failure of that one is proof', () => {
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

test('the right piece shows who sent wrong blocks before', () => {
  const blame = new Blame()
  blame.sent(0, 0, bad, 'liar', 0)
  blame.sent(0, 32, good, 'honest', 0)
  blame.failed(0)
  blame.asked(0, 'honest', 1)
  blame.sent(0, 0, good, 'honest', 1)
  // A block of the earlier try that comes late.
  blame.sent(0, 32, bad, 'liar', 1)
  blame.sent(0, 32, good, 'honest', 1)
  expect(blame.verified(0, GOOD)).toEqual(['liar'])
  expect(blame.isBanned('honest')).toBe(false)
  expect(blame.suspects).toBe(0)
})

test('a peer that sends nothing, or is gone, loses the turn', () => {
  const blame = new Blame(5_000)
  blame.failed(0)
  blame.asked(0, 'slow', 0)
  expect(blame.mayAsk(0, 'other', 4_999)).toBe(false)
  expect(blame.mayAsk(0, 'other', 5_000)).toBe(true)
  blame.left('slow')
  expect(blame.mayAsk(0, 'other', 1)).toBe(true)
})
