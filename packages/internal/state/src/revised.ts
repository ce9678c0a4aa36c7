/** Keeps a result until the revision changes. Concurrent callers share the work, and a failure is not kept. */
export class Revised<T> {
  #kept: { readonly revision: number; readonly value: Promise<T> } | undefined

  at(revision: number, make: () => Promise<T>): Promise<T> {
    if (this.#kept?.revision === revision) return this.#kept.value
    const kept = { revision, value: make() }
    this.#kept = kept
    kept.value.catch(() => {
      if (this.#kept === kept) this.#kept = undefined
    })
    return kept.value
  }
}
