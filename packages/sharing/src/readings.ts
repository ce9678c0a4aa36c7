import type { ArtifactTorrent } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { FileRange } from '@svc/swarm'

/**
 * How far ahead of a reader pieces come first. Enough that the order of pieces never makes it wait, and no more: nodes
 * of a fleet that fetch everything in the same order have nothing to give one another.
 */
const AHEAD_BYTES = 16 << 20
/** After this many more bytes the engine hears where a reader is. */
const STEP_BYTES = 4 << 20

/** Verified bytes of a blob that an artifact's swarm is fetching. */
export interface FetchedBlob {
  /** Where the verified bytes from `offset` on end, at `end` at the latest. */
  until(offset: number, end: number): number
  /** Reads such bytes; 0 if they were taken back. */
  read(target: Uint8Array, offset: number): Promise<number>
}

/** A reader of the first of some blobs that are being fetched: the bytes after each read are fetched first. */
export interface Reading extends FetchedBlob {
  close(): void
}

/** The engine, as seen by readers. */
export interface ReadingsDeps {
  /** {@link Readings.ranges} of an artifact have changed. */
  readonly onChange: (manifestDigest: Sha256Digest) => void
  /** Undefined while nothing fetches it. */
  readonly fetched: (manifestDigest: Sha256Digest, digest: Sha256Digest) => FetchedBlob | undefined
}

interface ReadPosition {
  readonly digests: ReadonlySet<Sha256Digest>
  readonly onNews: () => void
  offset: number
}

/** The readers of artifacts that are or may soon be fetched: the bytes they wait for are fetched first. */
export class Readings {
  readonly #places = new Map<Sha256Digest, Set<ReadPosition>>()
  readonly #deps: ReadingsDeps

  constructor(deps: ReadingsDeps) {
    this.#deps = deps
  }

  /** Waits for blobs, from `offset` on. `onNews` is called when pieces or files of the artifact were verified. */
  open(manifestDigest: Sha256Digest, digests: readonly Sha256Digest[], onNews: () => void, offset = 0): Reading {
    const { onChange, fetched } = this.#deps
    const place: ReadPosition = { digests: new Set(digests), onNews, offset }
    const places = this.#places.get(manifestDigest) ?? new Set()
    this.#places.set(manifestDigest, places.add(place))
    onChange(manifestDigest)
    const blob = (): FetchedBlob | undefined => digests[0] && fetched(manifestDigest, digests[0])
    return {
      until: (from, end) => blob()?.until(from, end) ?? from,
      read: async (target, from) => {
        if (from < place.offset || from >= place.offset + STEP_BYTES) {
          place.offset = from
          onChange(manifestDigest)
        }
        return (await blob()?.read(target, from)) ?? 0
      },
      close: () => {
        if (!places.delete(place)) return
        if (places.size === 0 && this.#places.get(manifestDigest) === places) this.#places.delete(manifestDigest)
        onChange(manifestDigest)
      }
    }
  }

  /** Something of an artifact was verified. */
  tell(manifestDigest: Sha256Digest): void {
    for (const { onNews } of this.#places.get(manifestDigest) ?? []) onNews()
  }

  /** The bytes that readers of an artifact wait for. */
  ranges({ manifestDigest, files }: ArtifactTorrent): FileRange[] {
    const ranges: FileRange[] = []
    for (const { digests, offset: start } of this.#places.get(manifestDigest) ?? []) {
      for (const [fileIndex, { digest }] of files.entries())
        if (digests.has(digest)) ranges.push({ fileIndex, start, end: start + AHEAD_BYTES + STEP_BYTES })
    }
    return ranges
  }
}
