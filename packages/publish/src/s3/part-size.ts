const MIB = 1 << 20
/** S3's limit per upload. */
export const MAX_PARTS = 10_000
/** Bound for the parts in memory at once. */
const MEMORY_BYTES = 128 * MIB
const MAX_AT_ONCE = 4

/** Default part size. */
export const PART_BYTES = 16 * MIB

/** The part size for an object: the preferred one, or what 10,000 parts need. Depends on the size only, so that uploads can be resumed. */
export function partBytesFor(sizeBytes: number, preferredBytes: number): number {
  const least = Math.ceil(sizeBytes / MAX_PARTS)
  return least <= preferredBytes ? preferredBytes : Math.ceil(least / MIB) * MIB
}

/** How many parts to upload concurrently. */
export const partsAtOnce = (partBytes: number): number =>
  Math.max(1, Math.min(MAX_AT_ONCE, Math.floor(MEMORY_BYTES / partBytes)))
