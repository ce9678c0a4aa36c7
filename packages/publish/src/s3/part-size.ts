const MIB = 1 << 20
/** S3's own bound. */
const MAX_PARTS = 10_000
/** Bytes of parts that are held at once. */
const MEMORY_BYTES = 128 * MIB
const MAX_AT_ONCE = 4

/** The default size of parts. */
export const PART_BYTES = 16 * MIB

/** The size of the parts that an object is sent in: as wished, or as much more as 10,000 parts need. Follows from its size alone. */
export function partBytesFor(sizeBytes: number, wishedBytes: number): number {
  const least = Math.ceil(sizeBytes / MAX_PARTS)
  return least <= wishedBytes ? wishedBytes : Math.ceil(least / MIB) * MIB
}

/** How many parts are sent at once. */
export const partsAtOnce = (partBytes: number): number =>
  Math.max(1, Math.min(MAX_AT_ONCE, Math.floor(MEMORY_BYTES / partBytes)))
