export { ByteRangeSet } from './byte-range-set.ts'
export { type ByteRanges, cutRanges, gapsOf, totalBytes } from './byte-ranges.ts'
export { tryParseContentRange } from './content-range.ts'
