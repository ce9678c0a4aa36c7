import type { ByteRanges } from './gaps.ts'

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
  let held: [number, number][] = []
  return {
    sizeBytes,
    bytes,
    ranges: () => held,
    write: async (offset, chunk) => {
      bytes.set(chunk, offset)
      held = union(held, offset, offset + chunk.length)
    },
    unmark: (start, end) => {
      held = held.flatMap(([from, to]) =>
        (
          [
            [from, Math.min(to, start)],
            [Math.max(from, end), to]
          ] as [number, number][]
        ).filter(([a, b]) => a < b)
      )
    }
  }
}

function union(ranges: readonly [number, number][], start: number, end: number): [number, number][] {
  if (start === end) return [...ranges]
  const merged: [number, number][] = []
  for (const [from, to] of [...ranges, [start, end] as [number, number]].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last && from <= last[1]) last[1] = Math.max(last[1], to)
    else merged.push([from, to])
  }
  return merged
}
