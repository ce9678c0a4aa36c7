/** A model with the blobs that it needs; those that other models need, too, are on the disk once. */
export interface StoredModel {
  /** `ns/name:quant` */
  readonly ref: string
  /** `ns/name` */
  readonly repo: string
  readonly digests: ReadonlySet<string>
}

/** The space of a model or a repository, in bytes: `bytes` is the sum of the other two. */
export interface DiskUse {
  readonly ref: string
  readonly bytes: number
  /** Bytes that nothing else in the store needs. */
  readonly aloneBytes: number
  readonly sharedBytes: number
}

/**
 * The space of each model, and of each repository, in the order of `models`; `sizes` are the blobs' sizes in bytes by
 * digest. Time and memory grow with the number of blobs of all models together.
 */
export function diskUse(
  models: readonly StoredModel[],
  sizes: ReadonlyMap<string, number>
): { readonly models: readonly DiskUse[]; readonly repositories: readonly DiskUse[] } {
  const parts = Map.groupBy(models, ({ repo }) => repo)
  const needed = counts(models)
  return {
    models: models.map((model) => useOf(model.ref, counts([model]), needed, sizes)),
    repositories: [...parts].map(([repo, members]) => useOf(repo, counts(members), needed, sizes))
  }
}

/** How many of the models need each blob. */
function counts(models: readonly StoredModel[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const { digests } of models) for (const digest of digests) found.set(digest, (found.get(digest) ?? 0) + 1)
  return found
}

/** A blob is shared if more models need it than those that count here. */
function useOf(
  ref: string,
  own: ReadonlyMap<string, number>,
  needed: ReadonlyMap<string, number>,
  sizes: ReadonlyMap<string, number>
): DiskUse {
  let [aloneBytes, sharedBytes] = [0, 0]
  for (const [digest, count] of own) {
    const bytes = sizes.get(digest) ?? 0
    if (needed.get(digest) === count) aloneBytes += bytes
    else sharedBytes += bytes
  }
  return { ref, bytes: aloneBytes + sharedBytes, aloneBytes, sharedBytes }
}
