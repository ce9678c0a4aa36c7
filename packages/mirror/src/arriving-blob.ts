import type { BlobReader } from '@svc/cas'
import { type Clock, systemClock } from '@svc/internal-clock'
import type { Sha256Digest } from '@svc/ref'
import { Notifier } from './notifier.ts'
import type { ServedStore } from './served-store.ts'
import { later } from './upstream.ts'

/** Held back, so that there is something to send while nothing arrives. */
const RESERVE_BYTES = 64 << 10
/** Some clients give up after ten seconds without a byte. */
const TRICKLE_MS = 3_000
/** At this rate the reserve lasts for most of an hour. */
const TRICKLE_BYTES = 64

/** The transfer of a blob that clients wait for. */
export interface Arrival {
  /** Settles when no more data will arrive: with the error if the transfer failed. */
  readonly over: Promise<Error | undefined>
}

/** Bytes of a blob that have passed the proofs of their pieces, while the rest of it arrives. */
export interface Proven {
  /** Where such bytes from `offset` on end, at `end` at the latest. */
  until(offset: number, end: number): number
  /** @returns 0 if they were taken back */
  read(target: Uint8Array, offset: number): Promise<number>
  close(): void
}

export interface ArrivingOptions {
  /** Calls `onNews` when there is more. Absent: nothing is read before the whole blob is verified. */
  readonly proven?: ((onNews: () => void) => Proven) | undefined
  /** Clients read parts of it in sequence: requested bytes are sent once proven, the last byte included. */
  readonly inParts?: boolean
  /** Whether the store's bytes under the digest may be read. */
  readonly mayRead: () => Promise<boolean>
  /** Called once, when it is closed. */
  readonly onClose?: () => void
  readonly trickleMs?: number
  readonly clock?: Clock
  readonly reserveBytes?: number
}

/**
 * A blob that is read while it arrives. Each byte has passed the proof of its piece, or the SHA-256 of the blob, which
 * is then in the store. Unless it is read in parts, the last byte of a read waits for the latter. While nothing
 * arrives, a reserve is sent slowly, so that clients do not give up.
 */
export class ArrivingBlob implements BlobReader {
  readonly fd = undefined
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  readonly #store: ServedStore
  readonly #clock: Clock
  readonly #news: Notifier
  readonly #proven: Proven | undefined
  readonly #options: ArrivingOptions
  #lastGivenMs: number
  #final: BlobReader | undefined
  #ended: { readonly error: Error | undefined } | undefined
  #isAbandoned = false
  #isClosed = false

  constructor(
    store: ServedStore,
    { digest, sizeBytes }: Pick<BlobReader, 'digest' | 'sizeBytes'>,
    arrival: Arrival,
    options: ArrivingOptions
  ) {
    this.digest = digest
    this.sizeBytes = sizeBytes
    this.#store = store
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#news = new Notifier(this.#clock)
    this.#lastGivenMs = this.#clock.monotonic()
    this.#proven = options.proven?.(this.#news.tell)
    void arrival.over.then((error) => {
      this.#ended = { error }
      this.#news.tell()
    })
  }

  /** The whole blob, if it is here within `timeoutMs`. @throws the error that ended the transfer */
  async whole(timeoutMs: number): Promise<BlobReader | undefined> {
    const until = this.#clock.monotonic() + timeoutMs
    for (;;) {
      this.#news.clear()
      const whole = await this.#whole()
      const leftMs = until - this.#clock.monotonic()
      if (whole !== undefined || leftMs <= 0 || this.#isAbandoned) return whole
      await this.#news.next(leftMs)
    }
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    const count = await this.#read(target, offset)
    this.#lastGivenMs = this.#clock.monotonic()
    return count
  }

  async *stream({ start = 0, end = this.sizeBytes } = {}): AsyncGenerator<Uint8Array> {
    for (let offset = start; offset < end; ) {
      const chunk = new Uint8Array(Math.min(RESERVE_BYTES, end - offset))
      const count = await this.read(chunk, offset)
      offset += count
      yield chunk.subarray(0, count)
    }
  }

  /** Ends all reads: a waiting one fails. It must still be closed. */
  abandon(): void {
    this.#isAbandoned = true
    this.#news.tell()
  }

  async close(): Promise<void> {
    this.abandon()
    if (this.#isClosed) return
    this.#isClosed = true
    this.#proven?.close()
    this.#options.onClose?.()
    await this.#final?.close()
  }

  async #read(target: Uint8Array, offset: number): Promise<number> {
    const { trickleMs = TRICKLE_MS, reserveBytes = RESERVE_BYTES } = this.#options
    for (;;) {
      this.#news.clear()
      if (this.#isAbandoned) throw new Error(`the reader of ${this.digest} has gone`)
      if (this.#final !== undefined) return this.#final.read(target, offset)
      const proven = (this.#proven?.until(offset, offset + target.length) ?? offset) - offset
      if (proven <= reserveBytes && (this.#final = await this.#whole()) !== undefined) continue
      const waitMs = this.#lastGivenMs + trickleMs - this.#clock.monotonic()
      const length = this.#sendable(proven, target.length, waitMs <= 0)
      const count = length === 0 ? 0 : await this.#proven!.read(target.subarray(0, length), offset)
      if (count > 0) return count
      await this.#news.next(waitMs > 0 && proven > 0 ? waitMs : trickleMs)
    }
  }

  /** How many proven bytes may be sent now: those beyond the reserve, or some of it if a trickle is due. */
  #sendable(provenBytes: number, wantedBytes: number, isTrickleDue: boolean): number {
    const { reserveBytes = RESERVE_BYTES, inParts = false } = this.#options
    if (inParts && provenBytes === wantedBytes) return wantedBytes
    const length = provenBytes > reserveBytes ? provenBytes - reserveBytes : isTrickleDue ? TRICKLE_BYTES : 0
    // the last byte waits for the whole blob
    return Math.max(0, Math.min(length, provenBytes, wantedBytes - 1))
  }

  /** @throws the error that ended the transfer */
  async #whole(): Promise<BlobReader | undefined> {
    // read before the store is, since the blob may arrive there in between
    const ended = this.#ended
    if ((await this.#store.stat(this.digest)) !== undefined && (await this.#options.mayRead()))
      return this.#store.open(this.digest)
    if (ended === undefined) return undefined
    // a small file is kept in an archive, from which the next request reads it
    throw ended.error ?? later(`the job that fetched ${this.digest} has ended: ask again`, 1)
  }
}
