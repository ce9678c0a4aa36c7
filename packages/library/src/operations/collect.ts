import {
  dropQuarantined,
  dropUnfinished,
  endAwayOfAll,
  isBeforeTag,
  type Leftovers,
  type Library,
  quarantined,
  readable,
  Unneeded,
  unfinished,
  unreadableRecords,
  type Views
} from '@svc/internal-state'
import { formatRepoId } from '@svc/ref'
import type { RunningWork, Work } from './work.ts'

/** Blobs written within the last day are kept even if nothing needs them (spec add.13). */
const DEFAULT_GRACE_MS = 24 * 3600_000
/** Progress is reported after every this many blobs. */
const REPORT_EVERY = 256

export interface CollectDeps
  extends Pick<
    Library,
    | 'store'
    | 'needed'
    | 'repos'
    | 'artifacts'
    | 'holdings'
    | 'leafLayers'
    | 'readerLeases'
    | 'clock'
    | 'documents'
    | 'superseded'
  > {
  readonly views: Pick<Views, 'records' | 'idle' | 'removeIdle'>
  readonly running: Pick<RunningWork, 'openCount'>
}

/** What a collection removes. */
export interface CollectOptions {
  /** Only count. */
  readonly dryRun?: boolean | undefined
  /** Keeps anything younger; default a day. */
  readonly graceMs?: number | undefined
  /** First removes managed views that nobody holds, of artifacts without a name. */
  readonly views?: boolean | undefined
  /** Also removes what idle downloads left unfinished, and corrupt blobs that were moved aside. */
  readonly leftovers?: boolean | undefined
  /** First removes tags of upgrades that are older. */
  readonly tagsOlderThanMs?: number | undefined
}

/** What a collection removed; with `dryRun`, would remove. */
export interface Collected {
  readonly blobs: number
  readonly bytes: number
  /** Records that cannot be read: everything that they could name was kept. Absent without any. */
  readonly unreadable?: number
  readonly tags?: number
  readonly views?: number
  /** Files of unfinished downloads and of corrupt blobs; their bytes are not in `bytes`. */
  readonly leftovers?: number
  readonly leftoverBytes?: number
}

/**
 * Removes, or with `dryRun` counts, blobs that nothing needs. Partial blobs are left alone unless `leftovers` says otherwise.
 * @throws as `Needed.blobs`; then nothing is removed
 */
export function collect(
  options: CollectOptions,
  deps: CollectDeps,
  work: Pick<Work, 'signal' | 'report'>
): Promise<Collected> {
  const { dryRun = false, graceMs = DEFAULT_GRACE_MS, views = false, leftovers = false, tagsOlderThanMs } = options
  return new Collection(deps, work, { dryRun, graceMs, views, leftovers, tagsOlderThanMs }).run()
}

interface AllOptions extends CollectOptions {
  readonly dryRun: boolean
  readonly graceMs: number
}

/** One walk over the blobs, which removes those that are {@link Unneeded} and older than the grace period. */
class Collection {
  readonly #deps: CollectDeps
  readonly #work: Pick<Work, 'signal' | 'report'>
  readonly #options: AllOptions
  /** Places of views, and tags as `ns/name:tag`, that are treated as if they were removed. */
  readonly #ignored = new Set<string>()
  #blobs = 0
  #bytes = 0

  constructor(deps: CollectDeps, work: Pick<Work, 'signal' | 'report'>, options: AllOptions) {
    this.#deps = deps
    this.#work = work
    this.#options = options
  }

  async run(): Promise<Collected> {
    const { store } = this.#deps
    const tagCount = await this.#letGoOfTags()
    const viewCount = this.#options.views ? await this.#letGoOfViews() : undefined
    const leftovers = this.#options.leftovers === true ? await this.#dropLeftovers() : undefined
    const { dryRun, graceMs } = this.#options
    if (!dryRun) await endAwayOfAll(this.#deps)
    const unneeded = new Unneeded(this.#deps, this.#ignored)
    await unneeded.read()
    let seen = 0
    for await (const { digest } of store.list()) {
      this.#work.signal.throwIfAborted()
      if (++seen % REPORT_EVERY === 0) this.#report(seen)
      await unneeded.take(digest, ({ sizeBytes, ageMs }) => {
        if (ageMs < graceMs) return false
        this.#blobs++
        this.#bytes += sizeBytes
        return !dryRun
      })
    }
    if (!dryRun) {
      await this.#forgetArtifacts()
      await this.#forgetArrivals()
    }
    this.#report(seen)
    const unreadable = (await unreadableRecords(this.#deps)).length
    return {
      blobs: this.#blobs,
      bytes: this.#bytes,
      ...(unreadable > 0 && { unreadable }),
      ...(tagCount !== undefined && { tags: tagCount }),
      ...(viewCount !== undefined && { views: viewCount }),
      ...(leftovers !== undefined && { leftovers: leftovers.files, leftoverBytes: leftovers.bytes })
    }
  }

  /** @returns what is removed, or with `dryRun` would be */
  async #dropLeftovers(): Promise<Leftovers> {
    const { store } = this.#deps
    const [partial, corrupt] = [unfinished(store, { isIdle: true }), await quarantined(store)]
    if (!this.#options.dryRun) {
      await dropUnfinished(store)
      await dropQuarantined(store)
    }
    return { files: partial.files + corrupt.files, bytes: partial.bytes + corrupt.bytes }
  }

  /** @returns the number of tags of upgrades removed, or with `dryRun` to be removed */
  async #letGoOfTags(): Promise<number | undefined> {
    const { repos, documents, superseded, clock } = this.#deps
    const { tagsOlderThanMs, dryRun } = this.#options
    if (tagsOlderThanMs === undefined) return undefined
    let count = 0
    for await (const { ns, name, state } of repos.list(() => undefined)) {
      const old = [...state.tags.keys()].filter((tag) => isBeforeTag(tag, tagsOlderThanMs, clock))
      count += old.length
      for (const tag of old) this.#ignored.add(`${formatRepoId({ ns, name })}:${tag}`)
      if (dryRun || old.length === 0) continue
      await repos.change({ ns, name }, async (current) => {
        const tags = new Map(current?.tags)
        for (const tag of old) tags.delete(tag)
        return current && { index: current.index, tags }
      })
      for (const tag of old) {
        const index = await documents.index(state.tags.get(tag)!).catch(() => undefined)
        superseded.tell((index?.members ?? []).map(({ manifest }) => manifest))
      }
    }
    return count
  }

  /** @returns the number of views removed, or with `dryRun` to be removed */
  async #letGoOfViews(): Promise<number> {
    const { needed, views } = this.#deps
    // a record that cannot be read may name their artifacts
    const isKnown = (await unreadableRecords(this.#deps)).length === 0
    const idle = isKnown ? await views.idle(await needed.named(), this.#options.graceMs) : []
    if (this.#options.dryRun) {
      for (const path of idle) this.#ignored.add(path)
      return idle.length
    }
    let removed = 0
    for (const path of idle) if (await views.removeIdle(path)) removed++
    return removed
  }

  /** Forgets artifacts whose manifest is gone, and which no name and no import needs. */
  async #forgetArtifacts(): Promise<void> {
    const { artifacts, store, needed } = this.#deps
    // an unreadable record may name them, and say that they are private
    if ((await unreadableRecords(this.#deps)).length > 0) return
    for await (const { manifestDigest } of artifacts.list(() => undefined)) {
      this.#work.signal.throwIfAborted()
      if ((await needed.has(manifestDigest)) || (await store.stat(manifestDigest)) !== undefined) continue
      await artifacts.forget(manifestDigest, () => !store.isLeased(manifestDigest))
    }
  }

  /** Forgets the sources of bytes that are gone, except while an import runs: it may be about to write its first byte. */
  async #forgetArrivals(): Promise<void> {
    const { store, running, holdings } = this.#deps
    const { arrivals } = holdings
    for (const digest of await arrivals.noted()) {
      this.#work.signal.throwIfAborted()
      // this collection is one of them
      if (running.openCount > 1) return
      if (store.partialStatus(digest)?.writtenBytes || (await store.stat(digest)) !== undefined) continue
      // a record of a newer version stays
      await readable(
        () => arrivals.settle([digest]),
        () => undefined
      )
    }
  }

  #report(seen: number): void {
    this.#work.report({ filesDone: seen, bytesDone: this.#bytes })
  }
}
