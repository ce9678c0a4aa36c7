import { hash } from 'node:crypto'
import { sep } from 'node:path'
import type { Timer } from '@svc/internal-clock'
import { KeyedLock } from '@svc/internal-concurrency'
import { LibraryError } from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'
import type { StandingLayout, StandingModel } from '@svc/view'
import { KnownPlaces } from './known-places.ts'
import { laidModel } from './laid-models.ts'
import { type NamedModel, namedModels } from './shown-models.ts'
import type { StandingDeps, StandingFolder } from './standing-deps.ts'

/** How often the state is looked at, in milliseconds: a comparison of numbers in memory. */
const LOOK_MS = 250
/** After this, a folder that failed is tried again, in milliseconds. */
const RETRY_MS = 30_000

/** A folder that follows, and what it shows now. */
interface StandingView {
  readonly layout: StandingLayout
  readonly path: string
  readonly match?: string[]
  readonly entries: number
  /** Names that something else has there. */
  readonly taken?: string[]
  /** Why it does not follow. */
  readonly problem?: string
}

interface Followed {
  readonly config: StandingFolder
  entries: number
  taken: readonly string[]
  problem: string | undefined
  /** What the folder was made from. */
  key: string
  shown: ReadonlySet<Sha256Digest>
  /** What its layout knows of the models that it shows, so that a change costs no more than what changed. */
  laid: ReadonlyMap<string, StandingModel | undefined>
}

/**
 * The folders of tools that follow the store (spec add.63): after each change of names or artifacts, every folder shows
 * the complete models that its configuration names, and no others. They keep nothing from being removed.
 */
export class StandingViews {
  readonly #deps: StandingDeps
  readonly #places: KnownPlaces
  readonly #views = new Map<string, Followed>()
  readonly #turns = new KeyedLock()
  #seen = -1
  #retryAt = 0
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(deps: StandingDeps) {
    this.#deps = deps
    this.#places = new KnownPlaces(deps.store.root)
    for (const config of deps.folders) this.#follow(config)
  }

  /** From now on the folders follow. */
  start(): void {
    this.#look()
  }

  /** Looks at every folder, and repairs it. */
  async list(): Promise<readonly StandingView[]> {
    await this.#syncAll(true)
    return [...this.#views.values()].map(shownOf).sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  /** @throws LibraryError `E_INVALID`; ViewError if it cannot be filled, and then nothing is saved */
  async add(config: StandingFolder): Promise<StandingView> {
    const { layout, path } = config
    const { store, save } = this.#deps
    if (path === store.root || path.startsWith(store.root + sep))
      throw new LibraryError('E_INVALID', `${path} lies within the store`)
    const before = this.#views.get(config.path)
    if (before !== undefined && before.config.layout !== layout)
      throw new LibraryError('E_INVALID', `${path} follows as ${before.config.layout}; remove that first`)
    await this.#places.forget(config.path)
    const followed = this.#follow(config)
    try {
      await this.#sync(followed, await namedModels(this.#deps), true)
      if (followed.problem !== undefined) throw new LibraryError('E_INVALID', followed.problem)
      await save?.(path, config)
    } catch (error) {
      this.#views.delete(config.path)
      if (before !== undefined) this.#views.set(config.path, before)
      throw error
    }
    if (this.#timer === undefined) this.#look()
    return shownOf(followed)
  }

  /** @throws LibraryError `E_NOT_FOUND`, `E_INVALID`; ViewError */
  async remove(path: string): Promise<{ readonly path: string; readonly removed: boolean }> {
    const followed = this.#views.get(path)
    if (followed !== undefined) await this.#deps.save?.(path, undefined)
    this.#views.delete(path)
    const { removed, made, entries } = await this.#turns.run(path, undefined, () =>
      this.#deps.views.standing.remove(path)
    )
    await this.#places.forget(path)
    if (followed === undefined && removed + made + entries === 0)
      throw new LibraryError('E_NOT_FOUND', `no folder at ${path} follows this store`)
    return { path, removed: removed > 0 }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#running
  }

  #follow(config: StandingFolder): Followed {
    const followed = {
      config,
      entries: 0,
      taken: [],
      problem: undefined,
      key: '',
      shown: new Set<Sha256Digest>(),
      laid: new Map()
    }
    this.#views.set(config.path, followed)
    return followed
  }

  #look(): void {
    if (this.#isClosed || this.#views.size === 0) {
      this.#timer = undefined
      return
    }
    const { clock } = this.#deps
    const isDue = this.#revision !== this.#seen || (this.#retryAt > 0 && clock.now() >= this.#retryAt)
    this.#running = isDue ? this.#syncAll(false) : Promise.resolve()
    void this.#running.finally(() => {
      if (!this.#isClosed) this.#timer = clock.after(LOOK_MS, () => this.#look())
    })
  }

  get #revision(): number {
    const { repos, artifacts } = this.#deps
    return repos.changes + artifacts.changes
  }

  async #syncAll(isThorough: boolean): Promise<void> {
    this.#seen = this.#revision
    this.#retryAt = 0
    try {
      const models = await namedModels(this.#deps)
      for (const followed of this.#views.values()) {
        if (this.#isClosed) return
        await this.#sync(followed, models, isThorough).catch((error: unknown) => this.#failed(followed, error))
      }
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the standing views do not follow')
      this.#retryAt = this.#deps.clock.now() + RETRY_MS
    }
  }

  #failed(followed: Followed, error: unknown): void {
    const { path } = followed.config
    const message = error instanceof Error ? error.message : String(error)
    if (followed.problem !== message) this.#deps.log.warn({ err: error, path }, 'a standing view does not follow')
    followed.problem = message
    this.#retryAt = this.#deps.clock.now() + RETRY_MS
  }

  /** @param isThorough looks at the folder although nothing has changed here */
  #sync(followed: Followed, models: readonly NamedModel[], isThorough: boolean): Promise<void> {
    return this.#turns.run(followed.config.path, undefined, async () => {
      const { layout, path, matches } = followed.config
      const { views } = this.#deps
      const shown = models.filter(({ ns, name, quant }) => matches(`${ns}/${name}:${quant}`))
      const key = hash('sha256', JSON.stringify([layout, FORM, shown]))
      if (key === followed.key && !isThorough && followed.problem === undefined) return
      if (await this.#places.isAway(path)) throw new Error(`the disk of ${path} is not there now: mount it`)
      if (await this.#isInOrder(followed, key, isThorough)) {
        await this.#places.note(path)
        Object.assign(followed, { key, problem: undefined, shown: new Set(shown.map(({ manifest }) => manifest)) })
        return
      }
      // what was unpacked may be gone: a thorough look asks again
      const laid = await this.#laid(layout, shown, isThorough ? new Map() : followed.laid)
      const all = [...laid.values()].filter((model) => model !== undefined)
      const { entries, taken, made, removed } = await views.standing.sync({ layout, path, models: all, key })
      await this.#places.note(path)
      const now = new Set(shown.map(({ manifest }) => manifest))
      if (layout === 'hf')
        for (const manifest of followed.shown) if (!now.has(manifest)) await views.standing.end(manifest)
      Object.assign(followed, { key, entries, taken, problem: undefined, shown: now, laid })
      if (made + removed > 0) this.#deps.log.info({ path, layout, made, removed }, 'a standing view follows')
    })
  }

  /** Only looked at after a start, or when somebody asks; after a start the entries are not counted until then. */
  async #isInOrder({ config, key: before, entries }: Followed, key: string, isThorough: boolean): Promise<boolean> {
    if (isThorough ? entries === 0 : before !== '') return false
    return this.#deps.views.standing.isInOrder(config.path, key)
  }

  async #laid(
    layout: StandingLayout,
    shown: readonly NamedModel[],
    known: Followed['laid']
  ): Promise<Followed['laid']> {
    const laid = new Map<string, StandingModel | undefined>()
    for (const named of shown) {
      const of = JSON.stringify(named)
      try {
        laid.set(of, known.has(of) ? known.get(of) : await laidModel(layout, named, this.#deps))
      } catch (error) {
        // a damaged model keeps no other from its place; it is tried again with the next change
        const { ns, name, quant } = named
        this.#deps.log.warn({ err: error, model: `${ns}/${name}:${quant}` }, 'a standing view cannot show a model')
      }
    }
    return laid
  }
}

/** Of the folders: a later version with another form makes them anew. */
const FORM = 1

function shownOf({ config, entries, taken, problem }: Followed): StandingView {
  const { layout, path, match } = config
  return {
    layout,
    path,
    ...(match.length > 0 && { match: [...match] }),
    entries,
    ...(taken.length > 0 && { taken: [...taken] }),
    ...(problem !== undefined && { problem })
  }
}
