/** What was worked out at a revision, until there is another. Concurrent callers share the work, and a failure is forgotten. */
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
