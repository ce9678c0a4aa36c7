import { join, sep } from 'node:path'
import { KeyedLock, loopBudget } from '@svc/internal-concurrency'
import { listFolder, listFolderIfPresent } from '@svc/internal-files'
import { isName, isNamespace, isTag, type RepoId, type Sha256Digest } from '@svc/ref'
import type { ChangesElsewhere } from './changes-elsewhere.ts'
import { type RecordKind, StateRecords } from './record.ts'
import type { ReplacedFiles } from './replace.ts'
import { StampedReads } from './stamp.ts'
import { CorruptStateError, digest, mapOf, type OnUnreadable, optional, readable } from './strict.ts'

/** One repository: its current index, and the index snapshots that the owner's tags point to (spec ref.10). */
export interface RepoState {
  /** Undefined when the current index was removed, but tags point to older snapshots. */
  readonly index: Sha256Digest | undefined
  readonly tags: ReadonlyMap<string, Sha256Digest>
}

export interface RepoEntry extends RepoId {
  readonly state: RepoState
}

/**
 * `state/repos/<ns>/<name>.json`. Reads use a cache that is validated with one `stat`, so a file that was replaced by
 * hand is noticed at once. Changes are serialized per repository, each one atomic replacement.
 */
export class Repos {
  readonly #root: string
  readonly #records: StateRecords<RepoState, RecordedRepo>
  readonly #cache = new StampedReads<RepoState>()
  readonly #changing = new KeyedLock()
  readonly #elsewhere: Pick<ChangesElsewhere, 'revision'> | undefined
  #changes = 0

  /** `root` is the folder of the store; `files` has opened `<root>/state`, or reads it beside another process, whose changes are `elsewhere`. */
  constructor(root: string, files: ReplacedFiles, elsewhere?: Pick<ChangesElsewhere, 'revision'>) {
    this.#elsewhere = elsewhere
    this.#root = join(root, 'state', 'repos')
    this.#records = new StateRecords(root, files, REPO_RECORD)
  }

  /** Increases before and after every change of a repository: readers may see the new state before it is durable. */
  get changes(): number {
    return this.#changes + (this.#elsewhere?.revision ?? 0)
  }

  /** The state from memory; undefined when the file has to be read (or is absent). */
  cached(ns: string, name: string): RepoState | undefined {
    return this.#cache.cached(this.#path(ns, name))
  }

  /** @returns undefined if nothing was imported under that name. @throws UnreadableStateError */
  async read(ns: string, name: string): Promise<RepoState | undefined> {
    return this.#cache.read(this.#path(ns, name), () => this.#records.read(recordOf(ns, name)))
  }

  /**
   * Replaces the state by the result of `change`, with no other change in between. If that throws, nothing changes;
   * if it returns the same object, nothing is written, but the state is durable afterwards.
   */
  async update(repo: RepoId, change: (current: RepoState | undefined) => Promise<RepoState>): Promise<RepoState> {
    return (await this.change(repo, change))!
  }

  /** {@link update}, where `undefined` removes the repository. */
  change(
    { ns, name }: RepoId,
    change: (current: RepoState | undefined) => Promise<RepoState | undefined>
  ): Promise<RepoState | undefined> {
    return this.#changing.run(`${ns}/${name}`, undefined, async () => {
      const record = recordOf(ns, name)
      const current = await this.read(ns, name)
      const next = await change(current)
      if (next === current) {
        await this.#records.confirm(record)
        return next
      }
      this.#cache.drop(this.#path(ns, name))
      this.#changes++
      try {
        // a repository with neither an index nor a tag is invalid, and would not be read as one
        if (next === undefined || (next.index === undefined && next.tags.size === 0)) await this.#records.remove(record)
        else await this.#records.write(record, next)
      } finally {
        // also after a failure: it may have been the last sync, with the new state in place
        this.#changes++
      }
      return next
    })
  }

  /** Takes away a damaged record, which is kept below `state/damaged/` (spec disk.19). @returns whether it was one */
  setAside({ ns, name }: RepoId): Promise<boolean> {
    return this.#changing.run(`${ns}/${name}`, undefined, async () => {
      try {
        await this.read(ns, name)
        return false
      } catch (error) {
        if (!(error instanceof CorruptStateError)) throw error
      }
      this.#changes++
      try {
        await this.#records.remove(recordOf(ns, name))
      } finally {
        this.#changes++
      }
      return true
    })
  }

  /** Existing namespaces, sorted. */
  async namespaces(): Promise<string[]> {
    const entries = await listFolder(this.#root)
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .filter(isNamespace)
      .sort()
  }

  /** Existing names in a namespace, sorted. */
  async names(ns: string): Promise<readonly string[]> {
    const entries = await listFolderIfPresent(join(this.#root, ns))
    // the read reports an entry that is not a plain file
    return entries
      .filter(({ name }) => name.endsWith('.json'))
      .map(({ name }) => name.slice(0, -'.json'.length))
      .filter(isName)
      .sort()
  }

  /** All repositories by name, or those after one. Records that cannot be read are passed to `onUnreadable`, or else thrown. */
  async *list(onUnreadable?: OnUnreadable, after?: RepoId): AsyncGenerator<RepoEntry> {
    for (const ns of await this.namespaces()) {
      if (after !== undefined && ns < after.ns) continue
      for (const name of await this.names(ns)) {
        if (ns === after?.ns && name <= after.name) continue
        if (loopBudget.isOver('lists')) await loopBudget.next('lists')
        const state = this.cached(ns, name) ?? (await readable(() => this.read(ns, name), onUnreadable))
        if (state !== undefined) yield { ns, name, state }
      }
    }
  }

  #path(ns: string, name: string): string {
    if (!isNamespace(ns) || !isName(name)) throw new RangeError('not a canonical repository name')
    // concatenated rather than joined: all three are in their normal form
    return `${this.#root}${sep}${ns}${sep}${name}.json`
  }
}

const recordOf = (ns: string, name: string): string => `${ns}/${name}.json`

interface RecordedRepo {
  readonly index?: Sha256Digest | undefined
  readonly tags: Readonly<Record<string, Sha256Digest>>
}

export const REPO_RECORD: RecordKind<RepoState, RecordedRepo> = {
  folder: 'repos',
  shape: { index: optional(digest), tags: mapOf(digest) },
  decode({ index, tags }, file) {
    const wrong = Object.keys(tags).find((tag) => !isTag(tag))
    if (wrong !== undefined) throw new CorruptStateError(file, `${JSON.stringify(wrong.slice(0, 140))} is not a tag`)
    const state = { index, tags: new Map(Object.entries(tags)) }
    if (index === undefined && state.tags.size === 0) throw new CorruptStateError(file, '"index" is missing')
    return state
  },
  // the order of tags does not matter; JSON moves integer-like ones to the front
  encode: ({ index, tags }) => ({ index, tags: Object.fromEntries([...tags].sort(([a], [b]) => (a < b ? -1 : 1))) })
}
