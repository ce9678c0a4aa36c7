import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Bitfield } from '../../src/bitfield.ts'
import { PiecePicker, type Priority } from '../../src/download/picker.ts'
import { seeded } from '../seeded.ts'

const PIECES = 40

type Step = {
  readonly kind: 'have' | 'far' | 'open' | 'close' | 'priority'
  readonly piece: number
  readonly value: number
}
const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom('have', 'far', 'open', 'close', 'priority'),
    piece: fc.nat(PIECES - 1),
    value: fc.nat(3)
  }),
  { maxLength: 200 }
)

test('picks like a simple model: open, wanted, highest priority, rarest; the order stays consistent', () => {
  fc.assert(
    fc.property(steps, fc.nat(), fc.uint8Array({ minLength: 5, maxLength: 5 }), (list, seed, wire) => {
      const picker = new PiecePicker(PIECES, seeded(seed))
      const open = new Set<number>()
      const have = new Array<number>(PIECES).fill(0)
      const near = new Array<number>(PIECES).fill(0)
      const priority = new Array<number>(PIECES).fill(1)
      let eligible: readonly number[] = []
      picker.inOrder = true
      for (const { kind, piece, value } of list) {
        if (kind === 'have' || kind === 'far') {
          picker.addHave(piece, 1, kind === 'have')
          have[piece]! += 1
          if (kind === 'have') near[piece]! += 1
        } else if (kind === 'open') {
          picker.reopen(piece)
          open.add(piece)
        } else if (kind === 'close') {
          picker.close(piece)
          open.delete(piece)
        } else {
          picker.setPriority(piece, value as Priority)
          priority[piece] = value
        }
        eligible = [...open].filter((each) => priority[each]! > 0)
        const highest = Math.max(...eligible.map((each) => priority[each]!))
        const first = eligible.filter((each) => priority[each] === highest).sort((a, b) => a - b)[0]
        expect(picker.pick(undefined)).toBe(first)
      }
      const bits = new Bitfield(PIECES)
      bits.load(wire)
      picker.inOrder = false
      expect(picker.openCount).toBe(eligible.length)
      const unshared = eligible.filter((piece) => near[piece] === 0)
      expect(picker.openUnshared).toBe(unshared.length)
      const alone = picker.pick(undefined, () => true)
      if (alone === undefined) expect(unshared).toEqual([])
      else expect(unshared).toContain(alone)
      for (const peer of [undefined, bits]) {
        const wanted = [...open].filter((piece) => priority[piece]! > 0 && (peer === undefined || peer.has(piece)))
        const picked = picker.pick(peer)
        if (wanted.length === 0) {
          expect(picked).toBeUndefined()
          continue
        }
        expect(wanted).toContain(picked)
        const top = Math.max(...wanted.map((piece) => priority[piece]!))
        const rarest = Math.min(...wanted.filter((piece) => priority[piece] === top).map((piece) => have[piece]!))
        expect([priority[picked!], have[picked!]]).toEqual([top, rarest])
      }
      // all of them come, each once, in the order of their ranks
      const ranks = eligible.map((piece) => (3 - priority[piece]!) * 1_000 + have[piece]!)
      const picked: number[] = []
      for (let piece = picker.pick(undefined); piece !== undefined; piece = picker.pick(undefined)) {
        picked.push(piece)
        picker.close(piece)
      }
      expect([...picked].sort()).toEqual([...eligible].sort())
      expect(picked.map((piece) => ranks[eligible.indexOf(piece)])).toEqual(ranks.sort((a, b) => a - b))
    }),
    { numRuns: 300 }
  )
})

test('a run is the longest gap, or the first one that is long enough', () => {
  const picker = new PiecePicker(20, Math.random)
  for (const piece of [0, 1, 3, 4, 5, 6, 9]) picker.reopen(piece)
  expect(picker.pickRun(0, 20, 3)).toEqual({ first: 3, count: 3 })
  expect(picker.pickRun(0, 20, 10)).toEqual({ first: 3, count: 4 })
  expect(picker.pickRun(7, 9, 10)).toBeUndefined()
})

test('a run starts where requested, wraps around, and has only what no near peer has', () => {
  const picker = new PiecePicker(20, Math.random)
  for (let piece = 0; piece < 20; piece += 1) picker.reopen(piece)
  expect(picker.pickRun(0, 20, 3, { from: 11 })).toEqual({ first: 11, count: 3 })
  expect(picker.pickRun(0, 20, 8, { from: 18 })).toEqual({ first: 0, count: 8 })
  for (let piece = 2; piece < 20; piece += 1) if (piece !== 7) picker.addHave(piece, 1)
  picker.addHave(7, 1, false)
  expect(picker.pickRun(0, 20, 4, { from: 5, sparing: () => true })).toEqual({ first: 0, count: 2 })
  expect(picker.pickRun(0, 20, 1, { from: 5, sparing: () => true })).toEqual({ first: 7, count: 1 })
  picker.addSeed(1)
  expect(picker.pickRun(0, 20, 1, { sparing: () => true })).toBeUndefined()
  expect(picker.pick(undefined, () => true)).toBeUndefined()
})

test('seeds count for every piece', () => {
  const picker = new PiecePicker(2, Math.random)
  picker.addSeed(1)
  expect([picker.availability(0), picker.availability(1)]).toEqual([1, 1])
  picker.addSeed(-1)
  expect(picker.availability(0)).toBe(0)
})
