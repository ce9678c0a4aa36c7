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
  /**
   * Where large ranges may be written by worker threads, which then take them from the network, too: half the CPU time, and nothing of it
   * in the caller's thread. `write` is still called for the rest, and where writing failed, so that it tells why.
   */
  readonly direct?: DirectSink | undefined
}

/** How a sink hashes its blocks, so that who writes them can do it while they are at hand. */
export interface BlockHashing {
  /**
   * URL of an ES module whose default export is `(options, sizeBytes) => { update(bytes), digest() }` and gives one hash after another,
   * each of one block and of nothing else.
   */
  readonly module: string
  readonly options?: unknown
  readonly blockBytes: number
}

/** A way into a sink for worker threads. */
export interface DirectSink {
  /** A descriptor that threads of this process write to at any position. It stays open until the download has settled. */
  readonly fd: number
  readonly hashing?: BlockHashing | undefined
  /** `[start, end)` was written through `fd`; `hashes` are those of the blocks that lie whole in it, where `hashing` asks for them. */
  markWritten(start: number, end: number, hashes: Uint8Array | undefined): void
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
