import type { Dirent, Stats } from 'node:fs'
import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { openRegular, readFully } from '@svc/internal-files'
import type { FoundWarning, FoundWarningCode } from './found.ts'

const MAX_ENTRIES = 200_000
/** The limit of an import of a folder, too. */
const MAX_DEPTH = 64
/** Limit of a document's size: listings of the largest repositories take some megabytes. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024

/** A regular file within a cache. */
export interface CachedFile {
  /** With all links resolved. */
  readonly path: string
  readonly stats: Stats
}

/**
 * Reads a tool's cache without ever leaving it: links are followed only to regular files below its root, folders that
 * are links are not entered, and unreadable entries become warnings. The number of entries is limited.
 */
export class CacheFolder {
  /** A real path. */
  readonly root: string
  readonly #warn: (warning: FoundWarning) => void
  readonly #budget: { entries: number }

  constructor(root: string, warn: (warning: FoundWarning) => void, budget = { entries: MAX_ENTRIES }) {
    this.root = root
    this.#warn = warn
    this.#budget = budget
  }

  /** The same cache, with another receiver of warnings. */
  reportingTo(warn: (warning: FoundWarning) => void): CacheFolder {
    return new CacheFolder(this.root, warn, this.#budget)
  }

  warn(code: FoundWarningCode, at: string, message: string): void {
    this.#warn({ code, path: this.path(at), message })
  }

  report(warnings: readonly FoundWarning[]): void {
    for (const warning of warnings) this.#warn(warning)
  }

  path(at: string): string {
    return at === '' ? this.root : join(this.root, at)
  }

  /** The entries of a folder, sorted by name; empty when it is absent, a link, or not a folder. */
  async list(at: string): Promise<readonly Dirent[]> {
    try {
      // all folders on the way are checked: the last one may be sound but lie behind a link.
      if ((await realpath(this.path(at))) !== this.path(at)) {
        this.warn('leads-outside', at, 'the folder is behind a link and was not read')
        return []
      }
      const entries = await readdir(this.path(at), { withFileTypes: true })
      if (entries.length > this.#budget.entries) {
        this.warn('too-many', at, `the cache has more than ${MAX_ENTRIES} entries; those of this folder are left out`)
        return []
      }
      this.#budget.entries -= entries.length
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) this.#unreadable(at, error)
      return []
    }
  }

  /** Names of the folders in a folder. Links are reported, not entered: people move models to other disks that way. */
  async folders(at: string): Promise<readonly string[]> {
    const entries = await this.list(at)
    for (const { name } of entries.filter((entry) => entry.isSymbolicLink()))
      this.warn('leads-outside', join(at, name), 'it is a link and was not followed')
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  }

  /** The paths of all files below a folder, from there. Links count as files, also those to folders. */
  async *walk(at: string, maxDepth = MAX_DEPTH): AsyncGenerator<string, void, void> {
    for (const entry of await this.list(at)) {
      if (!entry.isDirectory()) yield entry.name
      else if (maxDepth === 0) this.warn('too-many', join(at, entry.name), 'it is too deep, and was left out')
      else for await (const below of this.walk(join(at, entry.name), maxDepth - 1)) yield `${entry.name}/${below}`
    }
  }

  /** The regular file at a path, through links that stay within the cache; otherwise undefined, with a warning. */
  async file(at: string, isOptional = false): Promise<CachedFile | undefined> {
    try {
      const path = await realpath(this.path(at))
      if (!path.startsWith(this.root + sep)) {
        this.warn('leads-outside', at, 'the link leads out of the cache and was not followed')
        return undefined
      }
      const stats = await lstat(path)
      if (stats.isFile()) return { path, stats }
      this.warn('not-regular', at, 'it is not a regular file and was left out')
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'ELOOP') this.warn('leads-outside', at, 'the link leads in circles')
      else if (errno !== 'ENOENT' && errno !== 'ENOTDIR') this.#unreadable(at, error)
      else if (!isOptional) this.warn('absent', at, 'the cache lists it, but it does not exist')
    }
    return undefined
  }

  /**
   * The path below the root that a link points to, after one step; undefined if it is not a link, or points outside.
   */
  async linkTarget(at: string): Promise<string | undefined> {
    try {
      const target = relative(this.root, resolve(dirname(this.path(at)), await readlink(this.path(at))))
      return target === '' || target.startsWith('..') ? undefined : target.split(sep).join('/')
    } catch {
      return undefined
    }
  }

  /** The text of a document; undefined, with a warning, when it is too large, not UTF-8 or unreadable. */
  async text(at: string, isOptional = false): Promise<string | undefined> {
    const file = await this.file(at, isOptional)
    if (file === undefined) return undefined
    try {
      await using handle = await openRegular(file.path)
      const { size } = await handle.stat()
      if (size > MAX_DOCUMENT_BYTES) {
        this.warn('bad-document', at, `it is larger than ${MAX_DOCUMENT_BYTES} bytes`)
        return undefined
      }
      const bytes = Buffer.alloc(size)
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, await readFully(handle, bytes, 0)))
    } catch (error) {
      if (error instanceof TypeError) this.warn('bad-document', at, 'it is not UTF-8 text')
      else this.#unreadable(at, error)
      return undefined
    }
  }

  /** A JSON object; otherwise undefined, with a warning. */
  async json(at: string, isOptional = false): Promise<ParsedObject | undefined> {
    const text = await this.text(at, isOptional)
    if (text === undefined) return undefined
    try {
      const value: unknown = JSON.parse(text)
      if (isObject(value)) return value
    } catch {
      // reported below, like JSON that is not an object.
    }
    this.warn('bad-document', at, 'it is not a JSON object')
    return undefined
  }

  #unreadable(at: string, error: unknown): void {
    this.warn('unreadable', at, `it cannot be read: ${(error as Error).message}`)
  }
}

/** Parsed JSON; fields must be checked before use. */
export type ParsedObject = Readonly<Record<string, unknown>>
export const isObject = (value: unknown): value is ParsedObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
export const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) ? (value as number) : undefined
export const listOf = (value: unknown): readonly ParsedObject[] => (Array.isArray(value) ? value.filter(isObject) : [])
