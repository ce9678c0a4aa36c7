import { ClientError, type Status } from '@svc/client'
import { forEachLimited } from '@svc/internal-concurrency'
import type { Session } from '../session.ts'
import { readManifestBlob } from './documents.ts'
import { membersOf } from './models-here.ts'

/** Manifests that are read at the same time: the daemon then has work while an answer is on its way. */
const READS = 8

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

/** The space of models and repositories, in the order of `models`; `sizes` are in bytes, by digest of the blobs. */
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

/** How the disk is used: each blob counts once, in the `aloneBytes` of a model or in one of the next three sums. */
export interface StoreUse {
  readonly models: readonly DiskUse[]
  readonly repositories: readonly DiskUse[]
  /** Needed by several models. */
  readonly sharedBytes: number
  /** Kept by tags, views and pinned imports. */
  readonly keptBytes: number
  /** Needed by nothing: a collection gives it back. */
  readonly freeableBytes: number
  readonly storeBytes: number
  readonly freeBytes?: number
  /** Not in `storeBytes`. */
  readonly unfinished?: Status['store']['unfinished']
  readonly quarantined?: Status['store']['quarantined']
}

export async function readDiskUse(session: Session): Promise<StoreUse> {
  const { client } = session
  const [inventory, { store }] = await Promise.all([client.models(), client.status()])
  const members = membersOf(inventory).map(({ ref, repo, manifest, companions, complete }) => ({
    ref,
    repo,
    complete,
    documents: [manifest, ...(companions === undefined ? [] : [companions])]
  }))
  const documents = new Map<string, boolean>()
  for (const { documents: own, complete } of members)
    for (const document of own) documents.set(document, complete && documents.get(document) !== false)
  const contents = await readContents(session, documents)
  const stored = members.map(({ ref, repo, documents }): StoredModel => {
    const digests = new Set(documents.flatMap((document) => contents.get(document)!.map(({ digest }) => digest)))
    return { ref, repo, digests }
  })
  const sizes = new Map(
    [...contents.values()].flatMap((blobs) => blobs.map(({ digest, size }) => [digest, size] as const))
  )
  const { models, repositories } = diskUse(stored, sizes)
  const usedBytes = sumOf([...sizes.values()])
  const { result } = await client.waitJob(await client.gc({ dryRun: true, graceSeconds: 0, views: true }))
  const freeableBytes = result?.bytes ?? 0
  return {
    models,
    repositories,
    sharedBytes: usedBytes - sumOf(models.map(({ aloneBytes }) => aloneBytes)),
    keptBytes: Math.max(0, store.bytes - usedBytes - freeableBytes),
    freeableBytes,
    storeBytes: store.bytes,
    ...(store.freeBytes !== undefined && { freeBytes: store.freeBytes }),
    ...(store.unfinished !== undefined && { unfinished: store.unfinished }),
    ...(store.quarantined !== undefined && { quarantined: store.quarantined })
  }
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)

interface ListedBlob {
  readonly digest: string
  readonly size: number
}

/**
 * The blobs that each manifest or document of companions lists, and the document itself, as far as they are here. Reads
 * them as blobs: opening a model would count as a use of it.
 */
async function readContents(
  { client, signal }: Session,
  documents: ReadonlyMap<string, boolean>
): Promise<ReadonlyMap<string, readonly ListedBlob[]>> {
  const contents = new Map<string, readonly ListedBlob[]>()
  await forEachLimited([...documents], READS, signal, async ([document, isComplete]) => {
    const { files = [], sizeBytes } = await readManifestBlob(client, document)
    const listed = files.map(({ digest, size }) => ({ digest, size }))
    const here = isComplete ? listed : await presentOf(client, listed)
    contents.set(document, [{ digest: document, size: sizeBytes }, ...here])
  })
  return contents
}

/** What was evicted, or is yet to come, takes no space. */
async function presentOf(client: Session['client'], blobs: readonly ListedBlob[]): Promise<ListedBlob[]> {
  const present: ListedBlob[] = []
  for (const blob of blobs) {
    const head = await client.headBlob(blob.digest).catch((error: unknown) => {
      if (error instanceof ClientError && error.code === 'E_NOT_FOUND') return undefined
      throw error
    })
    if (head !== undefined) present.push(blob)
  }
  return present
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
