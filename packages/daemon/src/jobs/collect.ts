import type { GcBody, Job } from '@svc/client/protocol'
import { formatRepoId } from '@svc/ref'
import { endAwayOfAll } from '../library/away.ts'
import { isBeforeTag } from '../library/before-tags.ts'
import type { Library } from '../library/library.ts'
import { readable } from '../library/strict.ts'
import { Unneeded } from '../library/unneeded.ts'
import { unreadableRecords } from '../library/unreadable.ts'
import type { Views } from '../library/views.ts'
import type { JobContext, JobOutcome } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

/** Blobs written within the last day are kept even if nothing needs them (spec add.13). */
const DEFAULT_GRACE_SECONDS = 24 * 3600
/** Progress is reported after every this many blobs. */
const REPORT_EVERY = 256

export interface CollectDeps
  extends Pick<
    Library,
    'store' | 'needed' | 'repos' | 'artifacts' | 'holdings' | 'leafLayers' | 'clock' | 'documents' | 'superseded'
  > {
  readonly views: Pick<Views, 'records' | 'idle' | 'removeIdle'>
  readonly jobs: JobRegistry
}

/**
 * POST /v1/gc: removes, or with `dryRun` counts, blobs that nothing needs; with `views` also managed views of
 * artifacts without a name. Partial blobs are left alone.
 */
export function collect(body: GcBody, deps: CollectDeps): Job {
  const { dryRun = false, graceSeconds = DEFAULT_GRACE_SECONDS, views = false, beforeOlderThanSeconds } = body
  return deps.jobs.start({ kind: 'gc', ref: 'all', dryRun }, (job) =>
    new Collection(deps, job, {
      dryRun,
      graceMs: graceSeconds * 1000,
      views,
      ...(beforeOlderThanSeconds !== undefined && { tagsOlderThanMs: beforeOlderThanSeconds * 1000 })
    }).run()
  )
}

interface CollectOptions {
  readonly dryRun: boolean
  readonly graceMs: number
  readonly views: boolean
  readonly tagsOlderThanMs?: number
}

/** One walk over the blobs, which removes those that are {@link Unneeded} and older than the grace period. */
class Collection {
  readonly #deps: CollectDeps
  readonly #job: JobContext
  readonly #options: CollectOptions
  /** Places of views, and tags as `ns/name:tag`, that are treated as if they were removed. */
  readonly #ignored = new Set<string>()
  #blobs = 0
  #bytes = 0

  constructor(deps: CollectDeps, job: JobContext, options: CollectOptions) {
    this.#deps = deps
    this.#job = job
    this.#options = options
  }

  /** @throws as `Needed.blobs`; then nothing is removed */
  async run(): Promise<JobOutcome> {
    const { store } = this.#deps
    const tagCount = await this.#letGoOfTags()
    const viewCount = this.#options.views ? await this.#letGoOfViews() : undefined
    const { dryRun, graceMs } = this.#options
    if (!dryRun) await endAwayOfAll(this.#deps)
    const unneeded = new Unneeded(this.#deps, this.#ignored)
    await unneeded.read()
    let seen = 0
    for await (const { digest } of store.list()) {
      this.#job.signal.throwIfAborted()
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
      result: {
        blobs: this.#blobs,
        bytes: this.#bytes,
        ...(unreadable > 0 && { unreadable }),
        ...(tagCount !== undefined && { tags: tagCount }),
        ...(viewCount !== undefined && { views: viewCount })
      }
    }
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
      this.#job.signal.throwIfAborted()
      if ((await needed.has(manifestDigest)) || (await store.stat(manifestDigest)) !== undefined) continue
      await artifacts.forget(manifestDigest, () => !store.isLeased(manifestDigest))
    }
  }

  /** Forgets the sources of bytes that are gone, except while an import runs: it may be about to write its first byte. */
  async #forgetArrivals(): Promise<void> {
    const { store, jobs, holdings } = this.#deps
    const { arrivals } = holdings
    for (const digest of await arrivals.noted()) {
      this.#job.signal.throwIfAborted()
      // this collection is one of them
      if (jobs.openCount > 1) return
      if (store.partialStatus(digest)?.writtenBytes || (await store.stat(digest)) !== undefined) continue
      // a record of a newer version stays
      await readable(
        () => arrivals.settle([digest]),
        () => undefined
      )
    }
  }

  #report(seen: number): void {
    this.#job.update({ filesDone: seen, bytesDone: this.#bytes })
  }
}
