import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { KeyedLock } from '@svc/internal-concurrency'
import { isName, isNamespace, isTag, type RepoId, type Sha256Digest } from '@svc/ref'
import type { ReplacedFiles } from './replace.ts'
import { type FileStamp, sameStamp, stampOf } from './stamp.ts'
import { CorruptStateError, digestField, fieldsOf, onlyKeys, parseStateText } from './strict.ts'

/** One repository: its current index, and the index snapshots that the owner's tags name (spec ref.10). */
export interface RepoState {
  /** undefined when the present one was removed, and older snapshots have tags. */
  readonly index: Sha256Digest | undefined
  readonly tags: ReadonlyMap<string, Sha256Digest>
}

/** An entry of the inventory walk. */
export interface RepoEntry extends RepoId {
  readonly state: RepoState
}

const MAX_CACHED = 100_000

/**
 * `state/repos/<ns>/<name>.json`. Reads go through a cache that one `stat` validates, so a file that somebody replaced by
 * hand is seen at once. Changes are serialised per repository and are one atomic replace each.
 */
export class Repos {
  readonly #root: string
  readonly #files: ReplacedFiles
  readonly #cache = new Map<string, { readonly path: string; readonly stamp: FileStamp; readonly state: RepoState }>()
  readonly #changing = new KeyedLock()
  #changes = 0

  /** `root` is the folder of the store; `files` has taken over `<root>/state`. */
  constructor(root: string, files: ReplacedFiles) {
    this.#root = join(root, 'state', 'repos')
    this.#files = files
  }

  /** Grows with every change of a repository. */
  get changes(): number {
    return this.#changes
  }

  /** From memory, or undefined when the file has to be read (or is absent). */
  cached(ns: string, name: string): RepoState | undefined {
    const key = `${ns}/${name}`
    const hit = this.#cache.get(key)
    if (hit === undefined) return undefined
    const stamp = stampOf(hit.path)
    if (stamp !== undefined && sameStamp(stamp, hit.stamp)) return hit.state
    this.#cache.delete(key)
    return undefined
  }

  /** @returns undefined where nothing was imported under that name. @throws CorruptStateError */
  async read(ns: string, name: string): Promise<RepoState | undefined> {
    const hit = this.cached(ns, name)
    if (hit !== undefined) return hit
    const path = this.#path(ns, name)
    // The stamp is taken before the bytes: a replace in between makes the next look miss, never serve old bytes for new.
    const stamp = stampOf(path)
    if (stamp === undefined) return undefined
    const bytes = await this.#files.read(path)
    if (bytes === undefined) return undefined
    const state = parseRepoState(bytes, `state/repos/${ns}/${name}.json`)
    if (this.#cache.size >= MAX_CACHED) this.#cache.clear()
    this.#cache.set(`${ns}/${name}`, { path, stamp, state })
    return state
  }

  /**
   * Replaces the state of one repository by what `change` makes of the present one; nobody else changes it meanwhile.
   * A throwing `change` leaves it as it was. Returning the same object changes nothing; the state is durable all the same then.
   */
  async update(repo: RepoId, change: (current: RepoState | undefined) => Promise<RepoState>): Promise<RepoState> {
    return (await this.change(repo, change))!
  }

  /** {@link update}, where `undefined` removes the repository. */
  change(
    { ns, name }: RepoId,
    change: (current: RepoState | undefined) => Promise<RepoState | undefined>
  ): Promise<RepoState | undefined> {
    const key = `${ns}/${name}`
    return this.#changing.run(key, undefined, async () => {
      const path = this.#path(ns, name)
      const current = await this.read(ns, name)
      const next = await change(current)
      if (next === current) {
        await this.#files.confirm(path)
        return next
      }
      this.#cache.delete(key)
      try {
        // what holds neither an index nor a tag is no repository, and would not be read as one
        if (next === undefined || (next.index === undefined && next.tags.size === 0)) await this.#files.remove(path)
        else await this.#files.write(path, formatRepoState(next))
      } finally {
        // also where it failed: the last sync may have, when the new state was there already
        this.#changes++
      }
      return next
    })
  }

  /** Namespaces present, sorted. */
  async namespaces(): Promise<string[]> {
    return (await entries(this.#root, true)).filter(isNamespace).sort()
  }

  /** Names present in a namespace, sorted. */
  async names(ns: string): Promise<string[]> {
    return (await entries(join(this.#root, ns), false))
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .filter(isName)
      .sort()
  }

  /** Every repository by name. Corrupt files are handed to `onCorrupt`, or thrown without it. */
  async *list(onCorrupt?: (error: CorruptStateError) => void): AsyncGenerator<RepoEntry> {
    for (const ns of await this.namespaces()) {
      for (const name of await this.names(ns)) {
        let state: RepoState | undefined
        try {
          state = this.cached(ns, name) ?? (await this.read(ns, name))
        } catch (error) {
          if (!(error instanceof CorruptStateError) || onCorrupt === undefined) throw error
          onCorrupt(error)
        }
        if (state !== undefined) yield { ns, name, state }
      }
    }
  }

  #path(ns: string, name: string): string {
    if (!isNamespace(ns) || !isName(name)) throw new RangeError('not a canonical repository name')
    return join(this.#root, ns, `${name}.json`)
  }
}

/** @throws CorruptStateError */
export function parseRepoState(bytes: Uint8Array, file: string): RepoState {
  const fields = parseStateText(bytes, file)
  onlyKeys(fields, ['index', 'tags'], file)
  const tags = new Map<string, Sha256Digest>()
  for (const [tag, digest] of Object.entries(fieldsOf(fields.tags, file, '"tags"'))) {
    if (!isTag(tag)) throw new CorruptStateError(file, `${JSON.stringify(tag.slice(0, 140))} is not a tag`)
    tags.set(tag, digestField(digest, file, `the tag "${tag}"`))
  }
  const index = fields.index === undefined ? undefined : digestField(fields.index, file, '"index"')
  if (index === undefined && tags.size === 0) throw new CorruptStateError(file, '"index" is missing')
  return { index, tags }
}

function formatRepoState(state: RepoState): string {
  const tags = [...state.tags].sort(([a], [b]) => (a < b ? -1 : 1))
  // JSON.stringify would move integer-like tags to the front; order means nothing here, only that no tag is lost.
  const lines = tags.map(([tag, digest]) => `    ${JSON.stringify(tag)}: ${JSON.stringify(digest)}`)
  const index = state.index === undefined ? '' : `  "index": ${JSON.stringify(state.index)},\n`
  return `{\n${index}  "tags": {${lines.length > 0 ? `\n${lines.join(',\n')}\n  ` : ''}}\n}\n`
}

async function entries(folder: string, folders: boolean): Promise<string[]> {
  try {
    const all = await readdir(folder, { withFileTypes: true })
    return all.filter((entry) => (folders ? entry.isDirectory() : entry.isFile())).map((entry) => entry.name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
