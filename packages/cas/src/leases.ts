import type { Sha256Digest } from '@svc/ref'
import type { Lease } from './store.ts'

/**
 * The open leases of one store, and which blobs they keep.
 *
 * This is safe because a digest is recorded before it is looked up, and a removal asks for it under the digest's lock: the
 * holder of a lease either finds a blob and keeps it, or finds it absent.
 *
 * Invariant: `#touched` is empty while no lease without digests is open.
 */
export class Leases {
  readonly #touched = new Map<Sha256Digest, number>()
  /** The times at which leases without digests were acquired; the oldest comes first. */
  readonly #open = new Set<number>()
  readonly #kept = new Map<Sha256Digest, number>()
  #clock = 0

  /** Records that a blob is looked up or brought in. */
  touch(digest: Sha256Digest): void {
    if (this.#open.size > 0) this.#touched.set(digest, ++this.#clock)
  }

  /** As {@link Manager.lease}. */
  acquire(digests?: Iterable<Sha256Digest>): Lease {
    const kept = new Set(digests)
    for (const digest of kept) this.#count(digest, 1)
    const acquired = ++this.#clock
    if (digests === undefined) this.#open.add(acquired)
    let isOpen = true
    return {
      keep: (digest) => {
        if (!isOpen || kept.has(digest)) return
        kept.add(digest)
        this.#count(digest, 1)
      },
      release: () => {
        if (!isOpen) return
        isOpen = false
        for (const digest of kept) this.#count(digest, -1)
        if (this.#open.delete(acquired)) this.#forget()
      }
    }
  }

  covers(digest: Sha256Digest): boolean {
    return this.#kept.has(digest) || this.#touched.has(digest)
  }

  #count(digest: Sha256Digest, change: 1 | -1): void {
    const left = (this.#kept.get(digest) ?? 0) + change
    if (left === 0) this.#kept.delete(digest)
    else this.#kept.set(digest, left)
  }

  /** Forgets the blobs that no open lease saw touched. */
  #forget(): void {
    const oldest = this.#open.values().next().value ?? Number.POSITIVE_INFINITY
    for (const [digest, at] of this.#touched) if (at < oldest) this.#touched.delete(digest)
  }
}

/** Runs work with a lease of whatever it touches. */
export async function withLease<T>(store: { lease(): Lease }, work: (lease: Lease) => T | Promise<T>): Promise<T> {
  const lease = store.lease()
  try {
    return await work(lease)
  } finally {
    lease.release()
  }
}
