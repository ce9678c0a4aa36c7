import type { BlobReader, DiskBlobStore, IngestOptions, PartialBlob } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'

/**
 * Blobs that are in use although no state names them yet: those that running work has looked up, found or written, and
 * those that are being read. A collection leaves them alone (spec add.14).
 *
 * What makes this safe: a digest is recorded before the store is asked for it, and under the digest's lock the store
 * asks the collection whether it is recorded. So work within {@link during} either finds a blob and keeps it, or finds
 * it absent. The state must name the blobs it relies on before it ends.
 *
 * Invariant: `#noted` is empty while no work is running.
 */
export class Uses {
  readonly #noted = new Map<Sha256Digest, number>()
  readonly #underWay = new Set<number>()
  readonly #readers = new Map<Sha256Digest, number>()
  readonly #held = new Set<ReadonlySet<Sha256Digest>>()
  #clock = 0

  /** Runs work that relies on blobs; those it touches are kept until it ends. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const begun = ++this.#clock
    this.#underWay.add(begun)
    try {
      return await work()
    } finally {
      this.#underWay.delete(begun)
      // sets keep insertion order: the first is the oldest
      const oldest = this.#underWay.values().next().value
      for (const [digest, at] of this.#noted) if (oldest === undefined || at < oldest) this.#noted.delete(digest)
    }
  }

  note(digest: Sha256Digest): void {
    if (this.#underWay.size > 0) this.#noted.set(digest, ++this.#clock)
  }

  reading(digest: Sha256Digest): () => void {
    this.#readers.set(digest, (this.#readers.get(digest) ?? 0) + 1)
    let open = true
    return () => {
      if (!open) return
      open = false
      const left = this.#readers.get(digest)! - 1
      if (left === 0) this.#readers.delete(digest)
      else this.#readers.set(digest, left)
    }
  }

  /** Keeps blobs until the returned function is called. */
  hold(digests: ReadonlySet<Sha256Digest>): () => void {
    // an object of its own, so that the same blobs can be held twice
    const held = new Set(digests)
    this.#held.add(held)
    return () => void this.#held.delete(held)
  }

  has(digest: Sha256Digest): boolean {
    if (this.#noted.has(digest) || this.#readers.has(digest)) return true
    for (const held of this.#held) if (held.has(digest)) return true
    return false
  }

  /** Wraps the store; blobs accessed through the result are recorded here. */
  watching(store: DiskBlobStore): DiskBlobStore {
    const accepting = <T extends Pick<IngestOptions, 'accept'>>(options: T): T => ({
      ...options,
      accept: (result) => {
        this.note(result.digest)
        return options.accept?.(result)
      }
    })
    return {
      root: store.root,
      id: store.id,
      isNew: store.isNew,
      requireRoot: () => store.requireRoot(),
      check: () => store.check(),
      lockKind: store.lockKind,
      blobPath: (digest) => store.blobPath(digest),
      freeBytes: () => store.freeBytes(),
      sharesBlocks: (source) => store.sharesBlocks(source),
      partialBytes: (key) => store.partialBytes(key),
      followPartial: (key, onChange) => store.followPartial(key, onChange),
      stat: (digest) => {
        this.note(digest)
        return store.stat(digest)
      },
      open: async (digest) => {
        this.note(digest)
        const done = this.reading(digest)
        try {
          return watched(await store.open(digest), done)
        } catch (error) {
          done()
          throw error
        }
      },
      ingest: (source, options = {}) => store.ingest(source, accepting(options)),
      ingestNamed: (files, options = {}) => store.ingestNamed(files, accepting(options)),
      partial: async (key, options) => watchedPartial(await store.partial(key, options), accepting),
      remove: (digest, options) => store.remove(digest, options),
      list: () => store.list(),
      verify: (digest, options) => {
        this.note(digest)
        return store.verify(digest, options)
      },
      scrub: (options) => store.scrub(options),
      close: () => store.close()
    }
  }
}

const watched = (reader: BlobReader, done: () => void): BlobReader => ({
  digest: reader.digest,
  sizeBytes: reader.sizeBytes,
  fd: reader.fd,
  read: (target, offset) => reader.read(target, offset),
  stream: (range) => untilOver(reader.stream(range), done),
  close: async () => {
    try {
      await reader.close()
    } finally {
      // a descriptor whose close fails is closed nevertheless
      done()
    }
  }
})

/** A stream closes its reader when it ends or is abandoned. */
async function* untilOver(chunks: AsyncIterable<Uint8Array>, done: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } finally {
    done()
  }
}

const watchedPartial = (
  partial: PartialBlob,
  accepting: <T extends Pick<IngestOptions, 'accept'>>(options: T) => T
): PartialBlob => ({
  sizeBytes: partial.sizeBytes,
  get fd() {
    return partial.fd
  },
  writeGate: partial.writeGate,
  ranges: () => partial.ranges(),
  write: (offset, bytes) => partial.write(offset, bytes),
  markWritten: (start, end, hashes) => partial.markWritten(start, end, hashes),
  unmark: (start, end) => partial.unmark(start, end),
  read: (target, offset) => partial.read(target, offset),
  checkpoint: () => partial.checkpoint(),
  verify: () => partial.verify(),
  publish: (options = {}) => partial.publish(accepting(options)),
  release: () => partial.release(),
  discard: () => partial.discard()
})
