import type { Lease } from '@svc/cas'
import { KeyedLock } from '@svc/internal-concurrency'
import { type ThreadCallOptions, WorkerThread, workerUrl } from '@svc/internal-workers'
import type { Companions } from '@svc/manifest'
import type { RepoId, Sha256Digest } from '@svc/ref'
import type { MadeView, StandingRequest, StandingResult, View } from '@svc/view'
import { type CompanionDeps, type KeptCompanions, keptCompanions, presentOf } from './companions.ts'
import { ownCompanions } from './given-companions.ts'
import { outsideWarnings } from './outside-names.ts'
import { missingBlobsError, upstreamConfigOf } from './upstream-config.ts'
import { type CreateRequest, type ViewCalls, viewErrors } from './view-calls.ts'

/** The model that a view shows. */
export type ShownModel = Pick<
  CreateRequest,
  'manifest' | 'manifestDigest' | 'companions' | 'without' | 'upstreamConfig' | 'upstreamNames' | 'commitFiles'
>

/** An artifact, with its companions under one name: what decides the files of a model's folder. */
export interface ArtifactFolder {
  readonly manifest: Sha256Digest
  /** Their document. */
  readonly companions?: Sha256Digest | undefined
}

/** Makes, reads and removes views in one thread (see {@link ViewCalls}), with one change at a time at each place. */
export class ViewMaker {
  readonly #deps: CompanionDeps
  readonly #thread = new WorkerThread<ViewCalls>({
    url: workerUrl('./view-worker', import.meta.url),
    name: 'svc-views',
    errors: viewErrors
  })
  readonly #places = new KeyedLock()
  /** Running changes: no state is written after {@link close} has resolved. */
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(deps: CompanionDeps) {
    this.#deps = deps
  }

  /** Reads what a view of an artifact shows, whose blobs `lease` keeps. @throws LibraryError `E_NOT_FOUND`, `E_CORRUPTION` */
  async prepare(
    asked: RepoId & { readonly ref: string },
    manifestDigest: Sha256Digest,
    lease: Lease
  ): Promise<Pick<KeptCompanions, 'own' | 'warnings'> & { readonly model: ShownModel }> {
    const manifest = await this.#manifest(manifestDigest)
    const kept = await keptCompanions(asked, { ...manifest, digest: manifestDigest }, this.#deps)
    const { own } = kept
    const warnings = [...kept.warnings, ...(await outsideWarnings(manifest.files, this.#deps))]
    const companions = kept.digest && { digest: kept.digest, files: kept.listed }
    const without = kept.digest && new Set(kept.missing.map(({ path }) => path))
    const upstreamNames = (await this.#deps.artifacts.ifReadable(manifestDigest))?.source.names
    const commitFiles = kept.digest && kept.commitFiles
    const model = await this.#model(
      { manifest, manifestDigest, companions, without, upstreamNames, commitFiles },
      lease
    )
    return { model, own, warnings }
  }

  /** {@link prepare} of what others may see of it: without the owner's own files. @throws as that */
  async prepareForOthers({ manifest: digest, companions }: ArtifactFolder, lease: Lease): Promise<ShownModel> {
    const { store, documents, artifacts } = this.#deps
    const manifest = await this.#manifest(digest)
    const state = companions && (await artifacts.ifReadable(digest))
    const document: Companions | undefined = state && companions && (await documents.companions(companions))
    if (state === undefined || document === undefined || companions === undefined)
      return this.#model({ manifest, manifestDigest: digest }, lease)
    const { missing } = await presentOf(document, store)
    const without = new Set([...missing, ...ownCompanions(document, state)].map(({ path }) => path))
    const beside = { digest: companions, files: document.files }
    return this.#model({ manifest, manifestDigest: digest, companions: beside, without }, lease)
  }

  async #manifest(digest: Sha256Digest) {
    const manifest = await this.#deps.documents.manifest(digest)
    if (manifest === undefined) throw missingBlobsError([digest])
    return manifest
  }

  async #model(shown: Omit<ShownModel, 'upstreamConfig'>, lease: Lease): Promise<ShownModel> {
    for (const blob of blobsOf(shown)) lease.keep(blob)
    return { ...shown, upstreamConfig: await upstreamConfigOf(shown.manifest, this.#deps.store) }
  }

  create(
    model: ShownModel,
    options: Omit<CreateRequest, keyof ShownModel | 'blobPaths' | 'root'>,
    call?: ThreadCallOptions<number>
  ): Promise<MadeView> {
    const { store } = this.#deps
    const blobPaths = new Map(blobsOf(model).map((digest) => [digest, store.blobPath(digest)]))
    return this.#thread.call('create', { ...model, ...options, blobPaths, root: store.root }, call)
  }

  /** Undefined if there is no view. @throws ViewError */
  read(path: string): Promise<View | undefined> {
    return this.#thread.call('read', path)
  }

  /** @param model only that one of a hub cache @returns whether there was one. @throws ViewError `E_NOT_A_VIEW` */
  remove(path: string, model?: Sha256Digest): Promise<boolean> {
    return this.#thread.call('remove', { path, model })
  }

  /** See {@link ViewCalls}. */
  isStandingInOrder(path: string, key: string): Promise<boolean> {
    return this.#thread.call('isStandingInOrder', { path, key })
  }

  /** @throws ViewError as `syncStanding` of `@svc/view` */
  syncStanding(request: Omit<StandingRequest, 'root'>, call?: ThreadCallOptions<number>): Promise<StandingResult> {
    return this.#thread.call('syncStanding', { ...request, root: this.#deps.store.root }, call)
  }

  /** @throws ViewError as {@link syncStanding} */
  removeStanding(path: string): Promise<StandingResult> {
    return this.#thread.call('removeStanding', { path, root: this.#deps.store.root })
  }

  /** Runs a change at a place, after all earlier ones there. */
  async change<T>(place: string, work: () => Promise<T>): Promise<T> {
    const change = this.#places.run(place, undefined, work)
    this.#underWay.add(change)
    try {
      return await change
    } finally {
      this.#underWay.delete(change)
    }
  }

  /** Ends the thread; an unfinished view is cleaned up at the next start, or when its place is used again. */
  async close(): Promise<void> {
    await this.#thread.close()
    await Promise.allSettled(this.#underWay)
  }
}

const blobsOf = ({ manifest, companions }: Pick<ShownModel, 'manifest' | 'companions'>): Sha256Digest[] =>
  [...manifest.files, ...(companions?.files ?? [])].map(({ digest }) => digest)
