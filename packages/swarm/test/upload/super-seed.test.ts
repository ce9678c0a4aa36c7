import { describe, expect, test } from 'vitest'
import { Bitfield } from '../../src/bitfield.ts'
import { SuperSeed } from '../../src/upload/super-seed.ts'

const PIECES = 64
const seeded = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) & 0x7fff_ffff
  return seed / 0x8000_0000
}

class Crowd {
  readonly seed = new SuperSeed({ pieceCount: PIECES, pieceBytes: 1_048_576, random: seeded(5) })
  readonly bits = new Map<number, Bitfield>()
  readonly offered: [number, number][] = []
  nowMs = 0

  join(...ids: readonly number[]): void {
    for (const id of ids) {
      const bits = new Bitfield(PIECES)
      this.bits.set(id, bits)
      this.seed.joined(id, bits, this.nowMs)
    }
  }

  offers(): readonly (readonly [number, number])[] {
    const offers = this.seed.offers(this.nowMs)
    for (const [id, piece] of offers) this.offered.push([id, piece])
    return offers
  }

  got(id: number, piece: number): void {
    this.bits.get(id)!.set(piece)
    this.seed.got(id, piece, this.nowMs)
  }
}

describe('super-seeding', () => {
  test('each piece is offered once while peers come for them, and never two peers the same', () => {
    const crowd = new Crowd()
    crowd.join(1, 2, 3, 4, 5, 6, 7, 8)
    while (crowd.offered.length < PIECES) {
      const offers = crowd.offers()
      expect(offers.length).toBeGreaterThan(0)
      // what one gets, all get from it
      for (const [id, piece] of offers) {
        crowd.got(id, piece)
        for (const other of crowd.bits.keys()) if (other !== id) crowd.got(other, piece)
      }
      crowd.nowMs += 100
    }
    expect(new Set(crowd.offered.map(([, piece]) => piece)).size).toBe(PIECES)
    expect(crowd.offered).toHaveLength(PIECES)
    expect(crowd.offers()).toEqual([])
  })

  test('only a few peers have offers at first', () => {
    const crowd = new Crowd()
    crowd.join(...Array.from({ length: 20 }, (_, id) => id + 1))
    expect(new Set(crowd.offers().map(([id]) => id)).size).toBe(4)
    expect(crowd.offers()).toEqual([])
  })

  test('who comes when everything is among the others is told of nothing, unless they give it nothing', () => {
    const crowd = new Crowd()
    crowd.join(1)
    while (!crowd.bits.get(1)!.complete) for (const [id, piece] of crowd.offers()) crowd.got(id, piece)
    // a seed leaves: two seeds have nothing to say to each other
    crowd.seed.gone(1)
    crowd.join(2)
    expect(crowd.offers()).toEqual([])
    crowd.nowMs += crowd.seed.patienceMs - 1
    expect(crowd.offers()).toEqual([])
    crowd.nowMs += 1
    const [first] = crowd.offers()
    expect(first?.[0]).toBe(2)
    // one piece from somebody else, and the others are left to give again
    const lacking = [...Array(PIECES).keys()].find(
      (piece) => !crowd.bits.get(2)!.has(piece) && !crowd.offered.some(([id, each]) => id === 2 && each === piece)
    )!
    crowd.got(2, lacking)
    expect(crowd.offers()).toEqual([])
  })

  test('what a peer does not come for is offered to others', () => {
    const crowd = new Crowd()
    crowd.join(1, 2)
    const lost = crowd.offers().filter(([id]) => id === 1)
    expect(lost.length).toBeGreaterThan(0)
    const rounds = PIECES * 4
    for (let round = 0; round < rounds && !crowd.bits.get(2)!.complete; round += 1) {
      crowd.nowMs += 1_000
      for (const [id, piece] of crowd.offers()) if (id === 2) crowd.got(2, piece)
      for (const [id, piece] of crowd.offered) if (id === 2 && !crowd.bits.get(2)!.has(piece)) crowd.got(2, piece)
    }
    expect(crowd.bits.get(2)!.complete).toBe(true)
  })

  test('pieces of a peer that leaves incomplete are offered again', () => {
    const crowd = new Crowd()
    crowd.join(1)
    while (crowd.bits.get(1)!.count < PIECES - 1)
      for (const [id, piece] of crowd.offers().slice(0, PIECES - 1)) {
        if (crowd.bits.get(1)!.count < PIECES - 1) crowd.got(id, piece)
      }
    crowd.seed.gone(1)
    crowd.join(2)
    const before = crowd.offered.length
    while (!crowd.bits.get(2)!.complete) for (const [id, piece] of crowd.offers()) crowd.got(id, piece)
    expect(new Set(crowd.offered.slice(before).map(([, piece]) => piece)).size).toBe(PIECES)
  })

  test('what is offered goes by what leaves: little at first, more to those who are fast', () => {
    const crowd = new Crowd()
    crowd.join(1)
    expect(crowd.offers()).toHaveLength(16)
    crowd.join(2, 3, 4, 5, 6, 7, 8)
    expect(crowd.offers()).toEqual([])
    for (const [id, piece] of crowd.offered.slice(0, 14)) crowd.got(id, piece)
    // 14 have left within the second, 2 have not: twice as many may be out
    expect(crowd.offers()).toHaveLength(28 - 2)
  })

  test('an offer is not taken back from a peer that is at work on it', () => {
    const crowd = new Crowd()
    crowd.join(1, 2)
    crowd.offers()
    for (let second = 0; second < 60; second += 1) {
      crowd.nowMs += 1_000
      crowd.seed.waits(1, crowd.nowMs)
      crowd.offers()
    }
    const mine = crowd.offered.filter(([id]) => id === 1).map(([, piece]) => piece)
    expect(new Set(mine).size).toBe(mine.length)
    for (const piece of mine) expect(crowd.offered.filter(([, other]) => other === piece)).toHaveLength(1)
  })
})
