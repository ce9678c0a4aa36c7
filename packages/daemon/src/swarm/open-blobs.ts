import type { BlobReader, BlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'

const DEFAULT_MAX_OPEN = 128

/**
 * Blobs that peers read in small portions: opened at the first request and kept for the next one, at most `maxOpen` in all,
 * the least recently used closed first. A reader that is closed while it reads finishes that read (see `BlobReader.close`).
 */
export class OpenBlobs {
  readonly #store: BlobStore
  readonly #maxOpen: number
  readonly #readers = new Map<Sha256Digest, Promise<BlobReader>>()

  constructor(store: BlobStore, maxOpen = DEFAULT_MAX_OPEN) {
    this.#store = store
    this.#maxOpen = maxOpen
  }

  /** @returns how many bytes were read: fewer than asked only at the end of the blob. @throws CasError `E_NOT_FOUND`, `E_IO` */
  async read(digest: Sha256Digest, offset: number, target: Uint8Array): Promise<number> {
    const reader = this.#readers.get(digest) ?? this.#store.open(digest)
    // to the end of the order: the most recently used
    this.#readers.delete(digest)
    this.#readers.set(digest, reader)
    if (this.#readers.size > this.#maxOpen) this.#close(this.#readers.keys().next().value!)
    try {
      return await (await reader).read(target, offset)
    } catch (error) {
      if (this.#readers.get(digest) === reader) this.#close(digest)
      throw error
    }
  }

  async close(): Promise<void> {
    const readers = [...this.#readers.values()]
    this.#readers.clear()
    await Promise.all(readers.map(reader => reader.then(open => open.close()).catch(() => undefined)))
  }

  #close(digest: Sha256Digest): void {
    const reader = this.#readers.get(digest)
    this.#readers.delete(digest)
    reader?.then(open => open.close()).catch(() => undefined)
  }
}
