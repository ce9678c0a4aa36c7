import { describe, expect, test } from 'vitest'
import { Bitfield } from '../../src/bitfield.ts'
import { SuperSeed } from '../../src/upload/super-seed.ts'
import { seeded } from '../seeded.ts'

const PIECES = 64
const MIB = 1_048_576

class Crowd {
  readonly seed = new SuperSeed({ pieceCount: PIECES, pieceBytes: MIB, random: seeded(5) })
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

  /** The peer has the piece: from the seed, which sent all of it, if it was offered. */
  got(id: number, piece: number): void {
    this.seed.sent(id, piece, MIB, this.nowMs)
    this.says(id, piece)
  }

  says(id: number, piece: number): void {
    this.bits.get(id)!.set(piece)
    this.seed.got(id, piece, this.nowMs)
  }

  /** For this many seconds, each honest peer takes its new offers, and all other honest ones get them from it. */
  trade(seconds: number, honest: readonly number[], hostile: () => void): void {
    for (let second = 0; second < seconds; second += 1) {
      this.nowMs += 1_000
      hostile()
      for (const [id, piece] of this.offers()) {
        if (!honest.includes(id)) continue
        this.got(id, piece)
        for (const other of honest) if (other !== id) this.says(other, piece)
      }
    }
  }
}

describe('super-seeding', () => {
  test('each piece is offered to one peer, once, while peers fetch their offers', () => {
    const crowd = new Crowd()
    crowd.join(1, 2, 3, 4, 5, 6, 7, 8)
    while (crowd.offered.length < PIECES) {
      const offers = crowd.offers()
      expect(offers.length).toBeGreaterThan(0)
      // all peers get each piece from the first
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

  test('a peer that joins complete peers is offered nothing, unless they send it nothing', () => {
    const crowd = new Crowd()
    crowd.join(1)
    while (!crowd.bits.get(1)!.complete) for (const [id, piece] of crowd.offers()) crowd.got(id, piece)
    // it is a seed now and leaves: two seeds have nothing to exchange
    crowd.seed.gone(1)
    crowd.join(2)
    expect(crowd.offers()).toEqual([])
    crowd.nowMs += crowd.seed.timeoutMs - 1
    expect(crowd.offers()).toEqual([])
    crowd.nowMs += 1
    const [first] = crowd.offers()
    expect(first?.[0]).toBe(2)
    // once others give it a piece, they are left to give the rest
    const lacking = [...Array(PIECES).keys()].find(
      (piece) => !crowd.bits.get(2)!.has(piece) && !crowd.offered.some(([id, each]) => id === 2 && each === piece)
    )!
    crowd.got(2, lacking)
    expect(crowd.offers()).toEqual([])
  })

  test('offers that a peer does not fetch go to others', () => {
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

  test('offers follow the upload rate: few at first, more for fast peers', () => {
    const crowd = new Crowd()
    crowd.join(1)
    expect(crowd.offers()).toHaveLength(16)
    crowd.join(2, 3, 4, 5, 6, 7, 8)
    expect(crowd.offers()).toEqual([])
    for (const [id, piece] of crowd.offered.slice(0, 14)) crowd.got(id, piece)
    // 14 have left within the second, 2 have not: twice as many may be out
    expect(crowd.offers()).toHaveLength(28 - 2)
  })

  test('a peer completes while another lets its offers lapse', () => {
    const crowd = new Crowd()
    crowd.join(1, 2)
    crowd.trade(60, [1], () => undefined)
    expect(crowd.bits.get(1)!.complete).toBe(true)
  })

  test('an offer is not withdrawn during its transfer', () => {
    const crowd = new Crowd()
    crowd.join(1, 2)
    crowd.offers()
    const mine = crowd.offered.filter(([id]) => id === 1).map(([, piece]) => piece)
    // a slow link: 16 s for each of four pieces
    for (let second = 0; second < 16 * mine.length; second += 1) {
      crowd.nowMs += 1_000
      const piece = mine[Math.floor(second / 16)]!
      crowd.seed.sent(1, piece, MIB / 16, crowd.nowMs)
      if (second % 16 === 15) crowd.says(1, piece)
      crowd.offers()
    }
    for (const piece of mine) expect(crowd.offered.filter(([, other]) => other === piece)).toHaveLength(1)
  })
})

describe('super-seeding to peers that lie', () => {
  const HONEST = [11, 12, 13, 14, 15, 16]
  const haveOf = (crowd: Crowd): readonly number[] => HONEST.map((id) => crowd.bits.get(id)!.count)
  const ALL = HONEST.map(() => PIECES)

  test('early peers that request a block now and then delay nothing for long', () => {
    const crowd = new Crowd()
    const first = [1, 2, 3, 4]
    crowd.join(...first, ...HONEST)
    crowd.trade(60, HONEST, () => {
      for (const [id, piece] of crowd.offered) if (first.includes(id)) crowd.seed.sent(id, piece, 16_384, crowd.nowMs)
    })
    expect(haveOf(crowd)).toEqual(ALL)
  })

  test('a peer that claims everything and leaves takes nothing from later peers', () => {
    const crowd = new Crowd()
    const all = new Bitfield(PIECES)
    all.setAll()
    for (const id of [1, 2]) {
      crowd.seed.joined(id, all, crowd.nowMs)
      crowd.seed.gone(id)
    }
    crowd.bits.set(3, new Bitfield(PIECES))
    crowd.seed.joined(3, crowd.bits.get(3)!, crowd.nowMs)
    crowd.bits.get(3)!.setAll()
    crowd.seed.toldAll(3)
    crowd.join(...HONEST)
    crowd.trade(20, HONEST, () => undefined)
    expect(haveOf(crowd)).toEqual(ALL)
    // each was uploaded once: the claims were not believed
    const taken = crowd.offered.filter(([id]) => HONEST.includes(id)).map(([, piece]) => piece)
    expect(taken).toHaveLength(PIECES)
  })

  test('a peer that announces unfetched offers gets more offers, and others get the same ones', () => {
    const crowd = new Crowd()
    crowd.join(1, ...HONEST)
    let told = 0
    crowd.trade(60, HONEST, () => {
      for (const [id, piece] of crowd.offered.slice(told)) if (id === 1) crowd.says(1, piece)
      told = crowd.offered.length
    })
    expect(haveOf(crowd)).toEqual(ALL)
  })

  test('what most peers announce is believed to come from another seed', () => {
    const crowd = new Crowd()
    crowd.join(...HONEST)
    const elsewhere = Array.from({ length: PIECES / 2 }, (_, piece) => piece)
    for (const id of HONEST.slice(0, 4)) for (const piece of elsewhere) crowd.says(id, piece)
    crowd.trade(30, HONEST, () => undefined)
    for (const id of HONEST.slice(0, 4)) expect(crowd.bits.get(id)!.complete).toBe(true)
    const first = crowd.offered.slice(0, PIECES / 2).map(([, piece]) => piece)
    expect(first.filter((piece) => piece < PIECES / 2)).toEqual([])
  })
})
