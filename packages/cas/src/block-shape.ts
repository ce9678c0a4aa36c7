import { CasError } from './errors.ts'
import type { BlockShape } from './store.ts'

/** The range of the blocks that lie entirely within `[start, end)`; a file's last block may be short. */
export function wholeBlocks(
  { blockBytes }: BlockShape,
  sizeBytes: number,
  start: number,
  end: number
): readonly [start: number, end: number] {
  const from = Math.ceil(start / blockBytes) * blockBytes
  const to = end === sizeBytes ? end : Math.floor(end / blockBytes) * blockBytes
  return [Math.min(from, sizeBytes), Math.max(to, Math.min(from, sizeBytes))]
}

/** @throws CasError `E_RANGE` unless `hashes` has one hash for each whole block in `[start, end)` */
export function checkBlockHashes(
  shape: BlockShape,
  sizeBytes: number,
  start: number,
  end: number,
  hashes: Uint8Array | undefined
): void {
  if (hashes === undefined) return
  const [from, to] = wholeBlocks(shape, sizeBytes, start, end)
  const count = Math.ceil((to - from) / shape.blockBytes)
  if (hashes.length === count * shape.hashBytes) return
  throw new CasError('E_RANGE', `[${start}, ${end}) has ${count} whole blocks, hashes came for another number`)
}
