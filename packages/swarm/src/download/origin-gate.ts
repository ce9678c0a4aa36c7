/** What may currently be requested from a webseed. */
export interface WebseedAllowance {
  /** Take pieces that no near peer has first, starting at a random one, so that nodes start in different places. */
  readonly scattered: boolean
  /** Take only those, one at a time. */
  readonly unsharedOnly: boolean
  /** With `unsharedOnly`: see `OriginGate.rank`. */
  readonly rank: number
}

/** Limit of far peers with requests while near peers deliver. */
export const FAR_AT_ONCE = 4

/**
 * Decides when to request pieces that near peers have from a far source (a webseed, or a peer of another zone): only if near peers have
 * delivered next to nothing for a while, until they do again. Pure: times in milliseconds of one monotonic clock.
 *
 * Pieces that no near peer has may always be requested, one or two at a time: a node announces each piece at once, so that the
 * others fetch different ones.
 */
export class OriginGate {
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
   * @param jitter in [0, 1): spreads the first requests of nodes that start simultaneously
   * @param pieceBytes larger pieces get longer timeouts
   */
  constructor({
    nowMs,
    jitter,
    pieceBytes
  }: {
    readonly nowMs: number
    readonly jitter: number
    readonly pieceBytes: number
  }) {
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
    return { scattered: true, unsharedOnly: !alone && !this.isStarving(nowMs), rank: this.rank(nowMs) }
  }

  /**
   * How many nodes that would be before us at a piece have had time to take it: see `Neighbourhood.isMine`. One after the other, so
   * that not all who have brought in their own pieces take the same one of a slow node; but nobody waits for more than a few.
   */
  rank(nowMs: number): number {
    const turns = Math.max(0, Math.floor((nowMs - this.#tookAt) / this.#turnMs))
    return turns < MAX_TURNS ? turns : Number.POSITIVE_INFINITY
  }

  /** A piece that no near peer has was requested from a far source. */
  took(nowMs: number): void {
    this.#tookAt = nowMs
  }

  /** Such a piece has arrived after so much time: others will need about as much for theirs. */
  brought(tookMs: number): void {
    this.#turnMs = Math.min(MAX_TURN_MS, Math.max(this.#leastTurnMs, TURN_PIECES * tookMs))
    const share = NEAR_SHARE * (this.#timeoutMs / Math.max(1, tookMs)) * this.#pieceBytes
    this.#leastBytes = Math.max(this.#pieceBytes, LEAST_BYTES, share)
  }

  /**
   * A near peer delivered so many bytes. A block now and then is no delivery: all that is fetched within the time-out has to be
   * a piece and a mebibyte, and an eighth of what the far source gives within it.
   */
  nearGave(nowMs: number, bytes: number): void {
    const before = Math.max(this.#nearAt, nowMs - this.#timeoutMs)
    this.#nearAt = Math.min(nowMs, before + (this.#timeoutMs * bytes) / this.#leastBytes)
  }

  /** No near peer has anything that we lack: it is no fault of theirs that they give nothing. */
  nearHasNothing(nowMs: number): void {
    this.#nearAt = nowMs
  }

  /** Whether near peers have delivered so little for so long that far sources may be used for pieces that they have. */
  isStarving(nowMs: number): boolean {
    return nowMs - this.#nearAt >= this.#timeoutMs
  }
}

const MIB = 1_048_576
/** Time to connect and to learn who has what. */
const MIN_DELAY_MS = 300
const SPREAD_MS = 1_200
const TIMEOUT_MS = 4_000
/** After this long without a piece to fetch ourselves, the next node's pieces may be fetched as well. */
const TURN_MS = 2_000
const MAX_TURN_MS = 20_000
/** Another node has had its chance when a piece could have come so many times. */
const TURN_PIECES = 3
const TIMEOUT_PER_MIB_MS = 1_000
/** After so many turns without a piece to fetch, any piece may be fetched. */
const MAX_TURNS = 6
const LEAST_BYTES = MIB
/** Of what a far source gives, the share that near peers have to give for it to be spared. */
const NEAR_SHARE = 1 / 8
