import type { Sha256Digest } from '@svc/ref'

/** Blobs that readers wait for: fetches of files in sequence take these first, in the order of the requests. */
export class WantedBlobs {
  readonly #wanted = new Map<Sha256Digest, { readonly rank: number; readers: number }>()
  #asked = 0

  /** Call this when a reader waits. @returns call that when it no longer does; idempotent */
  add(digest: Sha256Digest): () => void {
    const wanted = this.#wanted.get(digest) ?? { rank: this.#asked++, readers: 0 }
    this.#wanted.set(digest, wanted)
    wanted.readers++
    let isWaiting = true
    return () => {
      if (isWaiting && --wanted.readers === 0) this.#wanted.delete(digest)
      isWaiting = false
    }
  }

  /** The lower, the sooner; undefined if no reader waits for it. */
  rankOf(digest: Sha256Digest | undefined): number | undefined {
    return digest && this.#wanted.get(digest)?.rank
  }
}
