import { sep } from 'node:path'
import type { Timer } from '@svc/internal-clock'
import { KeyedLock } from '@svc/internal-concurrency'
import { LibraryError } from '@svc/internal-state'
import { FollowedFolder, type ModelsNow } from './followed-folder.ts'
import { KnownPlaces } from './known-places.ts'
import { namedModels } from './shown-models.ts'
import type { StandingDeps, StandingFolder, StandingView } from './standing-deps.ts'

/** How often the state is looked at, in milliseconds: a comparison of numbers in memory. */
const LOOK_MS = 250
/** After this, a state that could not be read is read again, in milliseconds. */
const RETRY_MS = 30_000

/**
 * The folders of tools that follow the store (spec add.63): after each change of names or artifacts, every folder shows
 * the complete models that its configuration names, and no others. They keep nothing from being removed.
 */
export class StandingViews {
  readonly #deps: StandingDeps
  readonly #places: KnownPlaces
  readonly #views = new Map<string, FollowedFolder>()
  /** By folder: an addition waits for one that is being filled. */
  readonly #adding = new KeyedLock()
  #notBefore = 0
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(deps: StandingDeps) {
    this.#deps = deps
    this.#places = new KnownPlaces(deps.store.root)
    for (const config of deps.folders) this.#views.set(config.path, this.#folder(config))
  }

  /** From now on the folders follow. */
  start(): void {
    this.#look()
  }

  /** Looks at every folder, and repairs it; waits for no copies. */
  async list(): Promise<readonly StandingView[]> {
    await this.#followAll([...this.#views.values()], true)
    return [...this.#views.values()].map((folder) => folder.view()).sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  /** Takes as long as copying does. @throws LibraryError `E_INVALID`; ViewError if it cannot be filled, and then nothing is saved */
  async add(config: StandingFolder): Promise<StandingView> {
    const { path } = config
    const { store } = this.#deps
    if (path === store.root || path.startsWith(store.root + sep))
      throw new LibraryError('E_INVALID', `${path} lies within the store`)
    return await this.#adding.run(path, undefined, () => this.#add(config))
  }

  #folder(config: StandingFolder): FollowedFolder {
    const folder: FollowedFolder = new FollowedFolder(config, this.#deps, this.#places, (manifest) =>
      [...this.#views.values()].some((each) => each !== folder && each.unpacks(manifest))
    )
    return folder
  }

  async #add(config: StandingFolder): Promise<StandingView> {
    const { layout, path } = config
    const { save } = this.#deps
    if (this.#isClosed) throw new LibraryError('E_CLOSED', 'the store is closed')
    const before = this.#views.get(path)
    if (before !== undefined && before.config.layout !== layout)
      throw new LibraryError('E_INVALID', `${path} follows as ${before.config.layout}; remove that first`)
    await before?.end()
    await this.#places.forget(path)
    const folder = this.#folder(config)
    this.#views.set(path, folder)
    try {
      await folder.fill(await this.#now())
      await save?.(path, config)
    } catch (error) {
      await folder.end()
      // unless it was removed meanwhile
      if (this.#views.get(path) === folder && this.#views.delete(path) && before !== undefined)
        this.#views.set(path, this.#folder(before.config))
      throw error
    }
    if (this.#timer === undefined) this.#look()
    return folder.view()
  }

  /** @throws LibraryError `E_NOT_FOUND`, `E_INVALID`; ViewError */
  async remove(path: string): Promise<{ readonly path: string; readonly removed: boolean }> {
    const folder = this.#views.get(path)
    if (folder !== undefined) await this.#deps.save?.(path, undefined)
    this.#views.delete(path)
    await folder?.stop()
    const { removed, made, entries } = await this.#deps.views.standing
      .remove(path)
      .finally(async () => await folder?.gone())
    await this.#places.forget(path)
    if (folder === undefined && removed + made + entries === 0)
      throw new LibraryError('E_NOT_FOUND', `no folder at ${path} follows this store`)
    return { path, removed: removed > 0 }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await Promise.all([this.#running, ...[...this.#views.values()].map((folder) => folder.end())])
  }

  #look(): void {
    if (this.#isClosed || this.#views.size === 0) {
      this.#timer = undefined
      return
    }
    const { clock } = this.#deps
    const isTime = clock.now() >= this.#notBefore
    const due = isTime ? [...this.#views.values()].filter((folder) => folder.isDue(this.#revision)) : []
    this.#running = due.length > 0 ? this.#followAll(due, false) : Promise.resolve()
    void this.#running.finally(() => {
      if (!this.#isClosed) this.#timer = clock.after(LOOK_MS, () => this.#look())
    })
  }

  get #revision(): number {
    const { repos, artifacts } = this.#deps
    return repos.changes + artifacts.changes
  }

  async #now(): Promise<ModelsNow> {
    const revision = this.#revision
    return { models: await namedModels(this.#deps), revision }
  }

  async #followAll(folders: readonly FollowedFolder[], isThorough: boolean): Promise<void> {
    try {
      const now = await this.#now()
      for (const folder of folders) if (!this.#isClosed) await folder.follow(now, isThorough)
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the standing views do not follow')
      this.#notBefore = this.#deps.clock.now() + RETRY_MS
    }
  }
}
