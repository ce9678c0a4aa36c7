import { ByteRangeSet, type ByteRanges } from '@svc/internal-byte-ranges'

/**
 * What a download writes into: a file under construction, written in any order, which knows what it holds already.
 * `PartialBlob` of @svc/cas is one.
 */
export interface HubSink {
  readonly sizeBytes: number
  /** What need not be fetched again. */
  ranges(): ByteRanges
  /** The bytes may be reused when it resolves. Several calls are under way at once, at different offsets. */
  write(offset: number, bytes: Uint8Array): Promise<void>
  /** Forgets `[start, end)`: fetched again. */
  unmark(start: number, end: number): void
}

/** A sink in memory, for small files. */
export interface MemorySink extends HubSink {
  readonly bytes: Uint8Array
}

/** @throws RangeError above 64 MiB: larger files belong on a disk. */
export function createMemorySink(sizeBytes: number): MemorySink {
  if (sizeBytes > 64 * 2 ** 20) throw new RangeError('a sink in memory holds at most 64 MiB')
  const bytes = new Uint8Array(sizeBytes)
  const held = new ByteRangeSet()
  return {
    sizeBytes,
    bytes,
    ranges: () => held.toRanges(),
    write: async (offset, chunk) => {
      bytes.set(chunk, offset)
      held.add(offset, offset + chunk.length)
    },
    unmark: (start, end) => held.remove(start, end)
  }
}
