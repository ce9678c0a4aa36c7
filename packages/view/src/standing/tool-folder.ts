import { lstatSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { isLinkRefused } from '@svc/internal-files'
import { throwIfAborted, ViewError } from '../errors.ts'
import { copyShown } from '../place.ts'
import { copyMark, copyTimeMs, lies, linkAt, linkMark, textMark } from './mark.ts'
import type { Entry, ShownFile, WantedEntry } from './model.ts'
import { type OwnEntries, WORK_FOLDER } from './own-entries.ts'
import { isOfSource, SourceError } from './sources.ts'

interface ToolFolderOptions {
  readonly path: string
  /** The store: links into it are ours, whoever recorded them. */
  readonly root: string
  /** Whether files are copies; else links. */
  readonly isCopying: boolean
  /** What was recorded as ours. */
  readonly own: OwnEntries
  readonly signal?: AbortSignal | undefined
  readonly onCopied?: ((bytes: number) => void) | undefined
}

/** A tool's folder: tells what is ours in it, and makes and removes that, each entry at once. What others have there stays. */
export class ToolFolder {
  readonly #options: ToolFolderOptions
  /** By path: the times of the sources of copies, also if they go meanwhile. */
  readonly #times = new Map<string, number>()
  #drafts = 0
  made = 0
  removed = 0
  /** Where others have something that we would have made. */
  readonly taken = new Set<string>()
  /** The sources of the copies that were made and share their blocks. */
  readonly sharing = new Set<string>()

  constructor(options: ToolFolderOptions) {
    this.#options = options
  }

  at(path: string): string {
    return join(this.#options.path, path)
  }

  /** Whether there is nothing at a path, or something that we made. */
  isOursOrAbsent(at: string, isNoted = true): boolean {
    const { own, root } = this.#options
    const path = this.at(at)
    // undefined: nothing is there
    if ((own.entries[at] ?? []).some((mark) => lies(path, mark) !== false)) return true
    const link = linkAt(path)
    if (link === undefined || link.startsWith(`${root}${sep}`)) return true
    if (isNoted) this.taken.add(path)
    return false
  }

  hasLinks(): boolean {
    const probe = this.#draft()
    try {
      symlinkSync('probe', probe)
    } catch (error) {
      if (isLinkRefused(error)) return false
      throw error
    }
    rmSync(probe)
    return true
  }

  /** As what an entry is recorded. */
  markOf(entry: Entry): string {
    if ('text' in entry) return textMark(entry.text)
    if ('link' in entry) return linkMark(entry.link)
    const { file } = entry
    return this.#options.isCopying ? copyMark(file, this.#timeOf(file)) : linkMark(file.path)
  }

  /**
   * Content first, then what names it; a folder that has to appear at once is made elsewhere, and renamed.
   * @param wanted all entries: those of a group are made together
   */
  async make(makeable: readonly WantedEntry[], wanted: readonly WantedEntry[]): Promise<void> {
    const single: WantedEntry[] = []
    for (const [group, members] of Map.groupBy(makeable, (each) => each.group)) {
      if (group === undefined || !this.#isOnlyOurs(group)) single.push(...members)
      else
        await this.#makeGroup(
          group,
          members,
          wanted.filter((each) => each.group === group)
        )
    }
    for (const isLast of [false, true])
      for (const { at, entry, isLast: named = false } of single)
        if (named === isLast) {
          const draft = this.#draft()
          await this.#place(draft, entry)
          this.#put(draft, at)
        }
  }

  async #makeGroup(group: string, members: readonly WantedEntry[], whole: readonly WantedEntry[]): Promise<void> {
    const draft = this.#draft()
    for (const { at, entry } of whole) await this.#place(join(draft, at.slice(group.length + 1)), entry)
    const to = this.at(group)
    mkdirSync(dirname(to), { recursive: true })
    // others may have come while the copies were made
    if (this.#isOnlyOurs(group)) {
      if (exists(to)) renameSync(to, this.#draft())
      renameSync(draft, to)
      this.made += members.length
    } else for (const { at } of members) this.#put(join(draft, at.slice(group.length + 1)), at)
  }

  /** Gives a draft its name, unless somebody else has taken that meanwhile. */
  #put(draft: string, at: string): void {
    if (!this.isOursOrAbsent(at)) return
    const to = this.at(at)
    mkdirSync(dirname(to), { recursive: true })
    renameSync(draft, to)
    this.made++
  }

  /**
   * What names others goes first; a folder that appeared at once goes at once. All of it goes by its name, and the bytes
   * afterwards: that takes long for large ones.
   * @param wanted what was made anew under the name of a group stays
   */
  async removeAll(stale: readonly string[], wanted: Iterable<WantedEntry>): Promise<void> {
    const { own } = this.#options
    const rank = (at: string): number => {
      if (/(?:^|\/)(?:refs|trees|manifests)\/|^models\.ini$|\.yaml$/.test(at)) return 0
      return at.includes('/snapshots/') ? 1 : 2
    }
    const going = new Set(stale)
    const staying = new Set(Array.from(wanted, ({ group }) => group))
    for (const group of own.groups ?? []) {
      if (staying.has(group)) continue
      const members = Object.keys(own.entries).filter((at) => at.startsWith(`${group}/`))
      const isWhole = members.length > 0 && members.every((at) => going.has(at))
      if (isWhole && exists(this.at(group)) && this.#isOnlyOurs(group) && this.#drop(group))
        this.removed += members.length
    }
    for (const at of stale.toSorted((a, b) => rank(a) - rank(b))) {
      if (!exists(this.at(at)) || !this.isOursOrAbsent(at, false)) continue
      if (!this.#drop(at)) rmSync(this.at(at), { force: true })
      this.removed++
    }
    await removeDrafts(this.#options.path)
  }

  /** @returns false where the tool has this part of its folder on another disk, behind a link */
  #drop(at: string): boolean {
    try {
      renameSync(this.at(at), this.#draft())
      return true
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV') throw error
      return false
    }
  }

  #isOnlyOurs(folder: string): boolean {
    const top = this.at(folder)
    if (!exists(top)) return true
    if (!lstatSync(top).isDirectory()) return false
    return readdirSync(top, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .every(({ parentPath, name }) => this.isOursOrAbsent(relative(this.#options.path, join(parentPath, name)), false))
  }

  #draft(): string {
    const draft = this.at(join(WORK_FOLDER, 'drafts', `${process.pid}-${this.#drafts++}`))
    mkdirSync(dirname(draft), { recursive: true })
    return draft
  }

  async #place(to: string, entry: Entry): Promise<void> {
    throwIfAborted(this.#options.signal)
    mkdirSync(dirname(to), { recursive: true })
    if ('text' in entry) return writeFileSync(to, entry.text)
    if ('link' in entry) return this.#link(to, entry.link)
    const { file } = entry
    if (!this.#options.isCopying) return this.#link(to, file.path)
    const time = this.#timeOf(file) / 1000
    try {
      if (await copyShown(file, to, this.#options)) this.sharing.add(file.path)
    } catch (error) {
      throw isOfSource(error, file) ? new SourceError(file.path, error) : error
    }
    utimesSync(to, time, time)
  }

  #timeOf(file: ShownFile): number {
    const time = this.#times.get(file.path) ?? copyTimeMs(file)
    this.#times.set(file.path, time)
    return time
  }

  #link(to: string, text: string): void {
    try {
      symlinkSync(text, to)
    } catch (error) {
      const { path } = this.#options
      if (!isLinkRefused(error)) throw error
      const message = `the file system of ${path} has no symbolic links; a standing view there has to consist of copies (--copy)`
      throw new ViewError('E_NOT_LINKABLE', message, { path }, error)
    }
  }
}

export const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

export const removeDrafts = (path: string): Promise<void> =>
  rm(join(path, WORK_FOLDER, 'drafts'), { recursive: true, force: true })
