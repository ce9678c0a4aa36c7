import type { Bitfield } from '../bitfield.ts'

/** 3 is highest; 0: do not fetch. */
export type Priority = 0 | 1 | 2 | 3
const PRIORITIES = 3
/** Pieces that at least this many peers have count as equally common. */
const RARITIES = 32
/** The last bucket holds the pieces that are not to be picked (verified, in progress, unwanted). */
const OUT = PRIORITIES * RARITIES

/**
 * Chooses the piece to start next: by priority, then rarest first, random among equals. The first few are random
 * whatever their rarity. While no peer lacks any piece, every order serves the swarm equally; the first piece is then
 * taken, so that hashing or reading the file in order can follow closely. Pure state: it counts the peers per piece,
 * and seeds once for all pieces.
 *
 * Invariants: `#order` is a permutation of all pieces grouped by bucket, `#position` its inverse; no piece before
 * `#first` is open.
 */
export class PiecePicker {
  readonly pieceCount: number
  readonly #availability: Uint16Array
  readonly #priority: Uint8Array
  /** 1: may be started. */
  readonly #open: Uint8Array
  readonly #order: Uint32Array
  readonly #position: Uint32Array
  readonly #bucketStart: Uint32Array
  readonly #random: () => number
  #seeds = 0
  #openCount = 0
  #started = 0
  #first = 0
  /** Set while every peer has all pieces, see above. */
  inOrder = false

  /** `random` returns numbers in [0, 1). All pieces start closed: `reopen` those whose hash is known. */
  constructor(pieceCount: number, random: () => number) {
    this.pieceCount = pieceCount
    this.#random = random
    this.#availability = new Uint16Array(pieceCount)
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

  /** Number of pieces that could be started now. */
  get openCount(): number {
    return this.#openCount
  }

  isOpen(piece: number): boolean {
    return this.#open[piece] === 1 && this.#priority[piece]! > 0
  }

  availability(piece: number): number {
    return this.#availability[piece]! + this.#seeds
  }

  #bucket(piece: number): number {
    const priority = this.#priority[piece]!
    if (this.#open[piece] === 0 || priority === 0) return OUT
    return (PRIORITIES - priority) * RARITIES + Math.min(RARITIES - 1, this.#availability[piece]!)
  }

  #bucketAt(position: number): number {
    let low = 0
    let high = OUT
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#bucketStart[middle]! <= position) low = middle
      else high = middle - 1
    }
    return low
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
    apply()
    const open = this.isOpen(piece)
    if (open !== wasOpen) this.#openCount += open ? 1 : -1
    if (open && piece < this.#first) this.#first = piece
    this.#move(piece, from)
  }

  /** A seed joined (`+1`) or left (`-1`). */
  addSeed(delta: 1 | -1): void {
    this.#seeds += delta
  }

  addPeer(bits: Bitfield): void {
    for (let piece = 0; piece < this.pieceCount; piece += 1) if (bits.has(piece)) this.addHave(piece, 1)
  }

  removePeer(bits: Bitfield): void {
    for (let piece = 0; piece < this.pieceCount; piece += 1) if (bits.has(piece)) this.addHave(piece, -1)
  }

  addHave(piece: number, delta: 1 | -1): void {
    this.#change(piece, () => {
      this.#availability[piece]! += delta
    })
  }

  setPriority(piece: number, priority: Priority): void {
    this.#change(piece, () => {
      this.#priority[piece] = priority
    })
  }

  /** The piece may be started (again). */
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
  pick(bits: Bitfield | undefined): number | undefined {
    if (this.#openCount === 0) return undefined
    if (this.inOrder && (bits === undefined || bits.complete)) return this.#firstOpen()
    if (this.#started < 4) {
      for (let attempt = 0; attempt < 8; attempt += 1) {
        const piece = this.#order[Math.floor(this.#random() * this.#topCount())]!
        if (bits !== undefined && !bits.has(piece)) continue
        this.#started += 1
        return piece
      }
    }
    for (let at = 0; at < this.#openCount; at += 1) {
      const piece = this.#order[at]!
      if (bits === undefined || bits.has(piece)) {
        this.#started += 1
        return piece
      }
    }
    return undefined
  }

  /** The first open piece of the highest priority. */
  #firstOpen(): number {
    const top = this.#priority[this.#order[0]!]
    while (!this.isOpen(this.#first)) this.#first += 1
    let piece = this.#first
    while (!(this.isOpen(piece) && this.#priority[piece] === top)) piece += 1
    return piece
  }

  /** Number of open pieces of the highest priority among them. */
  #topCount(): number {
    for (let priority = 1; priority <= PRIORITIES; priority += 1) {
      const end = this.#bucketStart[priority * RARITIES]!
      if (end > 0) return end
    }
    return this.#openCount
  }

  /** The longest run of open pieces in `[first, end)`, at most `max` pieces, for one range request of a webseed. */
  pickRun(first: number, end: number, max: number): { readonly first: number; readonly count: number } | undefined {
    let best: { first: number; count: number } | undefined
    let start = -1
    for (let piece = first; piece <= end; piece += 1) {
      if (piece < end && this.isOpen(piece)) {
        if (start < 0) start = piece
        if (piece - start + 1 >= max) return { first: start, count: max }
      } else if (start >= 0) {
        if (best === undefined || piece - start > best.count) best = { first: start, count: piece - start }
        start = -1
      }
    }
    return best
  }

  checkInvariants(): void {
    let open = 0
    for (let piece = 0; piece < this.pieceCount; piece += 1) {
      const at = this.#position[piece]!
      if (this.#order[at] !== piece) throw new Error(`piece ${piece} is not at its position`)
      if (this.#bucketAt(at) !== this.#bucket(piece) && !this.#emptyTie(at, this.#bucket(piece))) {
        throw new Error(`piece ${piece} stands in the wrong bucket`)
      }
      if (this.isOpen(piece)) open += 1
    }
    if (open !== this.#openCount) throw new Error(`${open} pieces are open, ${this.#openCount} counted`)
    for (let piece = 0; piece < this.#first; piece += 1)
      if (this.isOpen(piece)) throw new Error(`piece ${piece} is open, before the first open one`)
  }

  #emptyTie(position: number, bucket: number): boolean {
    return this.#bucketStart[bucket]! <= position && position < this.#bucketStart[bucket + 1]!
  }
}
