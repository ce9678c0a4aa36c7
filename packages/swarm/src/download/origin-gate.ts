/**
 * When a far source (a webseed, or a peer of another zone) may be asked for what near peers have: not while these give. Near
 * peers that give nothing for a while count as absent until one gives again. Pure: times in milliseconds of one monotonic clock.
 *
 * What no near peer has may always be taken, a piece or two at a time: each node takes few, says at once what it has, and
 * the others take something else.
 */
export class OriginGate {
  readonly #patienceMs: number
  readonly #readyAt: number
  #nearAt: number

  /**
   * @param jitter in [0, 1): nodes that start at the same moment do not come at the same moment
   * @param pieceBytes a large piece takes longer until it counts as given
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
    this.#readyAt = nowMs + MIN_DELAY_MS + jitter * SPREAD_MS
    this.#patienceMs = PATIENCE_MS + (PATIENCE_PER_MIB_MS * pieceBytes) / MIB + jitter * SPREAD_MS
    this.#nearAt = nowMs
  }

  /** A near peer gave a block. */
  nearGave(nowMs: number): void {
    this.#nearAt = nowMs
  }

  /** The first moments are for finding out who is there. */
  isOpen(nowMs: number): boolean {
    return nowMs >= this.#readyAt
  }

  /** Near peers have given nothing for so long that others are asked for what those have. */
  isStarving(nowMs: number): boolean {
    return nowMs - this.#nearAt >= this.#patienceMs
  }
}

const MIB = 1_048_576
/** Connecting, and hearing who has what. */
const MIN_DELAY_MS = 300
const SPREAD_MS = 1_200
const PATIENCE_MS = 4_000
const PATIENCE_PER_MIB_MS = 1_000
