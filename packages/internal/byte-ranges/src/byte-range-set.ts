import { type ByteRanges, totalBytes } from './byte-ranges.ts'

/**
 * A set of byte positions as `[start, end)` pairs.
 * Invariant: sorted, non-empty, disjoint and not touching.
 */
export class ByteRangeSet {
  #ranges: [start: number, end: number][] = []

  constructor(ranges: ByteRanges = []) {
    for (const [start, end] of ranges) this.add(start, end)
  }

  toRanges(): ByteRanges {
    return this.#ranges.map(([start, end]) => [start, end] as const)
  }

  get totalBytes(): number {
    return totalBytes(this.#ranges)
  }

  /** End of the range that starts at 0; 0 if there is none. */
  get prefixEnd(): number {
    const first = this.#ranges[0]
    return first !== undefined && first[0] === 0 ? first[1] : 0
  }

  add(start: number, end: number): void {
    if (start >= end) return
    const from = this.#firstEndingAt(start)
    let to = from
    let [low, high] = [start, end]
    for (let range = this.#ranges[to]; range !== undefined && range[0] <= end; range = this.#ranges[++to]) {
      low = Math.min(low, range[0])
      high = Math.max(high, range[1])
    }
    this.#ranges.splice(from, to - from, [low, high])
  }

  remove(start: number, end: number): void {
    if (start >= end) return
    const from = this.#firstEndingAt(start + 1)
    const kept: [number, number][] = []
    let to = from
    for (let range = this.#ranges[to]; range !== undefined && range[0] < end; range = this.#ranges[++to]) {
      if (range[0] < start) kept.push([range[0], start])
      if (range[1] > end) kept.push([end, range[1]])
    }
    this.#ranges.splice(from, to - from, ...kept)
  }

  contains(start: number, end: number): boolean {
    if (start >= end) return true
    const range = this.#ranges[this.#firstEndingAt(start + 1)]
    return range !== undefined && range[0] <= start && range[1] >= end
  }

  overlaps(start: number, end: number): boolean {
    if (start >= end) return false
    const range = this.#ranges[this.#firstEndingAt(start + 1)]
    return range !== undefined && range[0] < end
  }

  clear(): void {
    this.#ranges = []
  }

  /** Index of the first range whose end is at or after `position`. */
  #firstEndingAt(position: number): number {
    let low = 0
    let high = this.#ranges.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#ranges[middle] as [number, number])[1] < position) low = middle + 1
      else high = middle
    }
    return low
  }
}
