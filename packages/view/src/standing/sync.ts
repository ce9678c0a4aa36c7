import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { ioError, ViewError } from '../errors.ts'
import { wantedBy } from './layouts.ts'
import type { Entry, StandingLayout, StandingModel, WantedEntry } from './model.ts'
import { type OwnEntries, readOwnEntries, WORK_FOLDER, writeOwnEntries } from './own-entries.ts'

/** What a standing view should show. */
export interface StandingRequest {
  readonly layout: StandingLayout
  /** The tool's folder: absolute; made if it is absent. */
  readonly path: string
  /** Complete models. Of two with an entry at one path, the first counts. */
  readonly models: readonly StandingModel[]
  /** The store: links into it are ours, whoever recorded them. */
  readonly root: string
  /** Stands for `models`: see {@link isStandingInOrder}. */
  readonly key: string
}

/** What a synchronization found and did. */
export interface StandingResult {
  /** Entries that are as they should be. */
  readonly entries: number
  readonly made: number
  readonly removed: number
  /** Up to 20 paths at which the tool has files of its own, which stay. */
  readonly taken: readonly string[]
}

/**
 * Makes a tool's folder show these models, and nothing else of the store; files of others stay. Each entry appears and
 * disappears at once, and what names others comes after them and goes before: a process that is killed leaves models as
 * they were or as they should be, and the next call does the rest.
 * @throws ViewError `E_NOT_LINKABLE`, `E_NO_SPACE`, `E_IO`, with the folder
 */
export function syncStanding(request: StandingRequest): StandingResult {
  try {
    return new Sync(request).run()
  } catch (error) {
    if (error instanceof ViewError) throw error
    throw ioError(error, 'keep the standing view', request.path)
  }
}

/**
 * Whether a folder still is as {@link syncStanding} left it for this key: every entry is there, and unpacked files behind
 * links are. False for a folder that cannot be read.
 */
export function isStandingInOrder(path: string, key: string): boolean {
  try {
    const own = readOwnEntries(path)
    if (own?.key !== key) return false
    return Object.entries(own.entries).every(([at, [mark = '', other]]) => {
      const place = join(path, at)
      if (other !== undefined || markAt(place, mark.startsWith('L')) !== mark) return false
      return !mark.includes(UNPACKED) || exists(mark.slice(1))
    })
  } catch {
    return false
  }
}

/** Part of the paths of files that the store unpacked, and may have thrown away. */
const UNPACKED = `${sep}cache${sep}`

/** Removes what is ours from a tool's folder, and the folder if nothing else is in it. @throws ViewError as {@link syncStanding} */
export function removeStanding(path: string, root: string): StandingResult {
  const { layout } = readOwnEntries(path) ?? {}
  if (layout === undefined) return { entries: 0, made: 0, removed: 0, taken: [] }
  const result = syncStanding({ layout, path, root, models: [], key: '' })
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
  readonly #taken: string[] = []
  #drafts = 0

  constructor(request: StandingRequest) {
    this.#request = request
    const { layout, path, models } = request
    mkdirSync(path, { recursive: true })
    this.#own = readOwnEntries(path) ?? { layout, entries: {}, folders: [] }
    for (const each of wantedBy(layout, models, path)) if (!this.#wanted.has(each.at)) this.#wanted.set(each.at, each)
  }

  run(): StandingResult {
    const { path, layout, key } = this.#request
    const toMake = [...this.#wanted.values()].filter((each) => !this.#isThere(each))
    const stale = Object.keys(this.#own.entries).filter((at) => !this.#wanted.has(at))
    const makeable = toMake.filter((each) => this.#isOursOrAbsent(each.at))
    const folders = this.#foldersWith(makeable)
    const groups = new Set([...this.#wanted.values()].flatMap(({ group }) => group ?? []))
    rmSync(join(path, WORK_FOLDER, 'drafts'), { recursive: true, force: true })
    if (makeable.length > 0 || stale.length > 0) {
      // known as ours before they are there
      const entries = { ...this.#own.entries }
      for (const { at, entry } of makeable) entries[at] = [...new Set([...(entries[at] ?? []), markOf(entry)])]
      const all = [...new Set([...(this.#own.groups ?? []), ...groups])]
      writeOwnEntries(path, { layout, entries, groups: all, folders })
      this.#make(makeable)
      this.#removeAll(stale)
    }
    const entries: Record<string, readonly string[]> = {}
    for (const each of this.#wanted.values()) if (this.#isThere(each)) entries[each.at] = [markOf(each.entry)]
    const kept = folders.toReversed().filter((folder) => !this.#prune(folder))
    const own: OwnEntries = { layout, key, entries, groups: [...groups], folders: kept.toReversed() }
    if (JSON.stringify(own) !== JSON.stringify(this.#own)) writeOwnEntries(path, own)
    const present = Object.keys(entries).length
    return { entries: present, made: makeable.length, removed: stale.length, taken: this.#taken }
  }

  /** The folders that we made, or are about to make, the outer ones first. */
  #foldersWith(makeable: readonly WantedEntry[]): readonly string[] {
    const folders = new Set(this.#own.folders)
    for (const { at } of makeable)
      for (let folder = dirname(at); folder !== '.'; folder = dirname(folder))
        if (!exists(join(this.#request.path, folder))) folders.add(folder)
    return [...folders].toSorted()
  }

  /** Content first, then what names it; a folder that has to appear at once is made elsewhere, and renamed. */
  #make(makeable: readonly WantedEntry[]): void {
    const { path } = this.#request
    const single: WantedEntry[] = []
    for (const [group, members] of Map.groupBy(makeable, (each) => each.group)) {
      if (group === undefined || !this.#isOnlyOurs(group)) {
        single.push(...members)
        continue
      }
      const draft = this.#draft()
      for (const { at, entry, group: of } of this.#wanted.values())
        if (of === group) this.#place(join(draft, at.slice(group.length + 1)), entry)
      mkdirSync(dirname(join(path, group)), { recursive: true })
      if (exists(join(path, group))) renameSync(join(path, group), this.#draft())
      renameSync(draft, join(path, group))
    }
    for (const isLast of [false, true])
      for (const { at, entry, isLast: named = false } of single)
        if (named === isLast) this.#replace(join(path, at), entry)
  }

  /** What names others goes first; a folder that appeared at once goes at once. */
  #removeAll(stale: readonly string[]): void {
    const { path } = this.#request
    const rank = (at: string): number => (/(?:^|\/)(?:refs|manifests)\/|^models\.ini$|\.yaml$/.test(at) ? 0 : 1)
    const going = new Set(stale)
    for (const group of this.#own.groups ?? []) {
      const members = Object.keys(this.#own.entries).filter((at) => at.startsWith(`${group}/`))
      const isWhole = members.length > 0 && members.every((at) => going.has(at))
      if (isWhole && exists(join(path, group)) && this.#isOnlyOurs(group)) renameSync(join(path, group), this.#draft())
    }
    for (const at of stale.toSorted((a, b) => rank(a) - rank(b)))
      if (this.#isOursOrAbsent(at, false)) unlinkIfThere(join(path, at))
    rmSync(join(path, WORK_FOLDER, 'drafts'), { recursive: true, force: true })
  }

  #isOnlyOurs(folder: string): boolean {
    const top = join(this.#request.path, folder)
    if (!exists(top)) return true
    if (!lstatSync(top).isDirectory()) return false
    return readdirSync(top, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .every(({ parentPath, name }) =>
        this.#isOursOrAbsent(relative(this.#request.path, join(parentPath, name)), false)
      )
  }

  #draft(): string {
    const draft = join(this.#request.path, WORK_FOLDER, 'drafts', `${process.pid}-${this.#drafts++}`)
    mkdirSync(dirname(draft), { recursive: true })
    return draft
  }

  #replace(to: string, entry: Entry): void {
    mkdirSync(dirname(to), { recursive: true })
    const draft = this.#draft()
    this.#place(draft, entry)
    renameSync(draft, to)
  }

  #place(to: string, entry: Entry): void {
    mkdirSync(dirname(to), { recursive: true })
    if ('text' in entry) return writeFileSync(to, entry.text)
    try {
      symlinkSync(entry.link, to)
    } catch (error) {
      const { path } = this.#request
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error
      const message = `the file system of ${path} has no symbolic links, which a standing view consists of`
      throw new ViewError('E_NOT_LINKABLE', message, { path }, error)
    }
  }

  #isThere({ at, entry }: WantedEntry): boolean {
    const found = markAt(join(this.#request.path, at), 'link' in entry)
    return found === markOf(entry)
  }

  /** Whether there is nothing at a path, or something that we made. */
  #isOursOrAbsent(at: string, isNoted = true): boolean {
    const path = join(this.#request.path, at)
    const marks = this.#own.entries[at] ?? []
    const found = markAt(path, marks.length === 0 || marks.some((mark) => mark.startsWith('L')))
    const { root } = this.#request
    if (found === undefined || marks.includes(found) || found.startsWith(`L${root}${sep}`)) return true
    if (isNoted && this.#taken.length < MAX_NAMED) this.#taken.push(path)
    return false
  }

  /** @returns whether the folder, which we made, is gone */
  #prune(folder: string): boolean {
    const isWanted = [...this.#wanted.keys()].some((at) => at.startsWith(`${folder}/`))
    return !isWanted && removeIfEmpty(join(this.#request.path, folder))
  }
}

/** `L` and the text of a link, or `T` and the SHA-256 of a file. */
const markOf = (entry: Entry): string => ('link' in entry ? `L${entry.link}` : `T${sha256(entry.text)}`)

const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Above this, a file is none of ours. */
const MAX_TEXT_BYTES = 16 << 20

/** Undefined if nothing is there; empty for what cannot be ours. */
function markAt(path: string, isLink: boolean): string | undefined {
  try {
    // most entries are links: one call for each
    if (isLink) return `L${readlinkSync(path)}`
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined
    if (errnoOf(error) !== 'EINVAL') throw error
  }
  try {
    const stats = lstatSync(path)
    if (stats.isSymbolicLink()) return `L${readlinkSync(path)}`
    return stats.isFile() && stats.size <= MAX_TEXT_BYTES ? `T${sha256(readFileSync(path))}` : ''
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
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
