import { join } from 'node:path'
import { withLease } from '@svc/cas'
import { makeFolders } from '@svc/internal-files'
import { digestHex, type Sha256Digest } from '@svc/ref'
import type { View } from '@svc/view'
import type { StandIn } from './coming.ts'
import type { StoreState } from './state.ts'
import type { ShownModel, ViewMaker } from './view-maker.ts'

/**
 * Views for callers that must not decide what is kept: they lie below `cache`, hold nothing, are not listed, and count
 * as no use.
 */
export class LentViews {
  readonly #store: StoreState['store']
  readonly #maker: ViewMaker
  readonly #folder: string

  constructor(store: StoreState['store'], maker: ViewMaker) {
    this.#store = store
    this.#maker = maker
    this.#folder = join(store.root, 'cache', 'views')
  }

  /** The files of an artifact. With `mayLack` only the unpacked ones must be here. @throws as `Views.make` */
  lend(manifestDigest: Sha256Digest, mayLack: boolean): Promise<View['files']> {
    // only the digest matters: a pinned artifact has no name of its own
    const asked = { ref: `svc:///by/digest@${manifestDigest}`, ns: 'by', name: 'digest' }
    return withLease(this.#store, async (lease) => {
      const { model } = await this.#maker.prepare(asked, manifestDigest, lease, { forOthers: true })
      return this.#make(model, mayLack)
    })
  }

  /** The files of an artifact that an import is making. @throws as {@link lend} */
  lendComing({ standIn, manifest, companions, upstreamConfig }: StandIn): Promise<View['files']> {
    return this.#make({ manifest, manifestDigest: standIn, companions, upstreamConfig }, true)
  }

  /** Removes the view of an artifact, if there is one. */
  async end(manifestDigest: Sha256Digest): Promise<void> {
    const path = this.#pathOf(manifestDigest)
    await this.#maker.change(path, () => this.#maker.remove(path))
  }

  async #make(model: ShownModel, mayLack: boolean): Promise<View['files']> {
    await makeFolders(this.#folder, 0o700)
    const path = this.#pathOf(model.manifestDigest)
    return (await this.#maker.change(path, () => this.#maker.create(model, { path, mayLack }))).files
  }

  #pathOf(manifestDigest: Sha256Digest): string {
    return join(this.#folder, digestHex(manifestDigest))
  }
}
