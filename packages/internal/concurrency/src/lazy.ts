/**
 * A value that is created on first use and cached. Failures are not cached: importing a module fails while the process is out of file
 * descriptors, and works a moment later.
 */
export class Lazy<T> {
  readonly #make: () => Promise<T>
  #made: Promise<T> | undefined

  constructor(make: () => Promise<T>) {
    this.#make = make
  }

  get(): Promise<T> {
    if (this.#made !== undefined) return this.#made
    const made = this.#make()
    this.#made = made
    made.catch(() => {
      if (this.#made === made) this.#made = undefined
    })
    return made
  }

  /** The value, or the pending one; undefined before the first call. */
  get made(): Promise<T> | undefined {
    return this.#made
  }
}
