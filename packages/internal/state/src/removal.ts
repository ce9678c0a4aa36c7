import { type DiskBlobStore, withLease } from '@svc/cas'
import { RAW } from '@svc/classify'
import { type IndexMember, type ModelIndex, shrinkIndex } from '@svc/manifest'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { futureQuant } from './config-quant.ts'
import type { Documents } from './documents.ts'
import { LibraryError } from './library-error.ts'
import type { ArtifactHolder, Needed } from './needed.ts'
import type { RepoState, Repos } from './repos.ts'
import { oneChunk } from './small-blob.ts'
import type { StoreState } from './state.ts'

interface RemovalDeps extends Pick<StoreState, 'store' | 'repos' | 'documents' | 'artifacts'> {
  readonly needed: Needed
  readonly running: { openOf(manifest: string): readonly { readonly id: string }[] }
  /** Called before the response with artifacts that are no longer needed, so that they leave the swarm at once. */
  readonly onUnneeded: (manifestDigest: Sha256Digest) => Promise<void>
}

/** What a removal removed. Blobs stay until a collection. */
interface RemovedModel {
  /** `ns/name`, or `ns/name:quant` */
  readonly ref: string
  readonly quants: readonly RemovedQuant[]
  /** Tags that were removed as well. */
  readonly tags: readonly string[]
  readonly freeableBytes: number
}

interface RemovedQuant {
  readonly quant: string
  readonly manifest: Sha256Digest
  /** Another name, a tag, a pin or a view still needs it. */
  readonly needed: boolean
  /** Who still needs it, or uses its files now; absent without any. */
  readonly holders?: readonly ArtifactHolder[]
}

interface RemovalRequest extends RepoId {
  /** Default: all quants. */
  readonly quant?: string | undefined
  /** Also removes older snapshots, which otherwise protect their content. */
  readonly allTags: boolean
  /** Tags of the current index stay as they are, with what they name. */
  readonly keepTags?: boolean
}

/**
 * Removes names. Artifacts that no name, tag, pin or view needs any longer leave the swarm at once, and are removed by
 * a collection.
 */
export class Removals {
  readonly #deps: RemovalDeps

  constructor(deps: RemovalDeps) {
    this.#deps = deps
  }

  /**
   * Removes a repository, or one quant of it, with the tags that point to the current index (spec add.12). One atomic
   * change of the repository's state; blobs stay until a collection. An interrupted import no longer adds what it was to
   * add. A damaged record is set aside (spec disk.19).
   * @throws LibraryError `E_UNKNOWN_REF`, `E_NO_QUANT`, `E_NO_INDEX`, `E_INVALID_INDEX`
   */
  async remove(request: RemovalRequest): Promise<RemovedModel> {
    const { repos, store } = this.#deps
    const { ns, name, quant } = request
    // what it named is unknown
    if (quant === undefined && (await repos.setAside(request))) {
      await this.#endFutureNames(request)
      return { ref: formatRepoId(request), tags: [], quants: [], freeableBytes: 0 }
    }
    const removed = new Map<Sha256Digest, string>()
    const tags: string[] = []
    await withLease(store, () =>
      repos.change({ ns, name }, async (current) => {
        const isToCome = await this.#endFutureNames(request)
        if (current === undefined && isToCome) return undefined
        if (current === undefined) throw await unknownRepo(request, repos)
        return changed(current, request, this.#deps, { removed, tags, isToCome })
      })
    )
    await this.#dropCompanions(request, removed.keys())
    const ref = quant === undefined ? formatRepoId(request) : `${formatRepoId(request)}:${quant}`
    return { ref, tags: tags.sort(), ...(await this.#after(removed)) }
  }

  /** Takes a removed name's companions from artifacts that keep other names, unless one of its tags still lists them. */
  async #dropCompanions(repo: RepoId, manifests: Iterable<Sha256Digest>): Promise<void> {
    const { repos, documents, artifacts, needed } = this.#deps
    const given: Sha256Digest[] = []
    for (const manifest of manifests) if (await needed.isGiven(manifest)) given.push(manifest)
    if (given.length === 0) return
    // in the name's turn: an import may give it the same artifact again
    await repos.change({ ns: repo.ns, name: repo.name }, async (current) => {
      const named = new Set<Sha256Digest>()
      for (const digest of new Set([current?.index, ...(current?.tags.values() ?? [])])) {
        const index = digest && (await indexOf(digest, documents, true))
        // its target is unknown
        if (digest !== undefined && index === undefined) return current
        for (const { manifest } of index?.members ?? []) named.add(manifest)
      }
      for (const manifest of given)
        if (!named.has(manifest)) await artifacts.dropCompanions(manifest, formatRepoId(repo))
      return current
    })
  }

  /** Ends pending names, so that no client of a mirror brings the name back. @returns whether there was one */
  async #endFutureNames({ ns, name, quant }: RemovalRequest): Promise<boolean> {
    const { artifacts, documents, store } = this.#deps
    const full = formatRepoId({ ns, name })
    let isToCome = false
    for (const manifest of await artifacts.toBeNamed(full)) {
      const document = quant === undefined ? undefined : await documents.manifest(manifest)
      const known = document && (await futureQuant(store, document))
      if (known !== undefined && known !== quant) continue
      await artifacts.endFutureName(manifest, full)
      await artifacts.endFutureCompanions(manifest, full)
      isToCome = true
    }
    return isToCome
  }

  /** Releases a pinned import without a name. @throws LibraryError `E_UNKNOWN_REF` if it is not one */
  async releasePin(manifestDigest: Sha256Digest): Promise<RemovedModel> {
    const { artifacts } = this.#deps
    if (!(await artifacts.releasePin(manifestDigest)))
      throw new LibraryError(
        'E_UNKNOWN_REF',
        `${manifestDigest} is not a pinned import; a model with a name is removed by its name`
      )
    await artifacts.endFutureCompanions(manifestDigest, '')
    return { ref: manifestDigest, tags: [], ...(await this.#after(new Map([[manifestDigest, RAW]]))) }
  }

  async #after(removed: ReadonlyMap<Sha256Digest, string>): Promise<Pick<RemovedModel, 'quants' | 'freeableBytes'>> {
    const { needed, store, onUnneeded } = this.#deps
    const unneeded: Sha256Digest[] = []
    for (const manifest of removed.keys()) {
      if (!(await needed.has(manifest))) unneeded.push(manifest)
      if (!(await needed.isGiven(manifest))) await onUnneeded(manifest)
    }
    const quants: RemovedQuant[] = []
    for (const [manifest, quant] of removed) {
      const holders = await this.#holdersOf(manifest)
      const isHeld = holders.length > 0
      quants.push({ quant, manifest, needed: !unneeded.includes(manifest), ...(isHeld && { holders }) })
    }
    return { quants, freeableBytes: await bytesOnlyOf(unneeded, needed, store) }
  }

  async #holdersOf(manifest: Sha256Digest): Promise<ArtifactHolder[]> {
    const { needed, store, running } = this.#deps
    const holders = await needed.holdersOf(manifest)
    for (const { id } of running.openOf(manifest)) holders.push({ kind: 'job', what: id })
    const blobs = [...(await needed.blobsOf(manifest))]
    if (holders.length === 0 && blobs.some((digest) => store.isLeased(digest))) holders.push({ kind: 'use' })
    return holders
  }
}

async function changed(
  current: RepoState,
  { ns, name, quant, allTags, keepTags = false }: RemovalRequest,
  { store, documents }: RemovalDeps,
  gone: { readonly removed: Map<Sha256Digest, string>; readonly tags: string[]; readonly isToCome: boolean }
): Promise<RepoState | undefined> {
  const before = current.index === undefined ? undefined : await indexOf(current.index, documents, quant === undefined)
  const members = before?.members ?? []
  const named = (member: IndexMember): boolean => quant === undefined || member.quant === quant
  const rest = members.filter((member) => !named(member))
  for (const { quant: each, manifest } of members.filter(named)) gone.removed.set(manifest, each)
  const tags = new Map(current.tags)
  /** The members that are gone with a tag; undefined for a tag that stays. */
  const goneWith = async (digest: Sha256Digest): Promise<readonly IndexMember[] | undefined> => {
    if (digest === current.index) return gone.removed.size > 0 && !keepTags ? [] : undefined
    if (!allTags) return undefined
    const older = ((await indexOf(digest, documents, true))?.members ?? []).filter(named)
    return quant === undefined || older.length > 0 ? older : undefined
  }
  for (const [tag, digest] of current.tags) {
    const older = await goneWith(digest)
    if (older === undefined) continue
    tags.delete(tag)
    gone.tags.push(tag)
    for (const member of older) gone.removed.set(member.manifest, member.quant)
  }
  if (gone.removed.size === 0 && gone.tags.length === 0 && quant !== undefined) {
    if (gone.isToCome) return current
    const candidates = members.map((member) => member.quant)
    const there = candidates.slice(0, 12).join(', ') || 'nothing'
    throw new LibraryError('E_NO_QUANT', `${ns}/${name} has no quant ${JSON.stringify(quant)}; there is ${there}`, {
      candidates
    })
  }
  if (before === undefined || rest.length === 0) return tags.size === 0 ? undefined : { index: undefined, tags }
  const index = shrinkIndex(before, named)
  await store.ingest(oneChunk(index.bytes), { digest: index.digest, sizeBytes: index.bytes.length })
  return { index: index.digest, tags }
}

/** With `lenient`, an unreadable index counts as absent, so that the name can be removed nevertheless. */
async function indexOf(digest: Sha256Digest, documents: Documents, lenient: boolean): Promise<ModelIndex | undefined> {
  try {
    return await documents.index(digest)
  } catch (error) {
    if (!lenient || !(error instanceof LibraryError)) throw error
    return undefined
  }
}

async function unknownRepo({ ns, name }: RepoId, repos: Repos): Promise<LibraryError> {
  const candidates = (await repos.names(ns)).slice(0, 100).map((each) => `${ns}/${each}`)
  return new LibraryError('E_UNKNOWN_REF', `nothing is stored under ${ns}/${name}`, { candidates })
}

/** Bytes that a collection could free now: those of blobs that only these artifacts need. */
async function bytesOnlyOf(manifests: readonly Sha256Digest[], needed: Needed, store: DiskBlobStore): Promise<number> {
  if (manifests.length === 0) return 0
  let bytes = 0
  try {
    const kept = await needed.blobs()
    const own = new Set<Sha256Digest>()
    for (const manifest of manifests) for (const digest of await needed.blobsOf(manifest)) own.add(digest)
    for (const digest of own) if (!kept.has(digest)) bytes += (await store.stat(digest))?.sizeBytes ?? 0
  } catch (error) {
    // this is only an estimate: a collection reports what prevents it
    if (!(error instanceof LibraryError)) throw error
  }
  return bytes
}
