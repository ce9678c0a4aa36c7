import { BLOCK_BYTES } from '@svc/metainfo'
import type { Slot } from './slot-pool.ts'

/** Limit of kept attempts at a piece that keeps failing. */
const MAX_ATTEMPTS = 8
/** No sender. Senders are positive numbers. */
export const NOBODY = 0
const FREE = 0
const REQUESTED = 1
const RECEIVED = 2

export interface BlockRun {
  readonly first: number
  readonly count: number
}

/** The blocks of a piece that was wrong. */
export interface WrongAttempt {
  /** Their hashes, 32 bytes each. */
  readonly leaves: Uint8Array
  readonly senders: Uint32Array
}

/**
 * One piece in progress: its slot, and for each 16 KiB block whether it is free, requested or received, and from whom. Pure state.
 *
 * Invariants: a received block's bytes came from one sender and never change again; `free + requested +
 * received = blocks`.
 */
export class PieceBuffer {
  readonly piece: number
  readonly slot: Slot
  readonly blockCount: number
  /** The only source that may take blocks, as long as it is fast enough; NOBODY: any source. */
  exclusive = NOBODY
  /** The piece was wrong before: a single sender now supplies all of it, so that a second failure shows the culprit. */
  parole = false
  /** Earlier attempts: once the piece is right, they show who sent wrong blocks. */
  readonly wrong: WrongAttempt[] = []
  /** With `parole`: the sources that had the piece and did not finish it, and when each lost it. */
  readonly passedAt = new Map<number, number>()
  paroleSince = 0
  /** When it was begun, by the caller's clock. */
  begunAt = 0
  /** When a block of it last arrived, by the caller's clock. */
  touchedAt = 0
  /** Being verified; nothing may touch the slot. */
  sealed = false
  readonly #state: Uint8Array
  /** The sources that a block was requested from: the first, and in the end game a second. */
  readonly #asked: Uint32Array
  readonly #askedToo: Uint32Array
  readonly #sender: Uint32Array
  /** The source that is writing a block's bytes into the slot. */
  readonly #claims: Uint32Array
  #free: number
  #received = 0
  #firstFree = 0

  constructor(piece: number, slot: Slot) {
    this.piece = piece
    this.slot = slot
    this.blockCount = Math.ceil(slot.bytes.length / BLOCK_BYTES)
    this.#state = new Uint8Array(this.blockCount)
    this.#asked = new Uint32Array(this.blockCount)
    this.#askedToo = new Uint32Array(this.blockCount)
    this.#sender = new Uint32Array(this.blockCount)
    this.#claims = new Uint32Array(this.blockCount)
    this.#free = this.blockCount
  }

  get sizeBytes(): number {
    return this.slot.bytes.length
  }

  get freeBlocks(): number {
    return this.#free
  }

  get receivedBlocks(): number {
    return this.#received
  }

  /** Of received blocks. */
  get receivedBytes(): number {
    const isShort = this.isReceived(this.blockCount - 1)
    return this.#received * BLOCK_BYTES - (isShort ? this.blockCount * BLOCK_BYTES - this.sizeBytes : 0)
  }

  get complete(): boolean {
    return this.#received === this.blockCount
  }

  get requestedBlocks(): number {
    return this.blockCount - this.#free - this.#received
  }

  isReceived(block: number): boolean {
    return this.#state[block] === RECEIVED
  }

  /** Bytes in a run of blocks; the last block may be short. */
  runBytes(run: BlockRun): number {
    return Math.min((run.first + run.count) * BLOCK_BYTES, this.sizeBytes) - run.first * BLOCK_BYTES
  }

  /** Marks up to `max` consecutive free blocks as requested from `source`. */
  take(max: number, source: number): BlockRun | undefined {
    if (this.#free === 0) return undefined
    while (this.#state[this.#firstFree] !== FREE) this.#firstFree += 1
    const first = this.#firstFree
    let count = 0
    while (count < max && first + count < this.blockCount && this.#state[first + count] === FREE) {
      this.#state[first + count] = REQUESTED
      this.#asked[first + count] = source
      count += 1
    }
    this.#free -= count
    return { first, count }
  }

  /** End game: up to `max` consecutive blocks that only one other source was asked for. */
  takeAgain(max: number, source: number): BlockRun | undefined {
    for (let first = 0; first < this.blockCount; first += 1) {
      let count = 0
      while (count < max && first + count < this.blockCount && this.#doubles(first + count, source)) {
        this.#askedToo[first + count] = source
        count += 1
      }
      if (count > 0) return { first, count }
    }
    return undefined
  }

  #doubles(block: number, source: number): boolean {
    return this.#state[block] === REQUESTED && this.#askedToo[block] === NOBODY && this.#asked[block] !== source
  }

  /** A source's request is void: its blocks are free again unless another source was asked, too. */
  release(run: BlockRun, source: number): void {
    for (let block = run.first; block < run.first + run.count; block += 1) {
      if (this.#state[block] !== REQUESTED) continue
      if (this.#asked[block] === source) {
        this.#asked[block] = this.#askedToo[block]!
        this.#askedToo[block] = NOBODY
      } else if (this.#askedToo[block] === source) this.#askedToo[block] = NOBODY
      if (this.#asked[block] !== NOBODY) continue
      this.#state[block] = FREE
      this.#free += 1
      if (block < this.#firstFree) this.#firstFree = block
    }
  }

  /** True when `sender` may write the block into the slot now: it has not arrived, and nobody else is writing it. */
  claim(block: number, sender: number): boolean {
    if (this.#refuses(block, sender)) return false
    const owner = this.#claims[block]
    if (owner !== NOBODY && owner !== sender) return false
    this.#claims[block] = sender
    return true
  }

  #refuses(block: number, sender: number): boolean {
    return this.sealed || this.#state[block] === RECEIVED || this.isBarred(sender)
  }

  /** On parole, blocks are taken from a single sender; answers to earlier requests to others come too late. */
  isBarred(sender: number): boolean {
    return this.parole && sender !== this.exclusive
  }

  holdsClaim(block: number, sender: number): boolean {
    return this.#claims[block] === sender
  }

  unclaim(block: number, sender: number): void {
    if (this.#claims[block] === sender) this.#claims[block] = NOBODY
  }

  retire(): void {
    this.sealed = true
    this.#claims.fill(NOBODY)
  }

  /** All bytes of the block are in the slot. */
  receive(block: number, sender: number): void {
    if (this.isBarred(sender)) this.unclaim(block, sender)
    if (this.#refuses(block, sender)) return
    if (this.#state[block] === FREE) this.#free -= 1
    this.#state[block] = RECEIVED
    this.#asked[block] = NOBODY
    this.#askedToo[block] = NOBODY
    this.#sender[block] = sender
    this.#claims[block] = NOBODY
    this.#received += 1
  }

  /** Stores another sender's complete copy of a block whose claimant is slow. */
  receiveCopy(block: number, sender: number, bytes: Uint8Array): void {
    if (this.#refuses(block, sender)) return
    this.slot.bytes.set(bytes, block * BLOCK_BYTES)
    this.receive(block, sender)
  }

  senderOf(block: number): number {
    return this.#sender[block]!
  }

  /** Keeps a wrong attempt; `leaves` are the hashes of its blocks. */
  remember(leaves: Uint8Array): void {
    if (this.wrong.push({ leaves, senders: this.#sender.slice() }) > MAX_ATTEMPTS) this.wrong.shift()
  }

  senders(): ReadonlySet<number> {
    const senders = new Set<number>()
    for (let block = 0; block < this.blockCount; block += 1) {
      if (this.#state[block] === RECEIVED) senders.add(this.#sender[block]!)
    }
    return senders
  }

  forget(block: number): void {
    if (this.#state[block] !== RECEIVED) return
    this.#state[block] = FREE
    this.#sender[block] = NOBODY
    this.#received -= 1
    this.#free += 1
    if (block < this.#firstFree) this.#firstFree = block
  }
}
