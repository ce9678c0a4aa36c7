import { readvSync } from 'node:fs'
import type { BlobReader, BlobStore } from '@svc/cas'
import { QuickReads } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'

const DEFAULT_MAX_OPEN = 128
/** A blob that went to quarantine is not read through an old descriptor for longer than this. */
const MAX_AGE_MS = 10_000

/** Peers mostly read what is in the page cache; a cold disk is read through the store's reader. */
const quickReads = new QuickReads()

interface Opened {
  readonly reader: Promise<BlobReader>
  /** Once it is open. */
  open: BlobReader | undefined
}

/**
 * Blobs that peers read in small pieces: kept open from the first request on, the `maxOpen` most recently used. A
 * reader that is closed during a read finishes that read (see `BlobReader.close`).
 */
export class OpenBlobs {
  readonly #store: BlobStore
  readonly #readers: LRUCache<Sha256Digest, Opened>

  constructor(store: BlobStore, maxOpen = DEFAULT_MAX_OPEN) {
    this.#store = store
    this.#readers = new LRUCache({
      max: maxOpen,
      ttl: MAX_AGE_MS,
      ttlResolution: 0,
      dispose: (opened) => void shut(opened)
    })
  }

  /**
   * @returns the number of bytes read, fewer than requested only at the end of the blob. @throws CasError
   *   `E_NOT_FOUND`, `E_IO`
   */
  async read(digest: Sha256Digest, offset: number, target: Uint8Array): Promise<number> {
    const opened = this.#readers.get(digest) ?? this.#open(digest)
    try {
      return await (await opened.reader).read(target, offset)
    } catch (error) {
      if (this.#readers.peek(digest) === opened) this.drop(digest)
      throw error
    }
  }

  #open(digest: Sha256Digest): Opened {
    const opened: Opened = { reader: this.#store.open(digest), open: undefined }
    this.#readers.set(digest, opened)
    opened.reader.then(
      (reader) => {
        if (this.#readers.peek(digest) === opened) opened.open = reader
      },
      () => undefined
    )
    return opened
  }

  /**
   * Reads into several targets, one after the other in the blob, if that is quick. @returns the number of bytes read; 0:
   *   not in this turn of the event loop; undefined: use {@link OpenBlobs.read}, which also says what is wrong
   */
  readNow(digest: Sha256Digest, offset: number, targets: readonly Uint8Array[]): number | undefined {
    const reader = this.#readers.get(digest)?.open
    if (reader === undefined || !quickReads.allowed) return undefined
    try {
      const { fd } = reader
      if (fd === undefined) return undefined
      const count = quickReads.tryNow(() => readvSync(fd, targets, offset))
      if (count === undefined) return 0
      return count === 0 ? undefined : count
    } catch {
      return undefined
    }
  }

  /** Closes the blob; the next read opens it again. */
  drop(digest: Sha256Digest): void {
    this.#readers.delete(digest)
  }

  async close(): Promise<void> {
    const readers = [...this.#readers.values()]
    this.#readers.clear()
    await Promise.all(readers.map(shut))
  }
}

/** Safe to repeat: {@link OpenBlobs.close} waits for readers that are being closed. */
const shut = ({ reader }: Opened): Promise<void> => reader.then((open) => open.close()).catch(() => undefined)
