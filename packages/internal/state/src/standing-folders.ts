import { join } from 'node:path'
import type { ThreadCallOptions } from '@svc/internal-workers'
import type { RepoId, Sha256Digest } from '@svc/ref'
import type { StandingRequest, StandingResult, View } from '@svc/view'
import { LentViews } from './lent-views.ts'
import type { StoreState } from './state.ts'
import type { ViewMaker } from './view-maker.ts'

/** The folders of tools that follow the store: what is done in them, one change at a time at each. */
export class StandingFolders {
  readonly #maker: ViewMaker
  readonly #unpacked: LentViews

  constructor(store: StoreState['store'], maker: ViewMaker) {
    this.#maker = maker
    this.#unpacked = new LentViews(store, maker, join(store.root, 'cache/standing'))
  }

  /** All files of a model, with what has to be unpacked for them. @throws as `Views.make` */
  files(asked: RepoId & { readonly ref: string }, manifest: Sha256Digest): Promise<View['files']> {
    return this.#unpacked.lendToOwner(asked, manifest)
  }

  /** What was unpacked for a model is not needed any more. */
  end(manifest: Sha256Digest): Promise<void> {
    return this.#unpacked.end(manifest)
  }

  isInOrder(path: string, key: string): Promise<boolean> {
    return this.#maker.isStandingInOrder(path, key)
  }

  /** @throws ViewError as `syncStanding` of `@svc/view` */
  sync(request: Omit<StandingRequest, 'root'>, call?: ThreadCallOptions<number>): Promise<StandingResult> {
    return this.#maker.change(request.path, () => this.#maker.syncStanding(request, call))
  }

  /** @throws ViewError as {@link sync} */
  remove(path: string): Promise<StandingResult> {
    return this.#maker.change(path, () => this.#maker.removeStanding(path))
  }
}
