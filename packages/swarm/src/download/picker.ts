import type { Bitfield } from '../bitfield.ts'
import type { Sparing } from './far-sources.ts'

/** 3 is highest; 0: do not fetch. */
export type Priority = 0 | 1 | 2 | 3
const PRIORITIES = 3

/** Consecutive pieces of one file. */
export interface PieceRange {
  readonly firstPiece: number
  readonly endPiece: number
}

/** Pieces that at least this many peers have count as equally common. */
const RARITIES = 32
/** The last bucket holds the pieces that are not to be picked (verified, in progress, unwanted). */
const OUT = PRIORITIES * RARITIES

/**
 * Chooses the piece to start next: by priority, then rarest first, random among equals. While no peer lacks any piece, the
 * first one is taken, so that a reader of the file can follow. Peers are near or far: an unshared piece is one that
 * no near peer has, the only kind to ask of a far source while near ones deliver. Pure state.
 *
 * Invariants: `#order` is a permutation of all pieces grouped by bucket, `#position` its inverse; no piece before
 * `#first` is open; `#openUnshared` counts the open pieces that no near peer has, apart from near seeds.
 */
export class PiecePicker {
  readonly pieceCount: number
  readonly #availability: Uint16Array
  /** The near peers among them, without near seeds. */
  readonly #near: Uint16Array
  readonly #priority: Uint8Array
  readonly #open: Uint8Array
  readonly #order: Uint32Array
  readonly #position: Uint32Array
  readonly #bucketStart: Uint32Array
  readonly #random: () => number
  #seeds = 0
  #nearSeeds = 0
  #openCount = 0
  #openUnshared = 0
  #first = 0
  /** Set while every peer has all pieces, see above. */
  inOrder = false

  /** `random` returns numbers in [0, 1). All pieces start closed: `reopen` those whose hash is known. */
  constructor(pieceCount: number, random: () => number) {
    this.pieceCount = pieceCount
    this.#random = random
    this.#availability = new Uint16Array(pieceCount)
    this.#near = new Uint16Array(pieceCount)
    this.#priority = new Uint8Array(pieceCount).fill(1)
    this.#open = new Uint8Array(pieceCount)
    this.#order = new Uint32Array(pieceCount)
    this.#position = new Uint32Array(pieceCount)
    this.#bucketStart = new Uint32Array(OUT + 2)
    this.#bucketStart[OUT + 1] = pieceCount
    for (let piece = 0; piece < pieceCount; piece += 1) {
      const other = Math.floor(random() * (piece + 1))
      this.#order[piece] = this.#order[other]!
      this.#order[other] = piece
    }
    for (let at = 0; at < pieceCount; at += 1) this.#position[this.#order[at]!] = at
  }

  get openCount(): number {
    return this.#openCount
  }

  isOpen(piece: number): boolean {
    return this.#open[piece] === 1 && this.#priority[piece]! > 0
  }

  availability(piece: number): number {
    return this.#availability[piece]! + this.#seeds
  }

  isUnshared(piece: number): boolean {
    return this.#nearSeeds === 0 && this.#near[piece] === 0
  }

  get openUnshared(): number {
    return this.#nearSeeds > 0 ? 0 : this.#openUnshared
  }

  #bucket(piece: number): number {
    const priority = this.#priority[piece]!
    if (this.#open[piece] === 0 || priority === 0) return OUT
    return (PRIORITIES - priority) * RARITIES + Math.min(RARITIES - 1, this.#availability[piece]!)
  }

  #swap(a: number, b: number): void {
    const first = this.#order[a]!
    const second = this.#order[b]!
    this.#order[a] = second
    this.#order[b] = first
    this.#position[second] = a
    this.#position[first] = b
  }

  /** Moves a piece from bucket `from` to its current bucket, one bucket at a time, to a random place there. */
  #move(piece: number, from: number): void {
    const to = this.#bucket(piece)
    if (to === from) return
    if (to > from) {
      for (let bucket = from; bucket < to; bucket += 1) {
        const last = this.#bucketStart[bucket + 1]! - 1
        this.#swap(this.#position[piece]!, last)
        this.#bucketStart[bucket + 1] = last
      }
    } else {
      for (let bucket = from; bucket > to; bucket -= 1) {
        const first = this.#bucketStart[bucket]!
        this.#swap(this.#position[piece]!, first)
        this.#bucketStart[bucket] = first + 1
      }
    }
    if (to === OUT) return
    const start = this.#bucketStart[to]!
    const size = this.#bucketStart[to + 1]! - start
    this.#swap(this.#position[piece]!, start + Math.floor(this.#random() * size))
  }

  #change(piece: number, apply: () => void): void {
    const wasOpen = this.isOpen(piece)
    const from = wasOpen ? this.#bucket(piece) : OUT
    const wasUnshared = wasOpen && this.#near[piece] === 0
    apply()
    const open = this.isOpen(piece)
    if (open !== wasOpen) this.#openCount += open ? 1 : -1
    const unshared = open && this.#near[piece] === 0
    if (unshared !== wasUnshared) this.#openUnshared += unshared ? 1 : -1
    if (open && piece < this.#first) this.#first = piece
    this.#move(piece, from)
  }

  /** A seed joined (`+1`) or left (`-1`). */
  addSeed(delta: 1 | -1, near = true): void {
    this.#seeds += delta
    if (near) this.#nearSeeds += delta
  }

  /** A peer with these pieces joined (`+1`) or left (`-1`). */
  addPeer(bits: Bitfield, delta: 1 | -1, near = true): void {
    for (let piece = 0; piece < this.pieceCount; piece += 1) if (bits.has(piece)) this.addHave(piece, delta, near)
  }

  addHave(piece: number, delta: 1 | -1, near = true): void {
    this.#change(piece, () => {
      this.#availability[piece]! += delta
      if (near) this.#near[piece]! += delta
    })
  }

  setPriority(piece: number, priority: Priority): void {
    this.#change(piece, () => {
      this.#priority[piece] = priority
    })
  }

  reopen(piece: number): void {
    this.#change(piece, () => {
      this.#open[piece] = 1
    })
  }

  /** The piece is in progress, verified or impossible to verify. */
  close(piece: number): void {
    this.#change(piece, () => {
      this.#open[piece] = 0
    })
  }

  /** The piece to start for a source with `bits` (undefined: all pieces). It stays open until `close`. */
  pick(bits: Bitfield | undefined, sparing?: Sparing): number | undefined {
    if (this.#openCount === 0 || (sparing && this.openUnshared === 0)) return undefined
    if (this.inOrder && !sparing && (bits === undefined || bits.complete)) return this.#firstOpen()
    const fits = (piece: number): boolean =>
      (bits === undefined || bits.has(piece)) && (!sparing || (this.#near[piece] === 0 && sparing(piece)))
    for (let at = 0; at < this.#openCount; at += 1) {
      const piece = this.#order[at]!
      if (fits(piece)) return piece
    }
    return undefined
  }

  #firstOpen(): number {
    const top = this.#priority[this.#order[0]!]
    while (!this.isOpen(this.#first)) this.#first += 1
    let piece = this.#first
    while (!(this.isOpen(piece) && this.#priority[piece] === top)) piece += 1
    return piece
  }

  /** At most `max` consecutive open pieces: the first such run from `from` on, wrapping around, else the longest. */
  pickRun(
    first: number,
    end: number,
    max: number,
    { from = first, sparing }: { readonly from?: number | undefined; readonly sparing?: Sparing } = {}
  ): { readonly first: number; readonly count: number } | undefined {
    if (sparing && this.openUnshared === 0) return undefined
    const fits = (piece: number): boolean =>
      this.isOpen(piece) && (!sparing || (this.#near[piece] === 0 && sparing(piece)))
    const start = Math.max(first, Math.min(from, end))
    const late = this.#runIn(start, end, max, fits)
    if (late?.count === max || start === first) return late
    const early = this.#runIn(first, start, max, fits)
    return early !== undefined && (late === undefined || early.count > late.count) ? early : late
  }

  #runIn(
    first: number,
    end: number,
    max: number,
    fits: (piece: number) => boolean
  ): { readonly first: number; readonly count: number } | undefined {
    let best: { first: number; count: number } | undefined
    let start = -1
    for (let piece = first; piece <= end; piece += 1) {
      if (piece < end && fits(piece)) {
        if (start < 0) start = piece
        if (piece - start + 1 >= max) return { first: start, count: max }
      } else if (start >= 0) {
        if (best === undefined || piece - start > best.count) best = { first: start, count: piece - start }
        start = -1
      }
    }
    return best
  }
}
