import type { ArtifactTorrent } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { FileRange } from '@svc/swarm'

/**
 * How far ahead of a reader pieces come first. Enough that it is never the order of pieces that it waits for, and no more: what all
 * nodes of a fleet fetch in the same order they cannot give one another.
 */
const AHEAD_BYTES = 16 << 20
/** After this many more bytes the engine hears where a reader is. */
const STEP_BYTES = 4 << 20

/** Somebody reads blobs of an artifact while they are being fetched. */
export interface Reading {
  /** The reader of a single blob is there now. */
  at(offset: number): void
  close(): void
}

interface Place {
  readonly digests: ReadonlySet<Sha256Digest>
  offset: number
}

/** The readers of artifacts that are being fetched, or may soon be: what they wait for is fetched first. */
export class Readings {
  readonly #places = new Map<Sha256Digest, Set<Place>>()
  readonly #onChange: (manifestDigest: Sha256Digest) => void

  /** @param onChange called when {@link ranges} of an artifact have changed */
  constructor(onChange: (manifestDigest: Sha256Digest) => void) {
    this.#onChange = onChange
  }

  /** Waits for blobs, from their beginning until it says otherwise. */
  open(manifestDigest: Sha256Digest, digests: Iterable<Sha256Digest>): Reading {
    const place: Place = { digests: new Set(digests), offset: 0 }
    const places = this.#places.get(manifestDigest) ?? new Set()
    this.#places.set(manifestDigest, places.add(place))
    this.#onChange(manifestDigest)
    return {
      at: (offset) => {
        if (offset >= place.offset && offset < place.offset + STEP_BYTES) return
        place.offset = offset
        this.#onChange(manifestDigest)
      },
      close: () => {
        if (!places.delete(place)) return
        if (places.size === 0 && this.#places.get(manifestDigest) === places) this.#places.delete(manifestDigest)
        this.#onChange(manifestDigest)
      }
    }
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
