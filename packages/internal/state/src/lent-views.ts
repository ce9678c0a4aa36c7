import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { withLease } from '@svc/cas'
import { makeFolders } from '@svc/internal-files'
import { MARKER } from '@svc/manifest'
import { digestHex, type RepoId, type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { View } from '@svc/view'
import type { StandIn } from './coming.ts'
import type { StoreState } from './state.ts'
import type { ArtifactFolder, ShownModel, ViewMaker } from './view-maker.ts'

/**
 * Views for callers that must not decide what is kept: they lie below `cache` or outside of the store, hold nothing, are not listed, and count
 * as no use. Each artifact has a folder, with a view for each document of companions.
 */
export class LentViews {
  readonly #store: Pick<StoreState['store'], 'lease'>
  readonly #maker: ViewMaker
  readonly #folder: string
  readonly #listeners: ((manifestDigest: Sha256Digest) => void)[] = []

  /** @param folder of its own, which may be removed while nobody has it open */
  constructor(store: Pick<StoreState['store'], 'lease'>, maker: ViewMaker, folder: string) {
    this.#store = store
    this.#maker = maker
    this.#folder = folder
  }

  /** All files of an artifact under a name, also the owner's own: for the owner's tools. @throws as `Views.make` */
  lendToOwner(asked: RepoId & { readonly ref: string }, manifestDigest: Sha256Digest): Promise<View['files']> {
    return withLease(this.#store, async (lease) =>
      this.#make((await this.#maker.prepare(asked, manifestDigest, lease)).model, false)
    )
  }

  /** The files of an artifact that others may see. With `mayLack` only the unpacked ones must be here. @throws as `Views.make` */
  lend(shown: ArtifactFolder, mayLack: boolean): Promise<View['files']> {
    return withLease(this.#store, async (lease) =>
      this.#make(await this.#maker.prepareForOthers(shown, lease), mayLack)
    )
  }

  /** The files of an artifact that an import is making. @throws as {@link lend} */
  lendComing({ standIn, manifest, companions, upstreamConfig }: StandIn): Promise<View['files']> {
    return this.#make({ manifest, manifestDigest: standIn, companions, upstreamConfig }, true)
  }

  /** Calls `listener` before the views of an artifact are removed. */
  listen(listener: (manifestDigest: Sha256Digest) => void): void {
    this.#listeners.push(listener)
  }

  /** Removes the views of an artifact, if there are any. */
  async end(manifestDigest: Sha256Digest): Promise<void> {
    const folder = this.#folderOf(manifestDigest)
    await this.#maker.change(folder, () => {
      for (const listener of this.#listeners) listener(manifestDigest)
      return rm(folder, { recursive: true, force: true })
    })
  }

  /** Removes the views of all artifacts but these. */
  async endUnless(isGiven: (manifestDigest: Sha256Digest) => Promise<boolean>): Promise<void> {
    for (const hex of await readdir(this.#folder)) {
      const digest = tryParseDigest(`sha256:${hex}`)
      if (digest !== undefined && !(await isGiven(digest))) await this.end(digest)
    }
  }

  async #make(model: ShownModel, mayLack: boolean): Promise<View['files']> {
    const { manifestDigest, companions } = model
    const folder = this.#folderOf(manifestDigest)
    const path = join(folder, companions === undefined ? 'alone' : digestHex(companions.digest))
    const made = await this.#maker.change(folder, async () => {
      // earlier versions had one view of each artifact there
      if (existsSync(join(folder, MARKER))) await rm(folder, { recursive: true })
      await makeFolders(folder, 0o700)
      return this.#maker.create(model, { path, mayLack })
    })
    return made.files
  }

  #folderOf(manifestDigest: Sha256Digest): string {
    return join(this.#folder, digestHex(manifestDigest))
  }
}
