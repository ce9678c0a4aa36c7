import { readGgufHead } from './gguf.ts'
import { readSafetensorsHeader } from './safetensors.ts'
import type { HeaderSummary, ReadAt, RequiredRead } from './types.ts'

/**
 * Reads the header of one weights file, for `facts.headers`. An unreadable header is a value (`format: 'unreadable'`).
 * @throws only what `readAt` throws.
 */
export const readHeader = (
  read: Pick<RequiredRead<'gguf-head' | 'safetensors-header'>, 'what' | 'sizeBytes'>,
  readAt: ReadAt
): Promise<HeaderSummary> =>
  read.what === 'gguf-head' ? readGgufHead(readAt, read.sizeBytes) : readSafetensorsHeader(readAt, read.sizeBytes)
