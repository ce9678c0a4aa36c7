import { mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { KeyedLock } from '@svc/internal-concurrency'
import { errnoOf } from '@svc/internal-errors'
import { ioError, throwIfAborted, ViewError } from '../errors.ts'
import { CopyRoom } from './copy-room.ts'
import { wantedBy } from './layouts.ts'
import { copiedBytes, isCopyOf, lies, sharingMark } from './mark.ts'
import type { Entry, ShownFile, StandingLayout, StandingModel, WantedEntry } from './model.ts'
import { type OwnEntries, readOwnEntries, WORK_FOLDER, writeOwnEntries } from './own-entries.ts'
import { SourceError, Sources } from './sources.ts'
import { exists, removeDrafts, ToolFolder } from './tool-folder.ts'

/** What a standing view should show. */
export interface StandingRequest {
  readonly layout: StandingLayout
  /** The tool's folder: absolute; made if it is absent. */
  readonly path: string
  /** Complete models. Of two with an entry at one path, the first counts. */
  readonly models: readonly StandingModel[]
  /** The store: links into it are ours, whoever recorded them. */
  readonly root: string
  /** The files are copies, which share blocks with the store where the file system can; default: links. */
  readonly copy?: boolean | undefined
  /** Copies all models or, if these do not fit, nothing. Default: those that fit, the first ones first. */
  readonly requireRoom?: boolean | undefined
  /** Stands for `models`: see {@link isStandingInOrder}. */
  readonly key: string
}

/** How to end {@link syncStanding} early, and to follow its copies. */
export interface StandingOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes of each step of a copy, including shared ones. */
  readonly onCopied?: ((bytes: number) => void) | undefined
}

/** What a synchronization found and did. */
export interface StandingResult {
  /** Entries that are as they should be. */
  readonly entries: number
  readonly made: number
  readonly removed: number
  /** Up to 20 paths at which the tool has files of its own, which stay. */
  readonly taken: readonly string[]
  /** The space that copies take beyond the store's. */
  readonly copiedBytes: number
  /** How many models were left out because their copies do not fit, and what they need; copies that they have stay. */
  readonly lacking?: string | undefined
  /** Which models are not shown whole because the store's files cannot be read, and why; copies that they have stay. */
  readonly failed?: string | undefined
}

/** By folder: two calls at once would take each other's drafts and record. */
const locks = new KeyedLock()

/**
 * Makes a tool's folder show these models, and nothing else of the store; files of others stay. Each entry appears and
 * disappears at once, and what names others comes after them and goes before: a process that is killed leaves models as
 * they were or as they should be, and the next call does the rest. Takes as long as copying does. A call waits for those
 * at the same folder in this process; other processes have to keep away. A file of the store that cannot be read is left
 * out, or where its models are copied they are, and it is not tried again until it changes.
 * @throws ViewError `E_NOT_LINKABLE`, `E_NO_SPACE`, `E_IO`, with the folder; `E_ABORTED`
 */
export const syncStanding = (request: StandingRequest, options: StandingOptions = {}): Promise<StandingResult> =>
  locks.run(request.path, undefined, () => synced(request, options))

async function synced(request: StandingRequest, options: StandingOptions = {}): Promise<StandingResult> {
  const before = { made: 0, removed: 0 }
  let bad: OwnEntries['bad']
  try {
    for (;;) {
      throwIfAborted(options.signal)
      const sync = new Sync(request, options, bad)
      try {
        const { made, removed, ...result } = await sync.run()
        return { ...result, made: made + before.made, removed: removed + before.removed }
      } catch (error) {
        if (!(error instanceof SourceError)) throw error
        const next = sync.badWith(error)
        // left out already, and asked for again: by a group that two models share
        if (next?.[error.path]?.stamp === bad?.[error.path]?.stamp) throw error
        bad = next
        before.made += sync.done.made
        before.removed += sync.done.removed
      }
    }
  } catch (error) {
    throw ioError(error, 'keep the standing view', request.path)
  } finally {
    await removeDrafts(request.path).catch(() => undefined)
  }
}

/** Removes what is ours from a tool's folder, and the folder if nothing else is in it. @throws ViewError as {@link syncStanding} */
export const removeStanding = (path: string, root: string): Promise<StandingResult> =>
  locks.run(path, undefined, () => removed(path, root))

async function removed(path: string, root: string): Promise<StandingResult> {
  const { layout } = readOwnEntries(path) ?? {}
  if (layout === undefined) return { entries: 0, made: 0, removed: 0, taken: [], copiedBytes: 0 }
  const result = await synced({ layout, path, root, models: [], key: '' })
  try {
    for (const at of Object.keys(readOwnEntries(path)?.entries ?? {})) rmSync(join(path, at), { force: true })
    rmSync(join(path, WORK_FOLDER), { recursive: true, force: true })
    removeIfEmpty(path)
  } catch (error) {
    throw ioError(error, 'remove the standing view', path)
  }
  return result
}

const MAX_NAMED = 20

class Sync {
  readonly #request: StandingRequest
  readonly #wanted = new Map<string, WantedEntry>()
  readonly #own: OwnEntries
  readonly #folder: ToolFolder
  readonly #sources: Sources
  /** What the models that are left out would have. */
  readonly #leftOut: WantedEntry[] = []
  /** By path: the marks of what may lie there, as recorded. */
  #marks: Readonly<Record<string, readonly string[]>>

  /** @param bad what an attempt before this one could not copy */
  constructor(request: StandingRequest, options: StandingOptions, bad: OwnEntries['bad']) {
    this.#request = request
    const { layout, path, root, copy } = request
    mkdirSync(path, { recursive: true })
    const own = readOwnEntries(path) ?? { layout, entries: {}, folders: [] }
    this.#own = own
    this.#folder = new ToolFolder({ ...options, path, root, own, isCopying: copy === true })
    this.#marks = this.#own.entries
    this.#sources = new Sources({ ...this.#own.bad, ...bad })
  }

  get done(): { readonly made: number; readonly removed: number } {
    return this.#folder
  }

  badWith(error: SourceError): OwnEntries['bad'] {
    return this.#sources.with(error)
  }

  async run(): Promise<StandingResult> {
    const { path, layout, copy, models, requireRoom } = this.#request
    await removeDrafts(path)
    const isCopying = copy === true && models.length > 0
    const place = {
      folder: path,
      hasLinks: !isCopying || this.#folder.hasLinks(),
      admits: (model: StandingModel, file: ShownFile) => this.#sources.admitsAgain(model, file)
    }
    const wantedOf = (some: readonly StandingModel[]): readonly WantedEntry[] => wantedBy(layout, some, place)
    const room = isCopying ? new CopyRoom(path, this.#goingBytes(wantedOf(models))) : undefined
    const shown = room === undefined ? models : await this.#fitting(models, room, wantedOf)
    const lacking = room?.lacking
    if (lacking !== undefined && requireRoom === true) throw new ViewError('E_NO_SPACE', lacking, { path })
    for (const each of wantedOf(shown)) if (!this.#wanted.has(each.at)) this.#wanted.set(each.at, each)
    const { failed, bad } = this.#sources
    // without a key, the next start tries again what was left out
    const key = lacking === undefined && failed === undefined ? this.#request.key : undefined
    return { ...(await this.#change({ key, bad }, room?.isTight === true)), lacking, failed }
  }

  async #change(found: Pick<OwnEntries, 'key' | 'bad'>, isTight: boolean): Promise<StandingResult> {
    const { path, layout } = this.#request
    const kept = this.#there(this.#leftOut.filter(({ at }) => !this.#wanted.has(at)))
    const there = { ...kept, ...this.#there(this.#wanted.values()) }
    const toMake = [...this.#wanted.values()].filter(({ at }) => there[at] === undefined)
    const stale = Object.keys(this.#own.entries).filter((at) => !this.#wanted.has(at) && kept[at] === undefined)
    const makeable = toMake.filter((each) => this.#folder.isOursOrAbsent(each.at))
    const folders = this.#foldersWith(makeable)
    const groups = new Set([...this.#leftOut, ...this.#wanted.values()].flatMap(({ group }) => group ?? []))
    const touched = withGroups(makeable, [...this.#wanted.values()])
    if (makeable.length > 0 || stale.length > 0) {
      // known as ours before they are there
      const entries = { ...this.#own.entries }
      for (const { at, entry } of touched)
        entries[at] = [...new Set([...(entries[at] ?? []), this.#folder.markOf(entry)])]
      this.#marks = entries
      const all = [...new Set([...(this.#own.groups ?? []), ...groups])]
      writeOwnEntries(path, { layout, entries, groups: all, folders })
      const wanted = [...this.#wanted.values()]
      const making = makeable.flatMap(({ at }) => (this.#isOwnCopy(at) ? at : []))
      if (isTight) await this.#folder.removeAll([...stale, ...making], wanted)
      await this.#folder.make(makeable, wanted)
      await this.#folder.removeAll(stale, wanted)
    }
    const entries = { ...there, ...this.#there(touched) }
    const needed = new Set([...this.#wanted.keys(), ...Object.keys(kept)].flatMap(foldersAbove))
    const isKept = (folder: string): boolean => needed.has(folder) || !removeIfEmpty(join(path, folder))
    const standing = folders.toReversed().filter(isKept).toReversed()
    const own: OwnEntries = { layout, ...found, entries, groups: [...groups], folders: standing }
    if (JSON.stringify(own) !== JSON.stringify(this.#own)) writeOwnEntries(path, own)
    return {
      entries: Object.keys(entries).length,
      made: this.#folder.made,
      removed: this.#folder.removed,
      taken: [...this.#folder.taken].slice(0, MAX_NAMED),
      copiedBytes: Object.values(entries).reduce((sum, [mark = '']) => sum + copiedBytes(mark), 0)
    }
  }

  /** What is as it should be, with its mark. */
  #there(wanted: Iterable<WantedEntry>): Readonly<Record<string, readonly string[]>> {
    const { path } = this.#request
    const entries: Record<string, readonly string[]> = {}
    for (const { at, entry } of wanted) {
      const mark = this.#marksFor(at, entry).find((each) => lies(join(path, at), each) === true)
      if (mark === undefined) continue
      const isSharing = 'file' in entry && this.#folder.sharing.has(entry.file.path)
      entries[at] = [isSharing ? sharingMark(mark) : mark]
    }
    return entries
  }

  /** The models whose missing copies fit, the first ones first. */
  async #fitting(
    models: readonly StandingModel[],
    room: CopyRoom,
    wantedOf: (some: readonly StandingModel[]) => readonly WantedEntry[]
  ): Promise<readonly StandingModel[]> {
    const fitting: StandingModel[] = []
    const counted = new Set<string>()
    for (const model of models) {
      const wanted = wantedOf([model])
      const toMake = wanted.filter((each) => !this.#isThere(each) && this.#folder.isOursOrAbsent(each.at, false))
      const all = withGroups(toMake, wanted)
      const files = all.filter(({ at }) => !counted.has(at))
      if (this.#sources.admits(model, filesOf(all)) && (await room.take(filesOf(files)))) {
        for (const { at } of files) counted.add(at)
        fitting.push(model)
      } else this.#leftOut.push(...wanted.filter(({ isLast }) => isLast !== true))
    }
    return fitting
  }

  /** Of the copies that are not wanted any more. */
  #goingBytes(wanted: readonly WantedEntry[]): number {
    const staying = new Set(wanted.filter((each) => this.#isThere(each)).map(({ at }) => at))
    return Object.entries(this.#own.entries)
      .filter(([at]) => !staying.has(at))
      .flatMap(([at, marks]) => marks.filter((mark) => lies(join(this.#request.path, at), mark) === true).slice(0, 1))
      .reduce((sum, mark) => sum + copiedBytes(mark), 0)
  }

  #isOwnCopy(at: string): boolean {
    const path = join(this.#request.path, at)
    return (this.#own.entries[at] ?? []).some((mark) => copiedBytes(mark) > 0 && lies(path, mark) === true)
  }

  /** The folders that we made, or are about to make, the outer ones first. */
  #foldersWith(makeable: readonly WantedEntry[]): readonly string[] {
    const folders = new Set(this.#own.folders)
    for (const folder of new Set(makeable.flatMap(({ at }) => foldersAbove(at))))
      if (!exists(join(this.#request.path, folder))) folders.add(folder)
    return [...folders].toSorted()
  }

  /** What may lie there as it should be. */
  #marksFor(at: string, entry: Entry): readonly string[] {
    if (!('file' in entry) || this.#request.copy !== true) return [this.#folder.markOf(entry)]
    return (this.#marks[at] ?? []).filter((mark) => isCopyOf(mark, entry.file))
  }

  #isThere({ at, entry }: Pick<WantedEntry, 'at' | 'entry'>): boolean {
    const path = join(this.#request.path, at)
    return this.#marksFor(at, entry).some((mark) => lies(path, mark) === true)
  }
}

/** Entries to make, and the others of their groups, which are made with them. */
function withGroups(toMake: readonly WantedEntry[], wanted: readonly WantedEntry[]): readonly WantedEntry[] {
  const groups = new Set(toMake.flatMap(({ group }) => group ?? []))
  const beside = wanted.filter(({ group }) => group !== undefined && groups.has(group))
  return [...new Set([...toMake, ...beside])]
}

const filesOf = (entries: readonly WantedEntry[]): readonly ShownFile[] =>
  entries.flatMap(({ entry }) => ('file' in entry ? entry.file : []))

/** The folders of a path below the view, the inner ones first. */
function foldersAbove(at: string): readonly string[] {
  const folders: string[] = []
  for (let folder = dirname(at); folder !== '.'; folder = dirname(folder)) folders.push(folder)
  return folders
}

function removeIfEmpty(folder: string): boolean {
  try {
    if (readdirSync(folder).length > 0) return false
    rmdirSync(folder)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return true
    if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOTDIR', 'EACCES', 'EPERM'].includes(errnoOf(error) ?? '')) return false
    throw error
  }
}
