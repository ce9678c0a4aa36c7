import { allOf } from '@svc/internal-concurrency'
import type { Sha256Digest } from '@svc/ref'
import { notFound } from './blob-reader.ts'
import { CasError, throwIfAborted } from './errors.ts'
import type { BlobInfo, BlobStore, ScrubReport, VerifyOptions, VerifyResult } from './store.ts'

/** What a scrub reads: the blobs of a store. */
export interface ScrubbedBlobs {
  list(): AsyncGenerator<BlobInfo, void, undefined>
  verify(digest: Sha256Digest, options: VerifyOptions, signal: AbortSignal): Promise<VerifyResult>
}

type OnProgress = NonNullable<Parameters<BlobStore['scrub']>[0]>['onProgress']

/** One pass over all blobs: how far it is, and what it found. */
export class Scrub {
  readonly #blobs: ScrubbedBlobs
  readonly #signal: AbortSignal
  readonly #onProgress: OnProgress
  readonly #done = { blobs: 0, bytes: 0 }
  readonly #total = { blobs: 0, bytes: 0 }
  readonly #mismatched: Sha256Digest[] = []
  readonly #unreadable: Sha256Digest[] = []
  #failure: unknown

  constructor(blobs: ScrubbedBlobs, signal: AbortSignal, onProgress: OnProgress) {
    this.#blobs = blobs
    this.#signal = signal
    this.#onProgress = onProgress
  }

  /** Unreadable blobs are reported as one failure at the end, after all others have been checked. */
  async run(lanes: number): Promise<ScrubReport> {
    await this.#count()
    const listed = this.#blobs.list()
    await allOf(Array.from({ length: lanes }, () => this.#lane(listed)))
    throwIfAborted(this.#signal)
    return this.#report()
  }

  async #count(): Promise<void> {
    for await (const { sizeBytes } of this.#blobs.list()) {
      throwIfAborted(this.#signal)
      this.#total.blobs++
      this.#total.bytes += sizeBytes
    }
  }

  async #lane(listed: AsyncIterable<BlobInfo>): Promise<void> {
    for await (const { digest } of listed) {
      if (this.#signal.aborted) break
      await this.#one(digest)
    }
  }

  async #one(digest: Sha256Digest): Promise<void> {
    let told = 0
    const onProgress = (done: number): void => {
      this.#tell(done - told)
      told = done
    }
    try {
      const { status } = await this.#blobs.verify(digest, { onProgress }, this.#signal)
      if (status === 'missing') throw notFound(digest)
      if (status === 'mismatched') this.#mismatched.push(digest)
    } catch (error) {
      if (this.#signal.aborted) return
      // deleted since the listing: nothing to check.
      if (error instanceof CasError && error.code === 'E_NOT_FOUND') return
      this.#unreadable.push(digest)
      this.#failure ??= error
    }
    this.#done.blobs++
    this.#tell(0)
  }

  #tell(bytes: number): void {
    this.#done.bytes += bytes
    this.#onProgress?.({
      ...this.#done,
      blobsTotal: Math.max(this.#done.blobs, this.#total.blobs),
      bytesTotal: Math.max(this.#done.bytes, this.#total.bytes)
    })
  }

  #report(): ScrubReport {
    const [mismatched, unreadable] = [this.#mismatched.sort(), this.#unreadable]
    if (unreadable.length === 0) return { checked: this.#done.blobs, mismatched }
    const message = `${unreadable.length} blobs could not be read, e.g. ${unreadable[0]}`
    throw new CasError('E_IO', message, { unreadable, mismatched }, this.#failure)
  }
}
