import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ChokeCandidate, chooseOptimistic, chooseUnchoked, isInTurn } from '../../src/upload/choker.ts'
import { FramePool } from '../../src/upload/frame.ts'
import { formatPieceHeader } from '../../src/wire/messages.ts'

const candidate = fc.record<Omit<ChokeCandidate, 'id'>>({
  peerInterested: fc.boolean(),
  amChoking: fc.boolean(),
  trusted: fc.boolean(),
  down: fc.record({ bytesPerSecond: fc.nat(1000) }),
  sentThisTurn: fc.nat(200),
  turnSince: fc.nat(1000),
  uploadActiveAt: fc.nat(1000)
})
const candidates = fc.array(candidate, { maxLength: 30 }).map((list) => list.map((entry, id) => ({ ...entry, id })))

describe('the choker', () => {
  test('never unchokes beyond its slots or uninterested peers, and leaves no slot empty', () => {
    fc.assert(
      fc.property(candidates, fc.integer({ min: 1, max: 8 }), fc.boolean(), (peers, slots, fetching) => {
        const chosen = chooseUnchoked(peers, {
          nowMs: 1000,
          slots,
          fetching,
          quotaBytes: 100,
          optimistic: chooseOptimistic(peers)
        })
        const interested = peers.filter((peer) => peer.peerInterested)
        expect(chosen.size).toBe(Math.min(slots, interested.length))
        for (const id of chosen) expect(peers[id]!.peerInterested).toBe(true)
      })
    )
  })

  test('while fetching, peers of the own fleet come first and take turns, whatever they send', () => {
    const peer = { peerInterested: true, amChoking: true, trusted: false, sentThisTurn: 0, uploadActiveAt: 0 }
    const peers = [
      { ...peer, id: 1, down: { bytesPerSecond: 900 }, turnSince: 5 },
      { ...peer, id: 2, down: { bytesPerSecond: 500 }, turnSince: 9, trusted: true },
      { ...peer, id: 3, down: { bytesPerSecond: 0 }, turnSince: 1, trusted: true },
      { ...peer, id: 4, down: { bytesPerSecond: 1000 }, turnSince: 5 }
    ]
    const chosen = (slots: number): number[] => [
      ...chooseUnchoked(peers, { nowMs: 1000, slots, fetching: true, quotaBytes: 100, optimistic: undefined })
    ]
    expect(chosen(1)).toEqual([3])
    expect(chosen(2)).toEqual([3, 2])
    expect(chosen(3)).toEqual([3, 2, 4])
  })

  test('a turn ends by bytes, by time, or without requests; a busy one also by time', () => {
    const peer = {
      id: 1,
      peerInterested: true,
      amChoking: false,
      trusted: false,
      down: { bytesPerSecond: 0 },
      sentThisTurn: 0,
      turnSince: 1_000
    }
    const inTurn = (nowMs: number, more: Partial<ChokeCandidate>): boolean =>
      isInTurn({ ...peer, uploadActiveAt: nowMs, ...more }, nowMs, 100)
    expect(inTurn(60_999, {})).toBe(true)
    expect(inTurn(61_000, {})).toBe(false)
    expect(inTurn(2_000, { sentThisTurn: 99 })).toBe(true)
    expect(inTurn(2_000, { sentThisTurn: 100 })).toBe(false)
    expect(inTurn(20_999, { uploadActiveAt: 11_000 })).toBe(true)
    expect(inTurn(21_000, { uploadActiveAt: 11_000 })).toBe(false)
    expect(inTurn(2_000, { amChoking: true })).toBe(false)
  })

  test('a seed serves peers in turns: a peer that used up its quota makes room', () => {
    const peers = Array.from({ length: 6 }, (_, id) => ({
      id,
      peerInterested: true,
      trusted: false,
      amChoking: id >= 2,
      down: { bytesPerSecond: 0 },
      sentThisTurn: id === 0 ? 500 : 10,
      turnSince: id,
      uploadActiveAt: 900
    }))
    expect(
      [
        ...chooseUnchoked(peers, { nowMs: 1000, slots: 2, fetching: false, quotaBytes: 100, optimistic: undefined })
      ].sort()
    ).toEqual([1, 2])
  })

  test('a downloading peer serves those that send most, and one at random', () => {
    const peers = Array.from({ length: 6 }, (_, id) => ({
      id,
      peerInterested: true,
      trusted: false,
      amChoking: true,
      down: { bytesPerSecond: id * 100 },
      sentThisTurn: 0,
      turnSince: id,
      uploadActiveAt: 900
    }))
    expect(
      [
        ...chooseUnchoked(peers, {
          nowMs: 1000,
          slots: 3,
          fetching: true,
          quotaBytes: 100,
          optimistic: chooseOptimistic(peers)
        })
      ].sort()
    ).toEqual([0, 4, 5])
  })
})

test('a frame holds the added blocks, each after its header, and is reused', () => {
  const frames = new FramePool()
  for (const lengths of [Array(16).fill(16_384), [131_072, 131_072], [5, 16_384, 7]] as number[][]) {
    const frame = frames.acquire()
    const parts: Uint8Array[] = []
    for (const [at, length] of lengths.entries()) {
      expect(frame.holds(length)).toBe(true)
      frame.add(9, at * 131_072, length).fill(at + 1)
      parts.push(formatPieceHeader(9, at * 131_072, length), new Uint8Array(length).fill(at + 1))
    }
    expect(Buffer.compare(frame.message, Buffer.concat(parts))).toBe(0)
    expect(frame.blockBytes).toBe(lengths.reduce((sum, length) => sum + length))
    frames.release(frame)
    expect(frames.acquire()).toBe(frame)
    frames.release(frame)
  }
  const full = frames.acquire()
  for (let at = 0; at < 16; at += 1) full.add(0, at, 16_384)
  expect(full.holds(1)).toBe(false)
})
