import { BLOCK_BYTES } from '@svc/metainfo'
import type { PendingRequest } from './requests.ts'

const DROP = 0
const SLOT = 1
const COPY = 2

/**
 * Copies the bytes of one answer as they arrive: into the piece's slot, into separate memory while another peer is writing the same
 * block, or nowhere if the block is already there.
 *
 * Invariant: only its claimant writes a block in a slot.
 */
export class BlockReceiver {
  readonly #sender: number
  #request: PendingRequest | undefined
  #at = 0
  #mode = DROP
  #copy: Uint8Array | undefined

  constructor(sender: number) {
    this.#sender = sender
  }

  /** Whether an answer is arriving; the bytes of unsolicited blocks have no receiver. */
  get active(): boolean {
    return this.#request !== undefined
  }

  start(request: PendingRequest): void {
    this.#request = request
    this.#at = 0
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
        else copyIntoShared(bytes, buffer.slot.bytes, position)
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
    const request = this.#request
    if (request === undefined) return
    const { run, buffer } = request
    for (let block = run.first; block < run.first + run.count; block += 1) buffer.unclaim(block, this.#sender)
    this.#request = undefined
  }
}

const { copy } = Buffer.prototype

/** A view of the last fragment's whole buffer; fragments of one connection share one. */
let whole: Uint8Array = new Uint8Array(0)

/**
 * `Uint8Array.set` copies byte by byte into shared memory (0.35 s of CPU per GiB), whereas `Buffer.prototype.copy` with less
 * than the whole source is a memmove (0.06). This depends on Node's implementation, so the benchmarks watch it.
 */
function copyIntoShared(source: Uint8Array, target: Uint8Array, at: number): void {
  if (source.byteLength === source.buffer.byteLength) return target.set(source, at)
  if (whole.buffer !== source.buffer) whole = new Uint8Array(source.buffer)
  const { byteOffset } = source
  copy.call(whole, target, at, byteOffset, byteOffset + source.length)
}
