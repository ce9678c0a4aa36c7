/** What a webseed may take at the moment. */
export interface WebseedAllowance {
  /** Pieces that no near peer has come first, from a random one on: others begin elsewhere. */
  readonly scattered: boolean
  /** And no others are taken, one after the other. */
  readonly unsharedOnly: boolean
  /** Of these only those that are not for others to bring in. */
  readonly ownOnly?: boolean
}

/** Far peers that are asked for something at a time, while near ones give. */
export const FAR_AT_ONCE = 4

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
  readonly #turnMs: number
  #nearAt: number
  #tookAt: number

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
    this.#turnMs = TURN_MS + jitter * SPREAD_MS
    this.#tookAt = this.#readyAt
  }

  /** What a webseed may take; `alone`: nobody is connected. */
  allowance(nowMs: number, alone: boolean): WebseedAllowance | undefined {
    if (nowMs < this.#readyAt) return undefined
    if (alone || this.isStarving(nowMs)) return { scattered: true, unsharedOnly: false }
    return { scattered: true, unsharedOnly: true, ownOnly: !this.takesOthers(nowMs) }
  }

  /** Whether pieces may be taken that others should bring in: they have had the time to. */
  takesOthers(nowMs: number): boolean {
    return nowMs - this.#tookAt >= this.#turnMs
  }

  /** A piece that no near peer has was taken from afar. */
  took(nowMs: number): void {
    this.#tookAt = nowMs
  }

  /** A near peer gave a block, or none has anything to give. */
  nearGave(nowMs: number): void {
    this.#nearAt = nowMs
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
/** After the last piece of one's own, until those of others are looked at; then between one and the next. */
const TURN_MS = 2_000
const PATIENCE_PER_MIB_MS = 1_000
