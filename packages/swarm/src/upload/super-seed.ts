import { Bitfield } from '../bitfield.ts'

/** Number of peers with offers at first: a piece is uploaded sooner if few peers share the link. Grows with each uploaded piece. */
const FIRST_PEERS = 4
/** Limit of unused offers per peer. */
const OFFER_BYTES = 4 * 1_048_576
const ALONE_BYTES = 16 * 1_048_576
/** Offered to all and not passed on yet: what left within the last second or two, twice, and at least so much, and a piece for each peer. */
const MIN_OFFERED_BYTES = 16 * 1_048_576
const RATE_MS = 1_000
/** An offer that led to nothing for this long no longer counts against the limit. */
const STALE_MS = 5_000
const PATIENCE_MS = 4_000
const PATIENCE_PER_MIB_MS = 1_000
const MIB = 1_048_576

interface Receiver {
  readonly bits: Bitfield
  /** Pieces offered to it that it does not have yet, with the time of the offer. */
  readonly offered: Map<number, number>
  /** When it last got a piece that we had not offered, so from another peer. */
  elsewhereAt: number
  /** It joined before many pieces were uploaded: part of a flash crowd, whose members all depend on this seed. */
  readonly early: boolean
  /** Unused offers since it last used one. */
  wasted: number
}

/**
 * Super-seeding (BEP 16) of a first seed: peers are told of a few pieces each, different ones, so that everything leaves once
 * before anything leaves twice, and the peers give it to one another. Once the peers have every piece among them, those that were there from the
 * beginning are offered the rarest ones as well; later ones only if they get nothing from others. Pure: randomness is given, times in milliseconds of one monotonic clock.
 *
 * Unlike BEP 16, a peer need not pass its piece on to get another one: within a fleet no peer holds back.
 * Invariant: `#copies` is the count of peers that have the piece or were offered it, of seeds that were seen, and one for what all are told.
 */
export class SuperSeed {
  readonly #pieceCount: number
  readonly #pieceBytes: number
  readonly #random: () => number
  readonly #copies: Uint32Array
  readonly #known: ReadonlySet<number>
  readonly #receivers = new Map<number, Receiver>()
  /** Pieces that nobody has or was offered, in random order; entries taken since are skipped. */
  readonly #fresh: Uint32Array
  #nextFresh = 0
  /** Pieces that some peer has or had. */
  readonly #out: Bitfield
  /** Number of offers that peers used. */
  #left = 0
  /** Of these, in the current and in the previous interval of about a second. */
  #leftNow = 0
  #leftBefore = 0
  #leftSince = 0

  constructor({
    pieceCount,
    pieceBytes,
    known = [],
    random
  }: {
    readonly pieceCount: number
    readonly pieceBytes: number
    /** Pieces that are announced to every peer at once. */
    readonly known?: readonly number[]
    readonly random: () => number
  }) {
    this.#pieceCount = pieceCount
    this.#pieceBytes = pieceBytes
    this.#random = random
    this.#copies = new Uint32Array(pieceCount)
    this.#known = new Set(known)
    this.#out = new Bitfield(pieceCount)
    for (const piece of known) {
      this.#copies[piece] = 1
      this.#out.set(piece)
    }
    this.#fresh = new Uint32Array(pieceCount)
    for (let piece = 0; piece < pieceCount; piece += 1) {
      const other = Math.floor(random() * (piece + 1))
      this.#fresh[piece] = this.#fresh[other]!
      this.#fresh[other] = piece
    }
  }

  /** @param bits what it has, updated by the caller; must not change before this returns */
  joined(id: number, bits: Bitfield, nowMs: number): void {
    const early = this.#out.count - this.#known.size < this.#pieceCount / 4
    this.#receivers.set(id, { bits, offered: new Map(), elsewhereAt: nowMs, early, wasted: 0 })
    for (let piece = 0; piece < this.#pieceCount; piece += 1) {
      if (!bits.has(piece)) continue
      this.#copies[piece]! += 1
      this.#out.set(piece)
    }
  }

  has(id: number): boolean {
    return this.#receivers.has(id)
  }

  /** The peer announced all of its pieces after having announced none. */
  toldAll(id: number): void {
    const receiver = this.#receivers.get(id)
    if (receiver === undefined) return
    for (let piece = 0; piece < this.#pieceCount; piece += 1)
      if (receiver.bits.has(piece)) {
        this.#out.set(piece)
        if (!receiver.offered.delete(piece)) this.#copies[piece]! += 1
      }
  }

  /** The peer has one more piece. */
  got(id: number, piece: number, nowMs: number): void {
    const receiver = this.#receivers.get(id)
    if (receiver === undefined) return
    receiver.wasted = 0
    this.#out.set(piece)
    if (receiver.offered.delete(piece)) {
      this.#left += 1
      this.#leftNow += 1
    } else {
      this.#copies[piece]! += 1
      if (!this.#known.has(piece)) receiver.elsewhereAt = nowMs
    }
  }

  /** The peer has requested what it was offered and waits for it: its offers are not stale. */
  waits(id: number, nowMs: number): void {
    const offered = this.#receivers.get(id)?.offered
    for (const piece of offered?.keys() ?? []) offered!.set(piece, nowMs)
  }

  /** Number of offers that may be outstanding. What is offered long before it can leave might go to somebody who passes it on sooner. */
  #budget(nowMs: number): number {
    if (nowMs - this.#leftSince >= RATE_MS) {
      this.#leftBefore = nowMs - this.#leftSince < 2 * RATE_MS ? this.#leftNow : 0
      this.#leftNow = 0
      this.#leftSince = nowMs
    }
    const least = Math.max(2 * FIRST_PEERS, Math.ceil(MIN_OFFERED_BYTES / this.#pieceBytes))
    return Math.max(least, 2 * (this.#leftBefore + this.#leftNow))
  }

  /** The peer disconnected. A complete one still counts as a copy: seeds disconnect from each other but keep uploading. */
  gone(id: number): void {
    const receiver = this.#receivers.get(id)
    if (receiver === undefined) return
    this.#receivers.delete(id)
    const stays = receiver.bits.complete
    for (let piece = 0; piece < this.#pieceCount; piece += 1) {
      const counted = receiver.bits.has(piece) || receiver.offered.has(piece)
      if (counted && !(stays && receiver.bits.has(piece))) this.#forget(piece)
    }
  }

  #forget(piece: number): void {
    this.#copies[piece]! -= 1
    if (this.#copies[piece] === 0) this.#nextFresh = 0
  }

  /** Unused offers expire, and their pieces are offered to others again. */
  #takeBack(nowMs: number): void {
    for (const receiver of this.#receivers.values()) {
      for (const [piece, since] of receiver.offered) {
        if (nowMs - since < this.patienceMs * 3) continue
        receiver.offered.delete(piece)
        receiver.wasted += 1
        this.#forget(piece)
      }
    }
  }

  /**
   * Pieces to tell peers of now. Peers that used their last offers and have the fewest pieces come first. `idle`: nobody requests
   * anything, so that pieces offered to others may be sent a second time.
   */
  offers(nowMs: number, idle = false): readonly (readonly [id: number, piece: number])[] {
    this.#takeBack(nowMs)
    const out: (readonly [number, number])[] = []
    const all = [...this.#receivers].filter(([, { bits }]) => !bits.complete)
    const perPeer = Math.max(2, Math.ceil((all.length === 1 ? ALONE_BYTES : OFFER_BYTES) / this.#pieceBytes))
    let left = Math.max(all.length, this.#budget(nowMs))
    let anyIdle = false
    for (const [, { offered }] of all) {
      if (offered.size === 0) anyIdle = true
      for (const since of offered.values()) if (nowMs - since < STALE_MS) left -= 1
    }
    // asked at every piece of every peer
    if (left <= 0 && !anyIdle) return out
    let active = all.filter(([, receiver]) => this.#isActive(receiver, nowMs)).length
    all.sort(([, a], [, b]) => a.wasted - b.wasted || a.offered.size - b.offered.size || a.bits.count - b.bits.count)
    for (const [id, receiver] of all) {
      if (receiver.offered.size >= perPeer) continue
      const isActive = this.#isActive(receiver, nowMs)
      if (!isActive && active >= FIRST_PEERS + this.#left) continue
      const starving = nowMs - receiver.elsewhereAt >= this.patienceMs
      const before = out.length
      while (receiver.offered.size < perPeer && (left > 0 || (starving && receiver.offered.size === 0))) {
        const piece =
          this.#freshFor(receiver.bits) ??
          (starving || (receiver.early && (idle || this.#out.complete)) ? this.#rarestFor(receiver) : undefined)
        if (piece === undefined) break
        receiver.offered.set(piece, nowMs)
        this.#copies[piece]! += 1
        out.push([id, piece])
        left -= 1
      }
      if (!isActive && out.length > before) active += 1
    }
    return out
  }

  /** A peer that gets nothing from others for this long is offered pieces that others have, too. */
  get patienceMs(): number {
    return PATIENCE_MS + (PATIENCE_PER_MIB_MS * this.#pieceBytes) / MIB
  }

  #isActive({ offered }: Receiver, nowMs: number): boolean {
    for (const since of offered.values()) if (nowMs - since < STALE_MS) return true
    return false
  }

  /** A piece that nobody has or was offered. */
  #freshFor(bits: Bitfield): number | undefined {
    while (this.#nextFresh < this.#pieceCount) {
      const piece = this.#fresh[this.#nextFresh]!
      if (this.#copies[piece] === 0 && !bits.has(piece)) return piece
      this.#nextFresh += 1
    }
    return undefined
  }

  /** The piece with the fewest copies among those it lacks, starting at a random one. */
  #rarestFor({ bits, offered }: Receiver): number | undefined {
    let best: number | undefined
    const from = Math.floor(this.#random() * this.#pieceCount)
    for (let step = 0; step < this.#pieceCount; step += 1) {
      const piece = (from + step) % this.#pieceCount
      if (bits.has(piece) || offered.has(piece) || this.#known.has(piece)) continue
      if (best === undefined || this.#copies[piece]! < this.#copies[best]!) best = piece
    }
    return best
  }
}
