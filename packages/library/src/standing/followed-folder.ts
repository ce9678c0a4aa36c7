import { hash } from 'node:crypto'
import { LibraryError } from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'
import type { StandingModel } from '@svc/view'
import type { KnownPlaces } from './known-places.ts'
import { laidModel } from './laid-models.ts'
import { LlamaRouter } from './llama-router.ts'
import type { NamedModel } from './shown-models.ts'
import type { StandingDeps, StandingFolder, StandingView } from './standing-deps.ts'

/** After this, a folder that failed is tried again, in milliseconds. */
const RETRY_MS = 30_000
/** Of the folders: a later version with another form makes them anew. */
const FORM = 2

interface FolderRun {
  /** Resolves with its first copied bytes. */
  readonly begun: Promise<void>
  /** Rejects if it fails. */
  readonly ended: Promise<void>
  bytesDone: number
}

/** The models as they are at a revision of the state. */
export interface ModelsNow {
  readonly models: readonly NamedModel[]
  readonly revision: number
}

/** A folder of a tool, and what it shows now. One comparison at a time. */
export class FollowedFolder {
  readonly config: StandingFolder
  readonly #deps: StandingDeps
  readonly #places: KnownPlaces
  readonly #router: LlamaRouter | undefined
  readonly #stop = new AbortController()
  #running: FolderRun | undefined
  #seen = -1
  #retryAt = 0
  #entries = 0
  #copiedBytes = 0
  #taken: readonly string[] = []
  #problem: string | undefined
  /** What the folder was made from. */
  #key = ''
  #shown: ReadonlySet<Sha256Digest> = new Set()
  readonly #isElsewhere: (manifest: Sha256Digest) => boolean
  /** What its layout knows of the models that it shows, so that a change costs no more than what changed. */
  #laid: ReadonlyMap<string, StandingModel | undefined> = new Map()

  /** @param isElsewhere whether another folder has links to what was unpacked of an artifact */
  constructor(
    config: StandingFolder,
    deps: StandingDeps,
    places: KnownPlaces,
    isElsewhere: (manifest: Sha256Digest) => boolean
  ) {
    this.config = config
    this.#deps = deps
    this.#places = places
    this.#isElsewhere = isElsewhere
    this.#router = config.reload === undefined ? undefined : new LlamaRouter(config.reload, deps.clock)
  }

  /** Whether it has links to what was unpacked of an artifact. */
  unpacks(manifest: Sha256Digest): boolean {
    return this.config.layout === 'hf' && this.#shown.has(manifest)
  }

  /** Whether it was not compared with this revision, or failed some time ago. */
  isDue(revision: number): boolean {
    const isAgain = this.#retryAt > 0 && this.#deps.clock.now() >= this.#retryAt
    return this.#running === undefined && (this.#seen !== revision || isAgain)
  }

  /**
   * Compares it, and does what is to do. Copies go on beyond the answer; a failure is reported, and tried again.
   * @param isThorough looks at the folder although nothing has changed here
   */
  async follow(now: ModelsNow, isThorough: boolean): Promise<void> {
    while (this.#running !== undefined) {
      const { begun, ended } = this.#running
      await Promise.race([begun, ended.catch(() => undefined)])
      if (this.#running !== undefined) return
    }
    const { begun, ended } = this.#start(now, { isThorough, requireRoom: false })
    await Promise.race([begun, ended.catch((error: unknown) => this.#failed(error))])
  }

  /** Compares it for the first time, and waits for the end. @throws ViewError; LibraryError `E_INVALID` for a disk that is away */
  async fill(now: ModelsNow): Promise<void> {
    await this.#start(now, { isThorough: true, requireRoom: true }).ended
  }

  /** From now on it does not follow: ends what it does, also in the midst of a copy. */
  async end(): Promise<void> {
    this.#router?.close()
    await this.stop()
  }

  /** As {@link end}, before the folder goes: {@link gone} follows. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running?.ended.catch(() => undefined)
  }

  /** The folder is empty now, which its router learns. */
  async gone(): Promise<void> {
    await this.#router?.changed()
    this.#router?.close()
  }

  view(): StandingView {
    const { layout, path, match, copy, reload } = this.config
    // what is being done may mend it
    const problem = this.#running === undefined ? (this.#problem ?? this.#router?.problem) : undefined
    return {
      layout,
      path,
      ...(match.length > 0 && { match: [...match] }),
      ...(copy === true && { copy }),
      ...(reload !== undefined && { reload }),
      entries: this.#entries,
      ...(this.#copiedBytes > 0 && { copiedBytes: this.#copiedBytes }),
      ...(this.#running !== undefined && { bytesDone: this.#running.bytesDone }),
      ...(this.#taken.length > 0 && { taken: [...this.#taken] }),
      ...(problem !== undefined && { problem })
    }
  }

  #start(
    { models, revision }: ModelsNow,
    how: { readonly isThorough: boolean; readonly requireRoom: boolean }
  ): FolderRun {
    this.#seen = revision
    this.#retryAt = 0
    const { promise: begun, resolve } = Promise.withResolvers<void>()
    const onProgress = (bytes: number): void => {
      run.bytesDone += bytes
      resolve()
    }
    const ended = this.#compare(models, { ...how, onProgress }).finally(() => {
      this.#running = undefined
    })
    const run: FolderRun = { begun, ended, bytesDone: 0 }
    this.#running = run
    return run
  }

  async #compare(
    models: readonly NamedModel[],
    {
      isThorough,
      requireRoom,
      onProgress
    }: { readonly isThorough: boolean; readonly requireRoom: boolean; readonly onProgress: (bytes: number) => void }
  ): Promise<void> {
    const { layout, path, matches, copy } = this.config
    const { views, log, clock } = this.#deps
    const shown = models.filter(({ ns, name, quant }) => matches(`${ns}/${name}:${quant}`))
    const key = hash('sha256', JSON.stringify([layout, FORM, copy === true, shown]))
    if (key === this.#key && !isThorough && this.#problem === undefined) return
    if (await this.#places.isAway(path))
      throw new LibraryError('E_INVALID', `the disk of ${path} is not there now: mount it`)
    const now = new Set(shown.map(({ manifest }) => manifest))
    if (await this.#isInOrder(key, isThorough)) {
      await this.#places.note(path)
      this.#key = key
      this.#problem = undefined
      this.#shown = now
      return
    }
    // what was unpacked may be gone: a thorough look asks again
    const laid = await this.#laidOut(shown, isThorough ? new Map() : this.#laid)
    const all = [...laid.values()].filter((model) => model !== undefined)
    const request = { layout, path, models: all, key, copy, requireRoom }
    const result = await views.standing.sync(request, { signal: this.#stop.signal, onProgress })
    const { entries, taken, made, removed, copiedBytes, lacking, failed } = result
    await this.#places.note(path)
    if (layout === 'hf')
      for (const manifest of this.#shown)
        if (!now.has(manifest) && !this.#isElsewhere(manifest)) await views.standing.end(manifest)
    this.#key = key
    this.#entries = entries
    this.#copiedBytes = copiedBytes
    this.#taken = taken
    this.#shown = now
    this.#laid = laid
    const problems = [lacking, failed].filter((each) => each !== undefined)
    this.#problem = problems.length === 0 ? undefined : problems.join('; ')
    if (this.#problem !== undefined) this.#retryAt = clock.now() + RETRY_MS
    if (made + removed === 0) return
    log.info({ path, layout, made, removed }, 'a standing view follows')
    void this.#router?.changed()
  }

  /** Only looked at after a start, or when somebody asks; after a start the entries are not counted until then. */
  async #isInOrder(key: string, isThorough: boolean): Promise<boolean> {
    if (isThorough ? this.#entries === 0 || this.#problem !== undefined : this.#key !== '') return false
    return this.#deps.views.standing.isInOrder(this.config.path, key)
  }

  async #laidOut(
    shown: readonly NamedModel[],
    known: ReadonlyMap<string, StandingModel | undefined>
  ): Promise<ReadonlyMap<string, StandingModel | undefined>> {
    const laid = new Map<string, StandingModel | undefined>()
    for (const named of shown) {
      const of = JSON.stringify(named)
      try {
        laid.set(of, known.has(of) ? known.get(of) : await laidModel(this.config.layout, named, this.#deps))
      } catch (error) {
        // a damaged model keeps no other from its place; it is tried again with the next change
        const { ns, name, quant } = named
        this.#deps.log.warn({ err: error, model: `${ns}/${name}:${quant}` }, 'a standing view cannot show a model')
      }
    }
    return laid
  }

  #failed(error: unknown): void {
    if (this.#stop.signal.aborted) return
    const { path } = this.config
    const message = error instanceof Error ? error.message : String(error)
    if (this.#problem !== message) this.#deps.log.warn({ err: error, path }, 'a standing view does not follow')
    this.#problem = message
    this.#retryAt = this.#deps.clock.now() + RETRY_MS
  }
}
