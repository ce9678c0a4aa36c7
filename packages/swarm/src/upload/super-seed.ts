import { Bitfield } from '../bitfield.ts'

/** Limit of unused offers per peer. */
const OFFER_BYTES = 4 * 1_048_576
const ALONE_BYTES = 16 * 1_048_576
/** Limit of offers that are out: twice those that were used in the last second or two; at least this, and a piece for each peer. */
const MIN_OFFERED_BYTES = 16 * 1_048_576
const MIN_OFFERED = 8
const RATE_MS = 1_000
/** An offer that led to nothing for this long no longer counts against the limit. */
const STALE_MS = 5_000
const TIMEOUT_MS = 4_000
const TIMEOUT_PER_MIB_MS = 1_000
const MIB = 1_048_576

/** Offers to a peer lapse when it is sent nothing of them for this many timeouts, */
const UNSERVED_TIMEOUTS = 3
/** and when it has used none of them for this many: one block now and then does not hold them. */
const UNUSED_TIMEOUTS = 6

/** A piece that a peer was told of and has not announced. */
interface Offer {
  readonly sinceMs: number
  /** When the peer was last sent bytes of any of its offers. */
  servedAt: number
  sentBytes: number
}

interface Receiver {
  readonly bits: Bitfield
  /** By piece; those that it does not have yet. */
  readonly offered: Map<number, Offer>
  /** When it last got a piece that we had not offered, so from another peer. */
  elsewhereAt: number
  /** When it last used an offer, or joined. */
  usedAt: number
  /** It joined before many pieces were uploaded: part of a flash crowd, whose members all depend on this seed. */
  readonly early: boolean
  /** Unused offers since it last used one. */
  wasted: number
}

/**
 * Super-seeding (BEP 16) of a first seed: each peer is told of a few pieces, different ones, so that everything leaves once
 * before anything leaves twice, and the peers pass it on. Once they have every piece among them, those that were there from
 * the beginning are offered the rarest ones as well; later ones only if they get nothing from others. Pure.
 *
 * Unlike BEP 16, a peer need not pass its piece on to get another one: within a fleet no peer holds back.
 *
 * Peers may lie. A piece counts as out only if this seed sent it to a peer that then announced it, or if most peers announce
 * it. An offer stays with a peer only while bytes of it are sent, and peers that let offers lapse come last and take nothing
 * of what may be offered to others.
 *
 * Invariant: for a piece that is out, `#copies` counts the peers that have it or were offered it, seeds that have left, and
 * one if all peers are told of it; for others it counts offers, and `#claims` the peers that announce the piece.
 */
export class SuperSeed {
  readonly #pieceCount: number
  readonly #pieceBytes: number
  readonly #sizeOf: (piece: number) => number
  readonly #random: () => number
  readonly #copies: Uint32Array
  readonly #claims: Uint32Array
  readonly #known: ReadonlySet<number>
  readonly #receivers = new Map<number, Receiver>()
  /** All pieces, in random order; those before `#nextFresh` have copies. */
  readonly #fresh: Uint32Array
  #nextFresh = 0
  /** Pieces that some peer really has or had. */
  readonly #out: Bitfield
  /** Number of offers that peers used, in the current and in the previous interval of about a second. */
  #leftNow = 0
  #leftBefore = 0
  #leftSince = 0

  constructor({
    pieceCount,
    pieceBytes,
    sizeOf = () => pieceBytes,
    known = [],
    random
  }: {
    readonly pieceCount: number
    readonly pieceBytes: number
    /** Bytes of a piece: those at the end of a file are smaller. */
    readonly sizeOf?: (piece: number) => number
    /** Pieces that are announced to every peer at once. */
    readonly known?: readonly number[]
    readonly random: () => number
  }) {
    this.#pieceCount = pieceCount
    this.#pieceBytes = pieceBytes
    this.#sizeOf = sizeOf
    this.#random = random
    this.#copies = new Uint32Array(pieceCount)
    this.#claims = new Uint32Array(pieceCount)
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
    this.#receivers.set(id, { bits, offered: new Map(), elsewhereAt: nowMs, usedAt: nowMs, early, wasted: 0 })
    for (let piece = 0; piece < this.#pieceCount; piece += 1) if (bits.has(piece)) this.#announced(piece)
  }

  has(id: number): boolean {
    return this.#receivers.has(id)
  }

  /** The peer announced all of its pieces after having announced none. */
  toldAll(id: number): void {
    const receiver = this.#receivers.get(id)
    if (receiver === undefined) return
    for (let piece = 0; piece < this.#pieceCount; piece += 1) {
      if (!receiver.bits.has(piece)) continue
      if (receiver.offered.delete(piece)) this.#forget(piece)
      this.#announced(piece)
    }
  }

  /** The peer has one more piece. */
  got(id: number, piece: number, nowMs: number): void {
    const receiver = this.#receivers.get(id)
    if (receiver === undefined) return
    const offer = receiver.offered.get(piece)
    // the rest may have come from others
    const used = offer !== undefined && offer.sentBytes >= this.#sizeOf(piece) / 2
    if (used) {
      this.#letOut(piece)
      this.#leftNow += 1
      receiver.wasted = 0
      receiver.usedAt = nowMs
    } else if (offer !== undefined && !this.#out.has(piece)) receiver.wasted += 1
    if (!used && !this.#known.has(piece)) receiver.elsewhereAt = nowMs
    this.#announced(piece)
    if (receiver.offered.delete(piece)) this.#forget(piece)
  }

  /** Bytes of a piece were sent to the peer: it is at work on what it was offered. */
  sent(id: number, piece: number, bytes: number, nowMs: number): void {
    const offered = this.#receivers.get(id)?.offered
    const offer = offered?.get(piece)
    // requesting the same again and again holds no offer
    if (offer === undefined || offer.sentBytes >= this.#sizeOf(piece)) return
    offer.sentBytes += bytes
    for (const each of offered!.values()) each.servedAt = nowMs
  }

  /** One more peer has the piece, or says so. */
  #announced(piece: number): void {
    if (this.#out.has(piece)) {
      this.#copies[piece]! += 1
      return
    }
    this.#claims[piece]! += 1
    if (this.#claims[piece]! > Math.max(1, this.#receivers.size / 2)) this.#letOut(piece)
  }

  /** The piece is out: peers that announce it are believed. */
  #letOut(piece: number): void {
    if (!this.#out.set(piece)) return
    this.#copies[piece]! += this.#claims[piece]!
    this.#claims[piece] = 0
  }

  /** Limit of outstanding offers: a piece that cannot leave soon might go to a peer that passes it on sooner. */
  #budget(nowMs: number): number {
    if (nowMs - this.#leftSince >= RATE_MS) {
      this.#leftBefore = nowMs - this.#leftSince < 2 * RATE_MS ? this.#leftNow : 0
      this.#leftNow = 0
      this.#leftSince = nowMs
    }
    const least = Math.max(MIN_OFFERED, Math.ceil(MIN_OFFERED_BYTES / this.#pieceBytes))
    return Math.max(least, 2 * (this.#leftBefore + this.#leftNow))
  }

  /** The peer disconnected. A complete one still counts as a copy: seeds disconnect from each other but keep uploading. */
  gone(id: number): void {
    const receiver = this.#receivers.get(id)
    if (receiver === undefined) return
    this.#receivers.delete(id)
    const stays = receiver.bits.complete
    for (let piece = 0; piece < this.#pieceCount; piece += 1) {
      if (receiver.offered.has(piece)) this.#forget(piece)
      if (!receiver.bits.has(piece)) continue
      if (!this.#out.has(piece)) this.#claims[piece]! -= 1
      else if (!stays) this.#forget(piece)
    }
  }

  #forget(piece: number): void {
    this.#copies[piece]! -= 1
    if (this.#copies[piece] === 0) this.#nextFresh = 0
  }

  /** Unused offers expire, and their pieces are offered to others again. */
  #takeBack(nowMs: number): void {
    for (const receiver of this.#receivers.values()) {
      for (const [piece, offer] of receiver.offered) {
        const since = this.#isUsing(receiver, offer, nowMs) ? offer.servedAt : offer.sinceMs
        if (nowMs - since < this.timeoutMs * UNSERVED_TIMEOUTS) continue
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
    const all = [...this.#receivers].filter(([, { bits }]) => !bits.complete)
    let left = Math.max(all.length, this.#budget(nowMs)) - this.#underWay(nowMs)
    // called for every piece of every peer
    if (left <= 0 && all.every(([, { offered }]) => offered.size > 0)) return []
    const perPeer = Math.max(2, Math.ceil((all.length === 1 ? ALONE_BYTES : OFFER_BYTES) / this.#pieceBytes))
    all.sort(([, a], [, b]) => a.wasted - b.wasted || a.offered.size - b.offered.size || a.bits.count - b.bits.count)
    const out: (readonly [number, number])[] = []
    for (const [id, receiver] of all) {
      const starving = nowMs - receiver.elsewhereAt >= this.timeoutMs
      while (receiver.offered.size < perPeer && (left > 0 || (starving && receiver.offered.size === 0))) {
        const piece = this.#pieceFor(receiver, starving, idle)
        if (piece === undefined) break
        receiver.offered.set(piece, { sinceMs: nowMs, servedAt: nowMs, sentBytes: 0 })
        this.#copies[piece]! += 1
        out.push([id, piece])
        left -= 1
      }
    }
    return out
  }

  #pieceFor(receiver: Receiver, starving: boolean, idle: boolean): number | undefined {
    const mayShare = starving || (receiver.early && (idle || this.#out.complete))
    return this.#freshFor(receiver.bits) ?? (mayShare ? this.#rarestFor(receiver) : undefined)
  }

  /** A peer that gets nothing from others for this long is offered pieces that others have, too. */
  get timeoutMs(): number {
    return TIMEOUT_MS + (TIMEOUT_PER_MIB_MS * this.#pieceBytes) / MIB
  }

  /** Number of offers that count against what may be offered to all. */
  #underWay(nowMs: number): number {
    let count = 0
    for (const receiver of this.#receivers.values())
      for (const offer of receiver.offered.values())
        if (this.#isUsing(receiver, offer, nowMs) && nowMs - offer.servedAt < STALE_MS) count += 1
    return count
  }

  /** Whether the peer uses its offers. */
  #isUsing({ wasted, usedAt }: Receiver, { sinceMs }: Offer, nowMs: number): boolean {
    return wasted === 0 && nowMs - Math.max(usedAt, sinceMs) < this.timeoutMs * UNUSED_TIMEOUTS
  }

  /** A piece that no peer was offered or really has; preferably one that no peer announces. */
  #freshFor(bits: Bitfield): number | undefined {
    while (this.#nextFresh < this.#pieceCount && this.#copies[this.#fresh[this.#nextFresh]!]! > 0) this.#nextFresh += 1
    let claimed: number | undefined
    for (let at = this.#nextFresh; at < this.#pieceCount; at += 1) {
      const piece = this.#fresh[at]!
      if (this.#copies[piece]! > 0) continue
      if (this.#claims[piece] === 0) return piece
      if (claimed === undefined && !bits.has(piece)) claimed = piece
    }
    return claimed
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
