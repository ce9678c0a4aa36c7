import type { BlobReader, BlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'

const DEFAULT_MAX_OPEN = 128
/** A blob that went to quarantine is not read through an old descriptor for longer than this. */
const MAX_AGE_MS = 10_000

interface Opened {
  readonly reader: Promise<BlobReader>
  readonly openedAt: number
}

/**
 * Blobs that peers read in small pieces: opened at the first request and kept open, at most `maxOpen` at a time, the
 * least recently used being closed first. A reader that is closed during a read finishes that read (see
 * `BlobReader.close`).
 */
export class OpenBlobs {
  readonly #store: BlobStore
  readonly #maxOpen: number
  readonly #readers = new Map<Sha256Digest, Opened>()

  constructor(store: BlobStore, maxOpen = DEFAULT_MAX_OPEN) {
    this.#store = store
    this.#maxOpen = maxOpen
  }

  /**
   * @returns the number of bytes read, fewer than requested only at the end of the blob. @throws CasError
   *   `E_NOT_FOUND`, `E_IO`
   */
  async read(digest: Sha256Digest, offset: number, target: Uint8Array): Promise<number> {
    const now = performance.now()
    let opened = this.#readers.get(digest)
    if (opened !== undefined && now - opened.openedAt > MAX_AGE_MS) {
      this.drop(digest)
      opened = undefined
    }
    opened ??= { reader: this.#store.open(digest), openedAt: now }
    // move to the end of the order: the most recently used
    this.#readers.delete(digest)
    this.#readers.set(digest, opened)
    if (this.#readers.size > this.#maxOpen) this.drop(this.#readers.keys().next().value!)
    try {
      return await (await opened.reader).read(target, offset)
    } catch (error) {
      if (this.#readers.get(digest) === opened) this.drop(digest)
      throw error
    }
  }

  /** Closes the blob; the next read opens it again. */
  drop(digest: Sha256Digest): void {
    const opened = this.#readers.get(digest)
    this.#readers.delete(digest)
    opened?.reader.then((open) => open.close()).catch(() => undefined)
  }

  async close(): Promise<void> {
    const readers = [...this.#readers.values()]
    this.#readers.clear()
    await Promise.all(readers.map(({ reader }) => reader.then((open) => open.close()).catch(() => undefined)))
  }
}
