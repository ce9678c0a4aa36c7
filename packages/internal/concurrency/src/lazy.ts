/**
 * A value that is made when it is first asked for, and kept. A failure is not kept: while no descriptor is free not even a
 * module can be loaded, and a moment later it can.
 */
export class Lazy<T> {
  readonly #make: () => Promise<T>
  #made: Promise<T> | undefined

  constructor(make: () => Promise<T>) {
    this.#make = make
  }

  /** Makes it, unless somebody did. */
  get(): Promise<T> {
    if (this.#made !== undefined) return this.#made
    const made = this.#make()
    this.#made = made
    made.catch(() => {
      if (this.#made === made) this.#made = undefined
    })
    return made
  }

  /** What was made or is being made; undefined while nobody has asked. */
  get made(): Promise<T> | undefined {
    return this.#made
  }
}
