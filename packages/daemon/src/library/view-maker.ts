import type { Lease } from '@svc/cas'
import { KeyedLock } from '@svc/internal-concurrency'
import { type ThreadCallOptions, WorkerThread, workerUrl } from '@svc/internal-workers'
import type { RepoId, Sha256Digest } from '@svc/ref'
import type { MadeView, View } from '@svc/view'
import { type CompanionDeps, type KeptCompanions, keptCompanions } from './companions.ts'
import { missingBlobsError, upstreamConfigOf } from './upstream-config.ts'
import { type CreateRequest, type ViewCalls, viewErrors } from './view-calls.ts'

/** The model that a view shows. */
export type ShownModel = Pick<CreateRequest, 'manifest' | 'manifestDigest' | 'companions' | 'upstreamConfig'>

/** Makes, reads and removes views in one thread (see {@link ViewCalls}), with one change at a time at each place. */
export class ViewMaker {
  readonly #deps: CompanionDeps
  readonly #thread = new WorkerThread<ViewCalls>({
    url: workerUrl('./view-worker', import.meta.url),
    name: 'svcd-views',
    errors: viewErrors
  })
  readonly #places = new KeyedLock()
  /** Running changes: no state is written after {@link close} has resolved. */
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(deps: CompanionDeps) {
    this.#deps = deps
  }

  /** Reads what a view of an artifact shows, whose blobs `lease` keeps. @throws DaemonError `E_NOT_FOUND`, `E_CORRUPTION` */
  async prepare(
    asked: RepoId & { readonly ref: string },
    manifestDigest: Sha256Digest,
    lease: Lease,
    { forOthers = false }: { readonly forOthers?: boolean } = {}
  ): Promise<Pick<KeptCompanions, 'own' | 'warnings'> & { readonly model: ShownModel }> {
    const { store, documents } = this.#deps
    const manifest = await documents.manifest(manifestDigest)
    if (manifest === undefined) throw missingBlobsError([manifestDigest])
    const kept = await keptCompanions(asked, { ...manifest, digest: manifestDigest }, this.#deps)
    const { own, warnings } = kept
    const companions = kept.digest && {
      digest: kept.digest,
      files: forOthers ? kept.files.filter(({ path }) => !own.has(path)) : kept.files
    }
    for (const blob of blobsOf({ manifest, companions })) lease.keep(blob)
    const upstreamConfig = await upstreamConfigOf(manifest, store)
    return { model: { manifest, manifestDigest, companions, upstreamConfig }, own, warnings }
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
