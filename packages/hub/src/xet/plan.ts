import { type ByteRanges, gapsOf, totalBytes } from '@svc/internal-byte-ranges'
import { XetAnswerError } from './answer-error.ts'
import { Boundaries } from './boundaries.ts'
import type { Reconstruction, Term, XorbFetch } from './reconstruction.ts'

/** Bytes that an older file has at `from`, and the new one at `to`. */
export interface Copy {
  readonly from: number
  readonly to: number
  readonly lengthBytes: number
}

/** Chunks that are fetched together, with the terms of the file that they serve and the wanted ranges of each. */
export interface ChunkFetch extends XorbFetch {
  readonly terms: ReadonlyMap<Term, ByteRanges>
}

export interface DeltaPlan {
  /** In the order of the new file. */
  readonly copies: readonly Copy[]
  readonly fetches: readonly ChunkFetch[]
}

/** A service that names the same chunks again and again must not keep this thread busy. */
const MAX_STEPS = 4_000_000
/** A pair of terms that overlap costs more than one that does not. */
const OVERLAP_STEPS = 64
/** Terms that one fetch may serve. */
const MAX_TERMS_OF_FETCH = 1_000

/**
 * Which parts of `missing`, the ranges that the sink lacks, the older file has, and which signed ranges of xorbs cost less than the same bytes
 * of the file. The same chunks of the same xorb are the same bytes. Plain ranges of the file bring the rest. @throws XetAnswerError
 */
export function planDelta(older: Reconstruction, newer: Reconstruction, missing: ByteRanges): DeltaPlan {
  const shared = sharedBy(older, newer)
  const copies = partsIn(missing, shared.map(spanOf)).flatMap((parts, i) => {
    const { from, to } = shared[i]!
    return parts.map(([start, end]) => ({ from: from + start - to, to: start, lengthBytes: end - start }))
  })
  if (copies.length === 0) return { copies, fetches: [] }
  const copied = partsIn(copies.map(spanOf), missing)
  const left = missing.flatMap(([start, end], i) => gapsOf(copied[i]!, start, end))
  return { copies, fetches: fetchesFor(newer, left) }
}

const spanOf = ({ to, lengthBytes }: Copy): [number, number] => [to, to + lengthBytes]

/** The parts of each span that lie in `ranges`; both are in order, without overlaps. */
function partsIn(ranges: ByteRanges, spans: ByteRanges): [number, number][][] {
  let first = 0
  return spans.map(([start, end]) => {
    while (first < ranges.length && ranges[first]![1] <= start) first++
    const parts: [number, number][] = []
    for (let i = first; i < ranges.length && ranges[i]![0] < end; i++)
      parts.push([Math.max(start, ranges[i]![0]), Math.min(end, ranges[i]![1])])
    return parts
  })
}

/** In the order of the new file, without overlaps. */
function sharedBy(older: Reconstruction, newer: Reconstruction): Copy[] {
  const boundaries = new Boundaries([...older.terms, ...newer.terms])
  const olderOf = Map.groupBy(older.terms, ({ xorb }) => xorb)
  const shared: Copy[] = []
  let steps = 0
  let covered = 0
  for (const term of newer.terms) {
    const known = olderOf.get(term.xorb) ?? []
    const near = known.filter(({ start, end }) => start < term.end && term.start < end)
    steps += known.length + near.length * OVERLAP_STEPS
    if (steps > MAX_STEPS) throw new XetAnswerError('a reconstruction repeats itself too often')
    const found = near.flatMap((base) => overlapOf(base, term, boundaries) ?? []).sort((a, b) => a.to - b.to)
    for (const { from, to, lengthBytes } of found) {
      const skip = Math.max(0, covered - to)
      if (skip >= lengthBytes) continue
      shared.push({ from: from + skip, to: to + skip, lengthBytes: lengthBytes - skip })
      covered = to + lengthBytes
    }
  }
  return shared
}

/** The chunks that two terms share, if it is known at which byte of either they begin and end. */
function overlapOf(base: Term, term: Term, boundaries: Boundaries): Copy | undefined {
  const [start, end] = [Math.max(base.start, term.start), Math.min(base.end, term.end)]
  const inBase = boundaries.between(term.xorb, base.start, start)
  const inTerm = boundaries.between(term.xorb, term.start, start)
  const lengthBytes = boundaries.between(term.xorb, start, end)
  if (inBase === undefined || inTerm === undefined || lengthBytes === undefined) return undefined
  const isWithin = (offset: number, { lengthBytes: most }: Term): boolean => offset >= 0 && offset + lengthBytes <= most
  if (lengthBytes <= 0 || !isWithin(inBase, base) || !isWithin(inTerm, term))
    throw new XetAnswerError('a reconstruction gives chunks lengths that cannot be')
  return { from: base.offset + inBase, to: term.offset + inTerm, lengthBytes }
}

/** Fetches each term at most once, and only where that costs less than the same bytes of the file. */
function fetchesFor({ terms, fetches }: Reconstruction, missing: ByteRanges): ChunkFetch[] {
  const spans = terms.map(({ offset, lengthBytes }) => [offset, offset + lengthBytes] as const)
  const wantedOf = new Map(partsIn(missing, spans).map((parts, i) => [terms[i]!, parts]))
  const open = Map.groupBy(
    terms.filter((term) => wantedOf.get(term)!.length > 0),
    ({ xorb }) => xorb
  )
  const chosen: ChunkFetch[] = []
  let steps = 0
  for (const fetch of fetches) {
    const candidates = open.get(fetch.xorb) ?? []
    steps += candidates.length * fetch.ranges.length
    if (steps > MAX_STEPS) break
    const served = candidates.filter((term) =>
      fetch.ranges.some(({ start, end }) => start <= term.start && term.end <= end)
    )
    const wanted = new Map(served.map((term) => [term, wantedOf.get(term)!]))
    const cost = fetch.ranges.reduce((sum, { from, to }) => sum + to - from, 0)
    if (served.length > MAX_TERMS_OF_FETCH || totalBytes([...wanted.values()].flat()) <= cost) continue
    open.set(
      fetch.xorb,
      candidates.filter((term) => !wanted.has(term))
    )
    chosen.push({ ...fetch, terms: wanted })
  }
  return chosen
}
