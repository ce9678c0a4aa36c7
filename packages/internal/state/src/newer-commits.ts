import type { Sha256Digest } from '@svc/ref'

/** The newer commits in the hub's latest answers, by `ns/name:quant`; in memory only. */
export class NewerCommits {
  readonly #known = new Map<string, { readonly manifest: Sha256Digest; readonly commit: string }>()

  /** @param manifest the current one of the name */
  of(ref: string, manifest: Sha256Digest): string | undefined {
    const known = this.#known.get(ref)
    return known?.manifest === manifest ? known.commit : undefined
  }

  note(ref: string, manifest: Sha256Digest, commit: string | undefined): void {
    if (commit === undefined) this.#known.delete(ref)
    else this.#known.set(ref, { manifest, commit })
  }
}
