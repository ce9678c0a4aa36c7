import { ByteRangeSet } from '@svc/internal-byte-ranges'
import type { RangeSink } from '@svc/internal-http'

/**
 * The target of a download: a file under construction, written in any order, that knows what it holds. `PartialBlob` of
 * @svc/cas is one.
 */
export interface HubSink extends RangeSink {
  /** Forgets `[start, end)`, which is then fetched again. */
  unmark(start: number, end: number): void
  /**
   * If present, worker threads may fetch and write large ranges, which takes half the CPU time, and none of the
   * caller's thread. `write` is still called for the rest, and after a failed write, so that it reports the reason.
   */
  readonly direct?: DirectSink | undefined
}

/** Access to a sink for worker threads. */
export interface DirectSink {
  /**
   * A descriptor that threads of this process may write to at any position. It stays open until the download has
   * settled.
   */
  readonly fd: number
  /** Shared memory: while its only element is not 0, the threads wait before they write more. */
  readonly writeGate?: Int32Array | undefined
  /** `[start, end)` was written through `fd`. */
  markWritten(start: number, end: number): void
}

/** A sink in memory, for small files. */
export interface MemorySink extends HubSink {
  readonly bytes: Uint8Array
}

/** @throws RangeError above 64 MiB: larger files belong on disk. */
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
