/** `[start, end)` pairs, sorted, disjoint, not touching. */
export type ByteRanges = readonly (readonly [start: number, end: number])[]

/** The ranges of `[start, end)` that are not in `present`. */
export function gapsOf(present: ByteRanges, start: number, end: number): [number, number][] {
  const gaps: [number, number][] = []
  let at = start
  for (const [from, to] of present) {
    if (from >= end) break
    if (to <= at) continue
    if (from > at) gaps.push([at, from])
    at = to
  }
  if (at < end) gaps.push([at, end])
  return gaps
}

/** Cuts ranges at multiples of `stepBytes`, so that a resumed file requests the same ranges as a new one. */
export function cutRanges(ranges: ByteRanges, stepBytes: number): [number, number][] {
  const pieces: [number, number][] = []
  for (const [start, end] of ranges) {
    for (let at = start; at < end; ) {
      const next = Math.min(end, (Math.floor(at / stepBytes) + 1) * stepBytes)
      pieces.push([at, next])
      at = next
    }
  }
  return pieces
}

export const totalBytes = (ranges: ByteRanges): number => ranges.reduce((sum, [start, end]) => sum + end - start, 0)
