import { readGgufHead } from './gguf.ts'
import { isPickle, PICKLE_START_BYTES } from './pickles.ts'
import { readSafetensorsHeader } from './safetensors.ts'
import type { HeaderSummary, ReadAt, RequiredRead } from './types.ts'

/**
 * Reads the header of one weights file, or the start of an opaque one, for `facts.headers`. An unreadable header is a value (`format: 'unreadable'`).
 * @throws only what `readAt` throws.
 */
export async function readHeader(
  read: Pick<RequiredRead<'gguf-head' | 'safetensors-header' | 'start'>, 'what' | 'sizeBytes' | 'name'>,
  readAt: ReadAt
): Promise<HeaderSummary> {
  if (read.what === 'gguf-head') return readGgufHead(readAt, read.sizeBytes)
  if (read.what === 'safetensors-header') return readSafetensorsHeader(readAt, read.sizeBytes)
  const start = await readAt(0, Math.min(PICKLE_START_BYTES, read.sizeBytes))
  return { format: 'opaque', isPickle: isPickle(read.name, start) }
}
