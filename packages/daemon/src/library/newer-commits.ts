import type { Sha256Digest } from '@svc/ref'

/** The newer commits that the hub named when it was last asked, by manifest; in memory only. */
export class NewerCommits {
  readonly #commits = new Map<Sha256Digest, string>()

  of(manifest: Sha256Digest): string | undefined {
    return this.#commits.get(manifest)
  }

  note(manifest: Sha256Digest, commit: string | undefined): void {
    if (commit === undefined) this.#commits.delete(manifest)
    else this.#commits.set(manifest, commit)
  }
}
