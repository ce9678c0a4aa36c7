import { BLOCK_BYTES } from '@svc/metainfo'
import { copyIntoShared } from '../piece/copy.ts'
import { lending } from '../piece/lending.ts'
import type { PieceBuffer } from '../piece/piece-buffer.ts'
import { PIECE_HEADER_BYTES } from '../wire/messages.ts'
import type { PendingRequest } from './requests.ts'

/**
 * Answers from this size on are read straight into the slot. Smaller ones would take more calls of the system than the copy takes
 * time: several of them come with one read.
 */
const DIRECT_BYTES = 65_536

const DROP = 0
const SLOT = 1
const COPY = 2

/**
 * Stores the bytes of one answer as they arrive: in the piece's slot, where the system may have written them already, in a separate copy
 * while another peer is writing the same block, or nowhere if the block is already there.
 *
 * Invariant: only its claimant writes a block in a slot.
 */
export class BlockReceiver {
  readonly #sender: number
  #request: PendingRequest | undefined
  #at = 0
  #mode = DROP
  #copy: Uint8Array | undefined
  /** What the system may write to: blocks of this piece. */
  #lender: PieceBuffer | undefined
  /** The block in front of which the head of the next message is written. */
  #behind: number | undefined
  /** The last answer was a large one: the next one may be, too. */
  #large = false

  constructor(sender: number) {
    this.#sender = sender
  }

  get active(): boolean {
    return this.#request !== undefined
  }

  start(request: PendingRequest): void {
    this.#request = request
    this.#at = 0
    this.#large = request.length >= DIRECT_BYTES
  }

  /**
   * Where the system should write what comes next, until `settle`: for a large answer into the slot, together with the head of the
   * next message where the block behind it is not there yet; or into `shared`, and not more than belongs to such an answer or is the
   * head of the next one.
   */
  target(shared: Uint8Array): Uint8Array {
    if (!this.#large) return shared
    const request = this.#request
    if (request === undefined) return shared.subarray(0, PIECE_HEADER_BYTES)
    const left = request.length - this.#at
    return this.#slotTarget(request, left) ?? shared.subarray(0, Math.min(left + PIECE_HEADER_BYTES, shared.length))
  }

  #slotTarget(request: PendingRequest, left: number): Uint8Array | undefined {
    const { buffer } = request
    if (request.void || left < BLOCK_BYTES || buffer.sealed) return undefined
    const position = request.begin + this.#at
    const first = Math.floor(position / BLOCK_BYTES)
    // What was left out at its beginning is not gone on with.
    if (position % BLOCK_BYTES !== 0 && (this.#mode !== SLOT || !buffer.holdsClaim(first, this.#sender)))
      return undefined
    const count = Math.ceil((request.begin + request.length) / BLOCK_BYTES) - first
    const { bytes, capacity } = buffer.slot
    if (!lending.take(capacity)) return undefined
    const lent = buffer.lend({ first, count }, this.#sender)
    if (lent === 0) {
      lending.giveBack(capacity)
      return undefined
    }
    this.#lender = buffer
    this.#behind = lent > count ? first + count : undefined
    const end = position + left + (this.#behind === undefined ? 0 : PIECE_HEADER_BYTES)
    return bytes.subarray(position, end)
  }

  /** Something else than an answer came: what is next may be many small messages. */
  interrupt(): void {
    this.#large = false
  }

  /** The system writes no more to the last target: its bytes are passed on now, or never. */
  settle(): void {
    const lender = this.#lender
    if (lender === undefined) return
    this.#lender = undefined
    lender.takeBack(this.#sender)
    lending.giveBack(lender.slot.capacity)
    if (this.#behind === undefined) return
    lender.unclaim(this.#behind, this.#sender)
    this.#behind = undefined
  }

  data(fragment: Uint8Array): void {
    const request = this.#request!
    const buffer = request.buffer
    let taken = 0
    while (taken < fragment.length) {
      const position = request.begin + this.#at
      const block = Math.floor(position / BLOCK_BYTES)
      const inBlock = position - block * BLOCK_BYTES
      if (inBlock === 0) this.#enter(block)
      const blockBytes = Math.min(BLOCK_BYTES, request.length - (this.#at - inBlock))
      const take = Math.min(fragment.length - taken, blockBytes - inBlock)
      if (this.#mode !== DROP) {
        const bytes = take === fragment.length ? fragment : fragment.subarray(taken, taken + take)
        if (this.#mode === COPY) this.#copy!.set(bytes, inBlock)
        else if (!buffer.holdsClaim(block, this.#sender)) this.#mode = DROP
        else if (!isAt(bytes, buffer.slot.bytes, position)) copyIntoShared(bytes, buffer.slot.bytes, position)
      }
      taken += take
      this.#at += take
      if (inBlock + take === blockBytes) this.#leave(block, blockBytes)
    }
  }

  #enter(block: number): void {
    const buffer = this.#request!.buffer
    if (buffer.claim(block, this.#sender)) this.#mode = SLOT
    else if (buffer.sealed || buffer.isReceived(block)) this.#mode = DROP
    else {
      this.#mode = COPY
      this.#copy ??= new Uint8Array(BLOCK_BYTES)
    }
  }

  #leave(block: number, blockBytes: number): void {
    const buffer = this.#request!.buffer
    if (this.#mode === SLOT && buffer.holdsClaim(block, this.#sender)) {
      buffer.receive(block, this.#sender)
    } else if (this.#mode === COPY) {
      buffer.receiveCopy(block, this.#sender, this.#copy!.subarray(0, blockBytes))
    }
    this.#mode = DROP
  }

  /** The answer is complete; returns its request. */
  end(): PendingRequest {
    const request = this.#request!
    this.#request = undefined
    return request
  }

  /** The connection ended in the middle of a block: releases the claims on it and those after it. */
  abandon(): void {
    this.settle()
    const request = this.#request
    if (request === undefined) return
    const { run, buffer } = request
    for (let block = run.first; block < run.first + run.count; block += 1) buffer.unclaim(block, this.#sender)
    this.#request = undefined
  }
}

/** Whether the bytes are those of the slot at this position already. */
const isAt = (bytes: Uint8Array, slot: Uint8Array, position: number): boolean =>
  bytes.buffer === slot.buffer && bytes.byteOffset === slot.byteOffset + position
