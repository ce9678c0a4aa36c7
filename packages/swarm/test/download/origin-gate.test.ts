import { expect, test } from 'vitest'
import { OriginGate } from '../../src/download/origin-gate.ts'

const MIB = 1_048_576

test('an origin is asked after a moment that differs by node', () => {
  const [early, late] = [0, 0.99].map((jitter) => new OriginGate({ nowMs: 0, jitter, pieceBytes: MIB }))
  expect([early!.isOpen(0), late!.isOpen(0)]).toEqual([false, false])
  expect([early!.isOpen(500), late!.isOpen(500)]).toEqual([true, false])
  expect([early!.isOpen(2_000), late!.isOpen(2_000)]).toEqual([true, true])
})

test('near peers count as absent when they give nothing, and as there when they give again; larger pieces take longer', () => {
  const gate = new OriginGate({ nowMs: 0, jitter: 0, pieceBytes: MIB })
  expect([gate.isStarving(4_999), gate.isStarving(5_000)]).toEqual([false, true])
  gate.nearGave(6_000)
  expect([gate.isStarving(6_000), gate.isStarving(10_999), gate.isStarving(11_000)]).toEqual([false, false, true])
  expect(new OriginGate({ nowMs: 0, jitter: 0, pieceBytes: 16 * MIB }).isStarving(19_000)).toBe(false)
})
