import { equalBytes, replyLength } from '@svc/metainfo'
import type { HashRange } from '../wire/messages.ts'

interface PendingRange {
  readonly range: HashRange
  readonly sentAt: number
  /** Reassigned to another peer; a late answer is still accepted, since it is verified anyway. */
  late: boolean
}

const sameRange = (a: HashRange, b: HashRange): boolean =>
  a.baseLayer === b.baseLayer &&
  a.index === b.index &&
  a.length === b.length &&
  a.proofLayers === b.proofLayers &&
  equalBytes(a.root, b.root)

/** Our unanswered hash requests to a peer. They are few, so a linear search suffices. */
export class PendingHashes {
  readonly #entries: PendingRange[] = []

  get size(): number {
    return this.#entries.length
  }

  add(range: HashRange, nowMs: number): void {
    this.#entries.push({ range, sentAt: nowMs, late: false })
  }

  /** True when an answer of exactly this many bytes is outstanding. */
  awaits(hashBytes: number): boolean {
    return this.#entries.some((entry) => replyLength(entry.range) === hashBytes)
  }

  /** Removes and returns the request that an answer or a reject belongs to. */
  take(range: HashRange): HashRange | undefined {
    const at = this.#entries.findIndex((entry) => sameRange(entry.range, range))
    return at < 0 ? undefined : this.#entries.splice(at, 1)[0]!.range
  }

  /** Requests sent before `sinceMs` that were not reported as late before. */
  expired(sinceMs: number): readonly HashRange[] {
    const late = this.#entries.filter((entry) => !entry.late && entry.sentAt < sinceMs)
    for (const entry of late) entry.late = true
    return late.map((entry) => entry.range)
  }

  clear(): void {
    this.#entries.length = 0
  }
}
