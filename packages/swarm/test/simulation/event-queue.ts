/** A priority queue of timed events: a binary heap over typed arrays, so that millions of events stay cheap. */
export class EventQueue {
  #times = new Float64Array(1024)
  #ids = new Int32Array(1024)
  #size = 0
  readonly #actions: ((() => void) | undefined)[] = []
  readonly #free: number[] = []
  nowMs = 0

  at(timeMs: number, action: () => void): void {
    const id = this.#free.pop() ?? this.#actions.length
    this.#actions[id] = action
    if (this.#size === this.#times.length) this.#grow()
    let at = this.#size
    this.#size += 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#times[parent]! <= timeMs) break
      this.#times[at] = this.#times[parent]!
      this.#ids[at] = this.#ids[parent]!
      at = parent
    }
    this.#times[at] = timeMs
    this.#ids[at] = id
  }

  #grow(): void {
    const [times, ids] = [this.#times, this.#ids]
    this.#times = new Float64Array(times.length * 2)
    this.#ids = new Int32Array(ids.length * 2)
    this.#times.set(times)
    this.#ids.set(ids)
  }

  /** Runs the earliest event. @returns false if the queue is empty */
  step(): boolean {
    if (this.#size === 0) return false
    const id = this.#ids[0]!
    this.nowMs = this.#times[0]!
    this.#size -= 1
    const [time, last] = [this.#times[this.#size]!, this.#ids[this.#size]!]
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#size) break
      if (child + 1 < this.#size && this.#times[child + 1]! < this.#times[child]!) child += 1
      if (this.#times[child]! >= time) break
      this.#times[at] = this.#times[child]!
      this.#ids[at] = this.#ids[child]!
      at = child
    }
    this.#times[at] = time
    this.#ids[at] = last
    const action = this.#actions[id]!
    this.#actions[id] = undefined
    this.#free.push(id)
    action()
    return true
  }
}
