import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { type Lease, withLease } from '@svc/cas'
import { Gate } from '@svc/internal-concurrency'
import { listFolderIfPresent, makeFolders } from '@svc/internal-files'
import { digestFromHex, digestHex, formatRepoId, parseDigest, type Sha256Digest } from '@svc/ref'
import type { MadeView, View, ViewLayout, ViewOptions } from '@svc/view'
import { ViewError } from '@svc/view/view-error'
import { LentViews } from './lent-views.ts'
import { type AdvicePlain, type Advise, LibraryError } from './library-error.ts'
import type { ReplacedFiles } from './replace.ts'
import type { Resolver } from './resolve.ts'
import { StandingFolders } from './standing-folders.ts'
import type { StoreState } from './state.ts'
import type { OnUnreadable } from './strict.ts'
import type { Usage } from './usage.ts'
import { ViewHolds } from './view-holds.ts'
import { type ShownModel, ViewMaker } from './view-maker.ts'
import { deviceOf, placeOf, type ViewRecord, ViewRecords } from './view-records.ts'
import type { GivenView, ListedView, ViewRemoval, ViewRequest } from './view-request.ts'

export interface ViewsDeps extends Pick<StoreState, 'clock' | 'store' | 'documents' | 'artifacts' | 'log'> {
  readonly files: ReplacedFiles
  readonly resolver: Resolver
  readonly usage: Pick<Usage, 'note'>
  readonly advise?: Advise
}

/**
 * Name below `<root>/views`: the artifact; a digest of its companions if an earlier view has others there (see
 * {@link Views.make}); and the layout unless it is `files`.
 */
const MANAGED_NAME = /^([0-9a-f]{64})(?:-[0-9a-f]{64})?(-hf)?$/
const manifestOf = (name: string): Sha256Digest => digestFromHex(MANAGED_NAME.exec(name)![1]!)

/** An artifact that a view shows. */
export interface HeldArtifact {
  readonly manifest: Sha256Digest
  readonly place: string
  /** It was made on demand, by `svc path` for example. That alone is no reason to share an artifact. */
  readonly managed: boolean
}

type ViewPlace = { readonly place: string; readonly device: string }

interface Making {
  readonly entry: Omit<ListedView, 'present' | 'making' | 'heldUntil'>
  readonly stop: AbortController
  bytesDone: number
  readonly bytesTotal: number
}

/**
 * The views of a store: managed ones below `<root>/views`, and those at places chosen by users (spec add.17, add.18).
 * An artifact is needed as long as a view of it exists: `held` and `changes` report that to the collection. Invariants:
 * the record of a view at a named place is durable before anything is there; one change at a time at each place.
 */
export class Views {
  readonly #deps: ViewsDeps
  readonly #folder: string
  readonly #records: ViewRecords
  readonly #maker: ViewMaker
  readonly lent: LentViews
  /** The tools' folders that follow the store. */
  readonly standing: StandingFolders
  /** More at once would only cause seeking. Views made of links do not wait for them. */
  readonly #copies = new Gate(2)
  readonly #making = new Map<string, Making>()
  readonly #holds: ViewHolds
  #changes = 0

  private constructor(deps: ViewsDeps) {
    this.#deps = deps
    this.#holds = new ViewHolds(deps.clock)
    this.#folder = join(deps.store.root, 'views')
    this.#records = new ViewRecords(deps.store.root, deps.files)
    this.#maker = new ViewMaker(deps)
    this.lent = new LentViews(deps.store, this.#maker, join(deps.store.root, 'cache/views'))
    this.standing = new StandingFolders(deps.store, this.#maker)
  }

  /** Opens the views, and cleans up after killed processes that were making managed ones. */
  static async open(deps: ViewsDeps): Promise<Views> {
    const views = new Views(deps)
    // most stores have none, and need not load the code that makes them
    const isEmpty = (await listFolderIfPresent(views.#folder)).length === 0
    const count = isEmpty ? 0 : await (await import('@svc/view')).recoverViews(views.#folder)
    if (count > 0) deps.log.info({ count }, 'removed leftovers of unfinished views')
    return views
  }

  /** The records of views at named places, whether these are there or not. */
  records(onUnreadable: OnUnreadable): AsyncIterable<ViewRecord> {
    return this.#records.list(onUnreadable)
  }

  /** Increases with every change of the held views. */
  get changes(): number {
    return this.#changes
  }

  /**
   * The artifacts that views show, or are about to. A view that was deleted by other programs holds nothing.
   * Records that cannot be read are passed to `onUnreadable`.
   */
  async held(onUnreadable: OnUnreadable): Promise<HeldArtifact[]> {
    const held: HeldArtifact[] = []
    for (const { entry } of this.#making.values())
      held.push({ manifest: parseDigest(entry.manifestDigest), place: entry.path, managed: entry.managed })
    for (const name of await this.#managedNames())
      held.push({ manifest: manifestOf(name), place: join(this.#folder, name), managed: true })
    for await (const record of this.#records.list(onUnreadable)) {
      const found = await this.#look(record)
      if (found === 'gone') continue
      const { path: place, manifest, others } = record
      // after an interrupted replacement: the record names the new view, but the old one is still there
      const there = found === 'unknown' ? [] : [found.manifestDigest, ...found.others]
      for (const each of new Set([manifest, ...others, ...there])) held.push({ manifest: each, place, managed: false })
    }
    return held
  }

  /**
   * The documents of the companions in a view, also in one whose disk is away: their artifact may have others by now.
   */
  async companionsAt(path: string): Promise<readonly Sha256Digest[]> {
    const found = await this.#read(path)
    const { record } = await this.#records.find(path)
    return [...(typeof found === 'object' ? found.companions : []), ...(record?.companions ?? [])]
  }

  /**
   * Paths of managed views that are not held or being made, older than `graceMs`, of artifacts that have none of these
   * names: a path was asked for once, and the artifact was removed or replaced since.
   */
  async idle(named: ReadonlySet<Sha256Digest>, graceMs: number): Promise<string[]> {
    const idle: string[] = []
    for (const name of await this.#managedNames()) {
      const path = join(this.#folder, name)
      if (named.has(manifestOf(name)) || this.#making.has(path) || this.#holds.of(path).heldUntil !== undefined)
        continue
      const madeMs = (await stat(path).catch(() => undefined))?.mtimeMs
      if (madeMs !== undefined && this.#deps.clock.now() - madeMs >= graceMs) idle.push(path)
    }
    return idle
  }

  /** Removes a managed view that was {@link idle}, unless a command holds it by now. @returns whether it did */
  async removeIdle(path: string): Promise<boolean> {
    try {
      return (await this.remove(path)).removed
    } catch (error) {
      if (error instanceof LibraryError && ['E_INVALID', 'E_NOT_FOUND'].includes(error.code)) return false
      throw error
    }
  }

  /**
   * Makes a view, or returns the existing one. Takes as long as copying does. A managed view is of an artifact with its
   * companions, and stays that: one with other companions has a place of its own. While it is held, it is not made again.
   * @throws as `Resolver.resolve`; LibraryError `E_NOT_FOUND` with the absent blobs as candidates, `E_INVALID`;
   *   ViewError
   */
  make(body: ViewRequest): Promise<GivenView> {
    // until the view holds the artifact itself
    return withLease(this.#deps.store, (lease) => this.#make(lease, body))
  }

  async #make(
    lease: Lease,
    { ref, layout = 'files', mode = 'symlink', path, holdSeconds, replace }: ViewRequest
  ): Promise<GivenView> {
    const { resolver, usage } = this.#deps
    const resolved = await resolver.resolve(ref)
    const { manifestDigest } = resolved
    if (path === undefined && mode !== 'symlink')
      throw bad(`the managed view consists of links; name a "path" for the mode "${mode}"`)
    if (path !== undefined && holdSeconds !== undefined)
      throw bad('only the managed view can be held: leave out "path" or "holdSeconds"')
    const named = path === undefined ? undefined : await this.#named(path)
    const { model, own, warnings } = await this.#maker.prepare(resolved, manifestDigest, lease)
    usage.note(manifestDigest)
    const repo = model.manifest.annotations['svc.hf.repo'] === undefined ? formatRepoId(resolved) : undefined
    const makeAt = ({ place, device }: ViewPlace): Promise<GivenView> =>
      this.#maker.change(place, async () => {
        const entry = { path: place, managed: named === undefined, manifestDigest, layout, mode }
        const hold = (): void => {
          if (holdSeconds !== undefined) this.#holds.hold(place, holdSeconds)
        }
        const isHeld = this.#holds.of(place).heldUntil !== undefined
        if (isHeld) hold()
        const view = await this.#create(model, entry, { repo, device, isHeld, mayReplace: replace })
        hold()
        const { files, ...answer } = await answerOf(view)
        return {
          ref: resolved.ref,
          ...entry,
          ...this.#holds.of(place),
          ...answer,
          files: files.map((file) => (file.digest && own.has(file.name) ? { ...file, own: true } : file)),
          made: view.made,
          ...(warnings.length > 0 && { warnings: [...warnings] })
        }
      })
    if (named === undefined) return this.#makeManaged(model, layout, layout === 'hf' ? repo : undefined, makeAt)
    return mode === 'copy' ? this.#copies.run(undefined, () => makeAt(named)) : makeAt(named)
  }

  /**
   * All views, sorted by path. Records of views that others deleted are dropped; those that cannot be read are left
   * out.
   */
  async list(): Promise<readonly ListedView[]> {
    const views = new Map<string, ListedView>()
    for (const name of await this.#managedNames()) {
      const layout = name.endsWith('-hf') ? 'hf' : 'files'
      const path = join(this.#folder, name)
      const entry = { path, managed: true, manifestDigest: manifestOf(name), layout, mode: 'symlink' } as const
      views.set(path, { ...entry, present: true, ...this.#holds.of(path) })
    }
    for await (const record of this.#records.list(() => undefined)) {
      const { path } = record
      const found = await this.#look(record)
      const making = this.#making.has(path)
      if (found === 'gone' && !making) {
        await this.#correct(record)
        continue
      }
      // after a kill the record may name a view that was never made: the one on disk counts
      const there = typeof found === 'object' ? found : undefined
      const isOther =
        String([there?.manifestDigest, ...(there?.others ?? [])]) !== String([record.manifest, ...record.others])
      if (there !== undefined && !making && isOther) await this.#correct(record)
      const { manifestDigest, others, layout, mode } = there ?? { manifestDigest: record.manifest, ...record }
      const models = { manifestDigest, ...(others.length > 0 && { others: [...others] }) }
      views.set(path, { path, managed: false, ...models, layout, mode, present: there !== undefined })
    }
    for (const { entry, bytesDone, bytesTotal } of this.#making.values()) {
      const earlier = views.get(entry.path)
      const present = earlier?.present === true && earlier.manifestDigest === entry.manifestDigest
      views.set(entry.path, { ...entry, ...this.#holds.of(entry.path), present, making: { bytesDone, bytesTotal } })
    }
    return [...views.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  /**
   * Removes a view, or with `ref` that model of a hub cache. If it is being made, that is cancelled instead, and an
   * earlier view stays.
   * @throws LibraryError `E_NOT_FOUND`, `E_INVALID` for a view that is held; ViewError `E_NOT_A_VIEW`; with `ref` as
   *   `Resolver.resolve`
   */
  async remove(path: string, ref?: string): Promise<ViewRemoval> {
    if (!isAbsolute(path)) throw bad(`the path ${JSON.stringify(path)} is not absolute`)
    const place = await placeOf(path)
    const model = ref === undefined ? undefined : (await this.#deps.resolver.resolve(ref)).manifestDigest
    const making = this.#making.get(place)
    if (making !== undefined && (model === undefined || making.entry.manifestDigest === model)) {
      making.stop.abort()
      // when its turn comes, it has ended
      return this.#maker.change(place, async () => ({ path: place, removed: false }))
    }
    return this.#maker.change(place, async () => {
      const { heldUntil } = this.#holds.of(place)
      if (heldUntil !== undefined)
        throw bad(`a running command uses the view ${place}; remove it when the command has ended`)
      const { record, isDamaged } = await this.#records.find(place)
      const removed = await this.#maker.remove(place, model)
      const isRecorded = record !== undefined || isDamaged
      if (!removed && (model !== undefined || !isRecorded))
        throw new LibraryError('E_NOT_FOUND', `there is no view${ref === undefined ? '' : ` of ${ref}`} at ${place}`)
      const left = model === undefined ? undefined : await this.#maker.read(place)
      if (isRecorded) await (left === undefined ? this.#records.remove(place) : this.#record(left))
      this.#changes++
      return { path: place, removed }
    })
  }

  /** Records the contents of a view. */
  async #record({ path, manifestDigest: manifest, others, companions, layout, mode }: View): Promise<void> {
    const device = (await deviceOf(dirname(path))) ?? ''
    await this.#records.write({ path, manifest, others, companions, layout, mode, device })
  }

  close(): Promise<void> {
    return this.#maker.close()
  }

  async #create(
    model: ShownModel,
    entry: Making['entry'],
    {
      repo,
      device,
      isHeld,
      mayReplace
    }: { readonly device: string } & Pick<ViewOptions, 'repo' | 'isHeld' | 'mayReplace'>
  ): Promise<MadeView> {
    const { path, managed, layout, mode } = entry
    const bytesTotal = mode === 'copy' ? model.manifest.files.reduce((sum, { size }) => sum + size, 0) : 0
    if (!managed) await this.#requireDisk(path, device)
    const making: Making = { entry, stop: new AbortController(), bytesDone: 0, bytesTotal }
    this.#making.set(path, making)
    this.#changes++
    const before = managed ? undefined : (await this.#records.find(path)).record
    // a hub cache keeps the models that are in it
    const inCache = before?.layout === 'hf' && layout === 'hf' ? [before.manifest, ...before.others] : []
    const others = [...new Set(inCache)].filter((digest) => digest !== model.manifestDigest)
    const companions = [
      ...(model.companions ? [model.companions.digest] : []),
      ...(inCache.length > 0 ? (before?.companions ?? []) : [])
    ]
    if (!managed)
      await this.#records.write({ path, manifest: model.manifestDigest, others, companions, layout, mode, device })
    try {
      const onProgress = (bytes: number): void => void (making.bytesDone += bytes)
      const options = { path, layout, mode, repo, isHeld, mayReplace, keepsOthers: managed }
      return await this.#maker.create(model, options, { signal: making.stop.signal, onProgress })
    } catch (error) {
      if (!managed) await (before === undefined ? this.#records.remove(path) : this.#records.write(before))
      throw error
    } finally {
      this.#making.delete(path)
      this.#changes++
    }
  }

  /** Another view may lie beneath, on a disk that comes back: it stays recorded. @throws LibraryError `E_INVALID` */
  async #requireDisk(path: string, device: string): Promise<void> {
    const { record } = await this.#records.find(path)
    if (record === undefined || record.device === device || (await this.#read(path)) !== 'gone') return
    throw bad(
      `the view at ${JSON.stringify(path)} is on a disk that is not there now: mount it, or forget that view`,
      'remove-view'
    )
  }

  /** `gone` when none of our views is left there, `unknown` when that cannot be determined now. */
  async #look({ path, device }: ViewRecord): Promise<View | 'gone' | 'unknown'> {
    return (await deviceOf(dirname(path))) === device ? this.#read(path) : 'unknown'
  }

  async #read(path: string): Promise<View | 'gone' | 'unknown'> {
    try {
      return (await this.#maker.read(path)) ?? 'gone'
    } catch (error) {
      return error instanceof ViewError && error.code === 'E_NOT_A_VIEW' ? 'gone' : 'unknown'
    }
  }

  /** Records what is at the place of a record; until then both are held. */
  async #correct(record: ViewRecord): Promise<void> {
    await this.#maker.change(record.path, async () => {
      const found = await this.#look(record)
      if (found === 'unknown') return
      await (found === 'gone' ? this.#records.remove(record.path) : this.#record(found))
      this.#changes++
    })
  }

  async #managedNames(): Promise<string[]> {
    const entries = await listFolderIfPresent(this.#folder)
    return entries.map(({ name }) => name).filter((name) => MANAGED_NAME.test(name))
  }

  /** @param repo the repository that a hub cache shows, if its name is a local one */
  #makeManaged(
    { manifestDigest, companions }: ShownModel,
    layout: ViewLayout,
    repo: string | undefined,
    makeAt: (at: ViewPlace) => Promise<GivenView>
  ): Promise<GivenView> {
    const key = hash('sha256', JSON.stringify([companions?.digest, repo]))
    const [first, own] = [digestHex(manifestDigest), `${digestHex(manifestDigest)}-${key}`]
    const at = (name: string): ViewPlace => ({
      place: join(this.#folder, name + (layout === 'hf' ? '-hf' : '')),
      device: ''
    })
    return this.#maker.change(manifestDigest, async () => {
      await makeFolders(this.#folder, 0o700)
      if (existsSync(at(own).place)) return makeAt(at(own))
      return makeAt(at(first)).catch((error: unknown) => {
        if (!(error instanceof ViewError) || error.code !== 'E_TAKEN') throw error
        return makeAt(at(own))
      })
    })
  }

  async #named(path: string): Promise<ViewPlace> {
    if (!isAbsolute(path)) throw bad(`the field "path": ${JSON.stringify(path)} is not absolute`)
    const place = await placeOf(path)
    const root = await realpath(this.#deps.store.root)
    if (place === root || place.startsWith(root + sep))
      throw bad('the field "path" lies within the store; leave it out for the managed view')
    const device = await deviceOf(dirname(place))
    if (device === undefined)
      throw bad(`the field "path": the folder ${JSON.stringify(dirname(place))} is absent; make it first`)
    return { place, device }
  }
}

const bad = (message: string, advice?: AdvicePlain): LibraryError =>
  new LibraryError('E_INVALID', message, { advice: advice && { to: advice } })

/** What callers get of a view: its files, and the one for a runtime to load if that is unambiguous. */
async function answerOf(view: View): Promise<Pick<GivenView, 'folder' | 'loads' | 'files'>> {
  const { runtimePath } = await import('@svc/view')
  const { folder } = view
  const files = view.files.map(({ name, path, sizeBytes, kind, role, variant, part, digest }) => ({
    name,
    path,
    size: sizeBytes,
    kind,
    ...(role !== undefined && { role }),
    ...(variant !== undefined && { variant }),
    ...(part !== undefined && { part }),
    ...(digest !== undefined && { digest })
  }))
  try {
    return { folder, loads: runtimePath(view).path, files }
  } catch (error) {
    if (!(error instanceof ViewError)) throw error
    return { folder, files }
  }
}
