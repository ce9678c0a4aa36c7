import { createHash } from 'node:crypto'
import type { BlobReader, DiskBlobStore, PartialFollower } from '@svc/cas'
import { digestHex, type Sha256Digest } from '@svc/ref'

/** Held back, so that there is something to send during a pause in the arriving data. */
const RESERVE_BYTES = 64 << 10
/** Some clients give up after ten seconds without a byte. */
const TRICKLE_MS = 3_000
/** At this rate the reserve lasts for most of an hour. */
const TRICKLE_BYTES = 64
const COMPARED_BYTES = 1 << 20

/** Why reading a blob that is still arriving ended early. */
class BrokenArrivalError extends Error {
  override readonly name = 'BrokenArrivalError'
  /**
   * `other-bytes`: bytes that were sent are not the blob's. `absent`: its transfer has ended, and the store does not
   * have it. `closed`: the reader was closed.
   */
  readonly reason: 'other-bytes' | 'absent' | 'closed'

  constructor(reason: BrokenArrivalError['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** The transfer of the blob. */
export interface Arrival {
  /** Settles when no more data will arrive: with the error if the transfer failed. */
  readonly over: Promise<Error | undefined>
}

/** How fast the reserve is sent. */
export interface GrowingOptions {
  readonly trickleMs?: number
  readonly reserveBytes?: number
  /** The key of its partial blob; default: its digest. */
  readonly partialKey?: string
  /** Whether what the store has under the digest may be read yet; default: always. */
  readonly mayRead?: () => boolean
  /** Called with the offset before each read. */
  readonly onRead?: (offset: number) => void
  /** Called once, when it is closed. */
  readonly onClose?: () => void
}

/**
 * A blob that is read while it arrives. Written bytes are sent before the whole is verified, except for the last byte
 * of the request, and for a reserve that is sent little by little during pauses, so that clients do not give up. When
 * the blob is in the store, the bytes that were sent are compared with it; on a mismatch reading fails, and the
 * response is cut off.
 */
export class GrowingBlob implements BlobReader {
  readonly fd = undefined
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  readonly #store: DiskBlobStore
  readonly #follower: PartialFollower
  readonly #trickleMs: number
  readonly #reserveBytes: number
  readonly #mayRead: () => boolean
  readonly #onRead: GrowingOptions['onRead']
  #onClose: GrowingOptions['onClose']
  readonly #given = createHash('sha256')
  #wake: () => void = () => undefined
  /** Something happened since the last check. */
  #isNews = false
  #first: number | undefined
  #next = 0
  #lastGivenMs = performance.now()
  #final: BlobReader | undefined
  #ended: { readonly error: Error | undefined } | undefined
  /** All sent bytes match the blob. */
  #isProven = false
  #isClosed = false

  constructor(
    store: DiskBlobStore,
    { digest, sizeBytes }: { readonly digest: Sha256Digest; readonly sizeBytes: number },
    arrival: Arrival,
    { trickleMs = TRICKLE_MS, reserveBytes = RESERVE_BYTES, ...options }: GrowingOptions = {}
  ) {
    const { partialKey = digest, mayRead = () => true, onRead, onClose } = options
    this.#mayRead = mayRead
    this.#onRead = onRead
    this.#onClose = onClose
    this.digest = digest
    this.sizeBytes = sizeBytes
    this.#store = store
    this.#trickleMs = trickleMs
    this.#reserveBytes = reserveBytes
    this.#follower = store.followPartial(partialKey, () => this.#tell())
    void arrival.over.then((error) => {
      this.#ended = { error }
      this.#tell()
    })
  }

  /**
   * Resolves when bytes from `offset` on can be read, or never will be; false if that takes longer than `timeoutMs`.
   */
  async begins(offset: number, timeoutMs: number): Promise<boolean> {
    const until = performance.now() + timeoutMs
    for (;;) {
      this.#isNews = false
      if (this.#follower.writtenUntil(offset) > offset || this.#ended !== undefined) return true
      if (await this.#isHere()) return true
      const leftMs = until - performance.now()
      if (leftMs <= 0 || this.#isClosed) return false
      await this.#changed(leftMs)
    }
  }

  /** Reads must be sequential, without gaps: what may be sent next can depend on everything sent before. */
  async read(target: Uint8Array, offset: number): Promise<number> {
    this.#first ??= offset
    if (offset !== this.#first + this.#next) throw new Error('a growing blob is read in order')
    this.#onRead?.(offset)
    const count = await this.#read(target, offset)
    this.#given.update(target.subarray(0, count))
    this.#next += count
    this.#lastGivenMs = performance.now()
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

  /** Nothing more is read: a read that waits ends with an error. To be closed all the same. */
  abandon(): void {
    this.#isClosed = true
    this.#follower.close()
    this.#tell()
  }

  async close(): Promise<void> {
    this.abandon()
    this.#onClose?.()
    this.#onClose = undefined
    const final = this.#final
    this.#final = undefined
    await final?.close()
  }

  /**
   * The client may have requested only these bytes: the last of them waits until everything sent so far is verified.
   */
  async #read(target: Uint8Array, offset: number): Promise<number> {
    for (;;) {
      this.#isNews = false
      if (this.#isClosed) throw new BrokenArrivalError('closed', `the reader of ${this.digest} was closed`)
      if (this.#final !== undefined) return this.#readFinal(this.#final, target, offset)
      const written = Math.min(target.length - 1, this.#follower.writtenUntil(offset) - offset)
      if (written <= this.#reserveBytes && (this.#final = await this.#whole()) !== undefined) continue
      const waitMs = this.#lastGivenMs + this.#trickleMs - performance.now()
      const length = written > this.#reserveBytes ? written - this.#reserveBytes : waitMs <= 0 ? TRICKLE_BYTES : 0
      const part = target.subarray(0, Math.min(length, Math.max(0, written)))
      const count = part.length === 0 ? 0 : await this.#follower.read(part, offset)
      if (count > 0) return count
      await this.#changed(waitMs > 0 && written > 0 ? waitMs : this.#trickleMs)
    }
  }

  async #readFinal(final: BlobReader, target: Uint8Array, offset: number): Promise<number> {
    if (this.#isProven || this.#next === 0) {
      this.#isProven = true
      return final.read(target, offset)
    }
    if (target.length > 1) return final.read(target.subarray(0, target.length - 1), offset)
    const count = await final.read(target, offset)
    const isRight =
      this.#first === 0 && offset + 1 === this.sizeBytes
        ? this.#given.copy().update(target).digest('hex') === digestHex(this.digest)
        : await this.#wasGiven(final)
    if (!isRight) throw new BrokenArrivalError('other-bytes', `other bytes than those of ${this.digest} were given`)
    this.#isProven = true
    return count
  }

  /** The blob when it is in the store. @throws the error that ended the transfer */
  async #whole(): Promise<BlobReader | undefined> {
    // read before the store is, since the blob may arrive there in between
    const ended = this.#ended
    if (await this.#isHere()) return this.#store.open(this.digest)
    if (ended === undefined) return undefined
    throw ended.error ?? new BrokenArrivalError('absent', `what brings ${this.digest} in is over, and it is not here`)
  }

  async #isHere(): Promise<boolean> {
    return this.#mayRead() && (await this.#store.stat(this.digest)) !== undefined
  }

  async #wasGiven(blob: BlobReader): Promise<boolean> {
    const start = this.#first ?? 0
    const expected = createHash('sha256')
    const chunk = new Uint8Array(Math.min(COMPARED_BYTES, this.#next))
    for (let done = 0; done < this.#next; ) {
      const count = await blob.read(chunk.subarray(0, Math.min(chunk.length, this.#next - done)), start + done)
      if (count === 0) return false
      expected.update(chunk.subarray(0, count))
      done += count
    }
    return expected.digest().equals(this.#given.copy().digest())
  }

  #tell(): void {
    this.#isNews = true
    this.#wake()
  }

  /** Resolves at the next event, or at once if there was one since the last check. */
  #changed(timeoutMs: number): Promise<void> {
    if (this.#isNews) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake(), timeoutMs)
      this.#wake = () => {
        clearTimeout(timer)
        this.#wake = () => undefined
        resolve()
      }
    })
  }
}
