import type { ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'

/** Weights alone are evicted, and files that were taken as they are. Other files are small, and their tars are made here: no source has these. */
export const isEvictable = ({ kind }: Pick<ManifestFile, 'kind'>): boolean =>
  kind.startsWith('weights.') || kind === 'opaque'

/** Why the weights of an artifact stay. */
export type KeptFact = 'pinned' | 'viewed' | 'in-use' | 'unproven'

export interface EvictionCandidate {
  readonly manifest: Sha256Digest
  /** Weights that are here. */
  readonly blobs: readonly { readonly digest: Sha256Digest; readonly sizeBytes: number }[]
  /** Unix time of the last use, else of the import. */
  readonly usedMs: number
  /** What keeps it whatever its sources have. */
  readonly kept?: Exclude<KeptFact, 'unproven'> | undefined
  /** Unix time at which another place was last seen to have all of it; undefined for never. */
  readonly provenMs: number | undefined
}

export interface EvictionLimits {
  readonly nowMs: number
  /** `[store] proof_days` */
  readonly proofMs: number
}

interface EvictionPlan {
  /** In this order. */
  readonly evicted: readonly Sha256Digest[]
  /** Once all of them are evicted. */
  readonly freedBytes: number
}

/** Why an artifact may not be evicted without its owner's word; undefined where it may. */
export function keptFact(
  { kept, provenMs }: Pick<EvictionCandidate, 'kept' | 'provenMs'>,
  { nowMs, proofMs }: EvictionLimits
): KeptFact | undefined {
  if (kept !== undefined) return kept
  // a proof of the future is one of a clock that was wrong
  return provenMs !== undefined && provenMs <= nowMs && nowMs - provenMs <= proofMs ? undefined : 'unproven'
}

/**
 * The artifacts to evict so that `wantedBytes` become free: least recently used first, without those whose bytes a
 * remaining artifact needs. If these are not enough, all of them.
 */
export function planEviction(
  candidates: readonly EvictionCandidate[],
  wantedBytes: number,
  limits: EvictionLimits
): EvictionPlan {
  const users = new Map<Sha256Digest, number>()
  for (const { blobs } of candidates)
    for (const digest of new Set(blobs.map((blob) => blob.digest))) users.set(digest, (users.get(digest) ?? 0) + 1)
  const oldest = candidates
    .filter((each) => keptFact(each, limits) === undefined && each.blobs.length > 0)
    .sort((a, b) => a.usedMs - b.usedMs || (a.manifest < b.manifest ? -1 : 1))
  const going = new Set<EvictionCandidate>()
  let freedBytes = 0
  for (const candidate of oldest) {
    if (freedBytes >= wantedBytes) break
    going.add(candidate)
    for (const [digest, sizeBytes] of sizesOf(candidate)) {
      const left = users.get(digest)! - 1
      users.set(digest, left)
      if (left === 0) freedBytes += sizeBytes
    }
  }
  const evicted = [...going].filter((each) => [...sizesOf(each).keys()].some((digest) => users.get(digest) === 0))
  return { evicted: evicted.map(({ manifest }) => manifest), freedBytes }
}

const sizesOf = ({ blobs }: EvictionCandidate): ReadonlyMap<Sha256Digest, number> =>
  new Map(blobs.map(({ digest, sizeBytes }) => [digest, sizeBytes]))
