import { Bitfield } from '../bitfield.ts'
import { protocolError } from './protocol-error.ts'

/** Limit of piece indexes announced before the number of pieces is known: the size of the largest bitfield. */
const MAX_EARLY_PIECE = 2_097_152
/** Limit of `have` messages before the number of pieces is known. */
const MAX_EARLY_HAVES = 100_000

/**
 * The pieces that a peer announced. It may announce them before we know how many there are (with a magnet): those are
 * kept, up to a limit, and checked when the metadata arrives.
 *
 * Invariant: `bits` is undefined exactly while the number of pieces is unknown.
 */
export class PeerPieces {
  #bits: Bitfield | undefined
  #hasAll = false
  #earlyHaves: Set<number> | undefined
  #earlyBits: Uint8Array | undefined
  /** Bitfield, have all and have none may only come first (BEP 3, BEP 6). */
  #sawAny = false

  constructor(pieceCount: number | undefined) {
    if (pieceCount !== undefined) this.#bits = new Bitfield(pieceCount)
  }

  get bits(): Bitfield | undefined {
    return this.#bits
  }

  /** It sent "have all"; also true before the number of pieces is known. */
  get hasAll(): boolean {
    return this.#hasAll
  }

  get isSeed(): boolean {
    return this.#hasAll || this.#bits?.complete === true
  }

  /** 0 to 1; undefined while the number of pieces is unknown. */
  get share(): number | undefined {
    if (this.isSeed) return 1
    return this.#bits && this.#bits.count / Math.max(1, this.#bits.size)
  }

  has(piece: number): boolean {
    return this.#hasAll || this.#bits?.has(piece) === true
  }

  /** True when the piece is new and the number of pieces is known. @throws SwarmError `E_PROTOCOL`. */
  onHave(piece: number): boolean {
    this.#sawAny = true
    if (this.#bits !== undefined) {
      if (piece >= this.#bits.size) throw protocolError('have', 'a piece that does not exist')
      return this.#bits.set(piece)
    }
    if (piece >= MAX_EARLY_PIECE) throw protocolError('have', 'a piece that cannot exist')
    this.#earlyHaves ??= new Set()
    if (this.#earlyHaves.size >= MAX_EARLY_HAVES) throw protocolError('have', 'too many pieces announced one by one')
    this.#earlyHaves.add(piece)
    return false
  }

  /** True when the number of pieces is known. @throws SwarmError `E_PROTOCOL`. */
  onBitfield(body: Uint8Array): boolean {
    if (this.#sawAny) throw protocolError('bitfield', 'a bitfield after other messages')
    this.#sawAny = true
    if (this.#bits === undefined) {
      this.#earlyBits = new Uint8Array(body)
      return false
    }
    if (!this.#bits.load(body)) throw protocolError('bitfield', 'a bitfield with bits beyond the last piece')
    return true
  }

  /** Have all or have none. @throws SwarmError `E_PROTOCOL`. */
  onHaveAll(all: boolean): void {
    if (this.#sawAny) throw protocolError('bitfield', 'have all or none after other messages')
    this.#sawAny = true
    this.#hasAll = all
    if (all) this.#bits?.setAll()
  }

  /** The metadata arrived: checks earlier announcements against it. @throws SwarmError `E_PROTOCOL`. */
  setCount(count: number): void {
    const bits = new Bitfield(count)
    if (this.#hasAll) bits.setAll()
    else if (this.#earlyBits !== undefined && !bits.load(this.#earlyBits))
      throw protocolError('bitfield', 'a bitfield of the wrong size')
    for (const piece of this.#earlyHaves ?? []) {
      if (piece >= count) throw protocolError('have', 'a piece that does not exist')
      bits.set(piece)
    }
    this.#earlyHaves = undefined
    this.#earlyBits = undefined
    this.#bits = bits
  }
}
