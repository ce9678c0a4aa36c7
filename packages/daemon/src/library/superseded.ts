import type { Sha256Digest } from '@svc/ref'

/** What follows when an import took the place of an artifact under a name; another name may still need that artifact. */
export type SupersededListener = (manifestDigest: Sha256Digest) => void

/** Where imports tell which artifacts they replaced, for those who give them to others (spec add.13). */
export class Superseded {
  readonly #listeners: SupersededListener[] = []

  listen(listener: SupersededListener): void {
    this.#listeners.push(listener)
  }

  /** Called when the state holds the new artifacts. */
  tell(manifestDigests: Iterable<Sha256Digest>): void {
    for (const digest of manifestDigests) for (const listener of this.#listeners) listener(digest)
  }
}
