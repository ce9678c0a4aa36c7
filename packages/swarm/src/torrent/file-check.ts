import type { ByteRanges } from '@svc/internal-byte-ranges'
import type { LayoutFile } from '@svc/metainfo'
import { readFully } from '../storage.ts'
import type { TorrentParts } from './environment.ts'

/** Pieces read and hashed concurrently: two threads hash while a third piece is read. */
const LANES = 3

/** Re-hashes the ranges that the storage reports for a file, in buffers of a piece; right pieces count as verified. */
export async function checkFile(
  { env, options: { storage }, layout, hashes, progress }: TorrentParts,
  file: LayoutFile,
  ranges: ByteRanges,
  { right, closed }: { readonly right: (piece: number) => void; readonly closed: () => boolean }
): Promise<void> {
  const candidates: number[] = []
  for (let piece = file.firstPiece; piece < file.firstPiece + file.pieceCount; piece += 1) {
    const { offset, lengthBytes } = layout.span(piece)
    if (ranges.some(([start, end]) => start <= offset && offset + lengthBytes <= end)) candidates.push(piece)
  }
  const lane = async (): Promise<void> => {
    if (candidates.length === 0) return
    const buffer = new SharedArrayBuffer(Math.min(layout.pieceLengthBytes, file.lengthBytes))
    for (let piece = candidates.shift(); piece !== undefined && !closed(); piece = candidates.shift()) {
      const { offset, lengthBytes } = layout.span(piece)
      const bytes = new Uint8Array(buffer, 0, lengthBytes)
      if ((await readFully(storage, file.index, offset, bytes)) < lengthBytes) continue
      const expected = hashes.expected(piece)!
      const { outcome } = await env.verifier.submit({ buffer, sizeBytes: lengthBytes, expected })
      if (closed()) return
      if (outcome === 'right') right(piece)
      else (await progress.writer(file.index)).unmark(offset, offset + lengthBytes)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}
