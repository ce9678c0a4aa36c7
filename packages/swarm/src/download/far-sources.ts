// When and by which node a piece is brought in from afar: from a webseed, or from a peer of another zone. Each node of a
// neighbourhood computes this for itself, and nodes that see each other get the same answer: rendezvous hashing.
// Pure: times in milliseconds of one monotonic clock.

/** Which pieces that no near peer has to ask a far source for, one at a time; undefined: any piece, as of a near one. */
export type Sparing = ((piece: number) => boolean) | undefined

export interface WebseedAllowance {
  /** Take pieces that no near peer has first, starting at a random one, so that nodes start in different places. */
  readonly scattered: boolean
  readonly sparing: Sparing
}

/** Limit of far peers with requests while near peers deliver. */
export const FAR_AT_ONCE = 4
const MIB = 1_048_576
/** Time to connect and to learn who has what. */
const MIN_DELAY_MS = 300
const SPREAD_MS = 1_200
const TIMEOUT_MS = 4_000
/** After this long without a piece to fetch ourselves, the next node's pieces may be fetched as well. */
const TURN_MS = 2_000
const MAX_TURN_MS = 20_000
/** Another node has had its chance when a piece could have come this many times. */
const TURN_PIECES = 3
const TIMEOUT_PER_MIB_MS = 1_000
/** After so many turns without a piece to fetch, any piece may be fetched. */
const MAX_TURNS = 6
const LEAST_BYTES = MIB
/** A far source is spared while near peers give at least this share of what it gives. */
const NEAR_SHARE = 1 / 8
/** A node that let this many more pieces pass than it brought in is not waited for. */
const MISSES = 3

/** Stands for a node: a hash of its peer id, 32 bits. */
export function nodeHash(peerId: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of peerId) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}

function scoreOf(node: number, piece: number): number {
  let mixed = node ^ Math.imul(piece + 1, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

interface Neighbour {
  readonly hash: number
  missed: number
}

/**
 * Far sources and the near nodes that lack pieces as well. Pieces that near peers have are requested from afar only while
 * near peers deliver next to nothing. Pieces that no near peer has may always be requested, one or two at a time: a node
 * announces each at once, so that the others fetch different ones. Each piece has an order of the near nodes; the first one
 * brings it in, and the others wait their turn. A node that lets turns pass loses them, so that none holds up the others for long.
 */
export class FarSources {
  readonly #own: number
  readonly #neighbours = new Map<number, Neighbour>()
  readonly #pieceBytes: number
  readonly #timeoutMs: number
  readonly #readyAt: number
  readonly #leastTurnMs: number
  #turnMs: number
  /** Bytes that near peers have to deliver within `#timeoutMs` to count as delivering. */
  #leastBytes: number
  /** Near peers count as delivering until `#timeoutMs` after this. */
  #nearAt: number
  #tookAt: number

  /**
   * @param own `nodeHash` of this node
   * @param jitter in [0, 1): spreads the first requests of nodes that start simultaneously
   * @param pieceBytes larger pieces get longer timeouts
   */
  constructor(own: number, nowMs: number, jitter: number, pieceBytes: number) {
    this.#own = own
    this.#pieceBytes = pieceBytes
    this.#leastBytes = Math.max(pieceBytes, LEAST_BYTES)
    this.#readyAt = nowMs + MIN_DELAY_MS + jitter * SPREAD_MS
    this.#timeoutMs = TIMEOUT_MS + (TIMEOUT_PER_MIB_MS * pieceBytes) / MIB + jitter * SPREAD_MS
    this.#nearAt = nowMs
    this.#leastTurnMs = TURN_MS + jitter * SPREAD_MS
    this.#turnMs = this.#leastTurnMs
    this.#tookAt = this.#readyAt
  }

  /** What may be requested from a webseed; `alone`: no near peer is connected. */
  allowance(nowMs: number, alone: boolean): WebseedAllowance | undefined {
    if (nowMs < this.#readyAt) return undefined
    return { scattered: true, sparing: alone || this.isStarving(nowMs) ? undefined : this.mine(nowMs) }
  }

  /**
   * Which pieces this node is to bring in now. Pieces whose first nodes have had time to take them count as well, one
   * node after the other, so that not all take the same piece of a slow node; but no node waits for more than a few.
   */
  mine(nowMs: number): NonNullable<Sparing> {
    const turns = Math.max(0, Math.floor((nowMs - this.#tookAt) / this.#turnMs))
    if (turns >= MAX_TURNS) return () => true
    return (piece) => {
      const score = scoreOf(this.#own, piece)
      let before = 0
      for (const { hash, missed } of this.#neighbours.values()) {
        if (missed < MISSES && scoreOf(hash, piece) < score) before += 1
        if (before > turns) return false
      }
      return true
    }
  }

  /** This node requested a piece that no near peer has, or more of it; it has waited for those that come before. */
  took(piece: number, nowMs: number, isMore = false): void {
    this.#tookAt = nowMs
    if (isMore) return
    const score = scoreOf(this.#own, piece)
    for (const each of this.#neighbours.values()) if (scoreOf(each.hash, piece) < score) each.missed += 1
  }

  /** A near node that lacks pieces is there. */
  joined(id: number, hash: number): void {
    if (!this.#neighbours.has(id)) this.#neighbours.set(id, { hash, missed: 0 })
  }

  /** It left, is not near, or lacks nothing. */
  gone(id: number): void {
    this.#neighbours.delete(id)
  }

  /** A near node has a piece that no near node had. */
  delivered(id: number): void {
    const neighbour = this.#neighbours.get(id)
    if (neighbour !== undefined && neighbour.missed > 0) neighbour.missed -= 1
  }

  /** A piece from afar took this long: other nodes will need about as long for theirs. */
  brought(tookMs: number): void {
    this.#turnMs = Math.min(MAX_TURN_MS, Math.max(this.#leastTurnMs, TURN_PIECES * tookMs))
    const share = NEAR_SHARE * (this.#timeoutMs / Math.max(1, tookMs)) * this.#pieceBytes
    this.#leastBytes = Math.max(this.#pieceBytes, LEAST_BYTES, share)
  }

  /**
   * A near peer delivered these bytes. A block now and then does not count: within the timeout near peers have to deliver a
   * piece and a mebibyte, and an eighth of what the far source gives.
   */
  nearGave(nowMs: number, bytes: number): void {
    const before = Math.max(this.#nearAt, nowMs - this.#timeoutMs)
    this.#nearAt = Math.min(nowMs, before + (this.#timeoutMs * bytes) / this.#leastBytes)
  }

  /** No near peer has anything that we lack: that they give nothing does not count against them. */
  nearHasNothing(nowMs: number): void {
    this.#nearAt = nowMs
  }

  /** Whether near peers have delivered so little for so long that far sources may be used for pieces that they have. */
  isStarving(nowMs: number): boolean {
    return nowMs - this.#nearAt >= this.#timeoutMs
  }
}
