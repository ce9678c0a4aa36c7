import type { Sha256Digest } from '@svc/ref'

/** Imports announce here which artifacts they replaced under a name, to those that share them (spec add.13). */
export class Superseded {
  readonly #listeners: ((manifestDigest: Sha256Digest) => void)[] = []

  /** `listener` must expect that another name still needs the artifact. */
  listen(listener: (manifestDigest: Sha256Digest) => void): void {
    this.#listeners.push(listener)
  }

  /** Call this when the state contains the new artifacts. */
  tell(manifestDigests: Iterable<Sha256Digest>): void {
    for (const digest of manifestDigests) for (const listener of this.#listeners) listener(digest)
  }
}
