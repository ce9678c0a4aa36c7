import type { Sha256Digest } from '@svc/ref'

/** Called when an import replaced an artifact under a name; another name may still need that artifact. */
export type SupersededListener = (manifestDigest: Sha256Digest) => void

/** Through this, imports announce which artifacts they replaced, to those that share them (spec add.13). */
export class Superseded {
  readonly #listeners: SupersededListener[] = []

  listen(listener: SupersededListener): void {
    this.#listeners.push(listener)
  }

  /** Call this when the state contains the new artifacts. */
  tell(manifestDigests: Iterable<Sha256Digest>): void {
    for (const digest of manifestDigests) for (const listener of this.#listeners) listener(digest)
  }
}
