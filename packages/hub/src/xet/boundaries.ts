import { XetAnswerError } from './answer-error.ts'
import type { Term } from './reconstruction.ts'

interface Distance {
  readonly parent: string
  /** From the parent to this one. */
  readonly bytes: number
}

/**
 * Distances between the chunk boundaries of a xorb, as far as the lengths of terms tell them: a term gives the distance of its two
 * ends, and distances add up. So the place of chunks within a longer term is known once the rest of that term is, even if a service
 * does not give the length of each chunk.
 */
export class Boundaries {
  readonly #links = new Map<string, Distance>()

  /** @throws XetAnswerError if terms contradict each other */
  constructor(terms: readonly Term[]) {
    const ends = new Map<string, Set<number>>()
    for (const { xorb, start, end } of terms) {
      const known = ends.get(xorb) ?? new Set()
      ends.set(xorb, known.add(start).add(end))
    }
    for (const { xorb, start, end, lengthBytes, chunkBytes } of terms) {
      this.#add(xorb, start, end, lengthBytes)
      let bytes = 0
      for (const [i, size] of chunkBytes.entries()) {
        bytes += size
        // nobody asks for the others
        if (ends.get(xorb)!.has(start + i + 1)) this.#add(xorb, start, start + i + 1, bytes)
      }
    }
  }

  /** Bytes from the start of chunk `from` to that of chunk `to`; undefined if unknown. */
  between(xorb: string, from: number, to: number): number | undefined {
    const [a, b] = [this.#find(`${xorb} ${from}`), this.#find(`${xorb} ${to}`)]
    return a.root === b.root ? b.bytes - a.bytes : undefined
  }

  #add(xorb: string, from: number, to: number, lengthBytes: number): void {
    const [a, b] = [this.#find(`${xorb} ${from}`), this.#find(`${xorb} ${to}`)]
    const bytes = a.bytes + lengthBytes - b.bytes
    if (a.root !== b.root) this.#links.set(b.root, { parent: a.root, bytes })
    else if (bytes !== 0) throw new XetAnswerError('a reconstruction gives two lengths for the same chunks')
  }

  #find(boundary: string): { readonly root: string; readonly bytes: number } {
    const path: string[] = []
    let at = boundary
    for (let link = this.#links.get(at); link !== undefined; link = this.#links.get(at)) {
      path.push(at)
      at = link.parent
    }
    let bytes = 0
    // links each to the root, so that the next search is short
    for (const each of path.reverse()) {
      bytes += this.#links.get(each)!.bytes
      this.#links.set(each, { parent: at, bytes })
    }
    return { root: at, bytes }
  }
}
