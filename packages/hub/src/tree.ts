import { loopBudget } from '@svc/internal-concurrency'
import { isObject, own } from '@svc/internal-http'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { type HubError, refusedListing } from './errors.ts'
import { gitBlobSha1, lfsPointerText } from './git-blob-sha1.ts'

/** One file of a listing, pinned to a commit. Exactly one of `sha256` and `gitBlobSha1` identifies its bytes. */
export interface HubFile {
  /** In the hub's spelling. */
  readonly repoId: string
  /** 40 hex characters. */
  readonly commit: string
  /** Relative, `/`-separated, without `.`, `..` or empty segments. */
  readonly path: string
  readonly sizeBytes: number
  /** For files in large-file storage. */
  readonly sha256?: Sha256Digest
  /** 40 hex characters: git's name, for files that are kept in git itself. */
  readonly gitBlobSha1?: string
  /** 64 hex characters: the key to the file's chunks in the hub's storage. It proves nothing. */
  readonly xetHash?: string
}

const SHA1 = /^[0-9a-f]{40}$/
const SHA256 = /^[0-9a-f]{64}$/
/** What stands for a hash that is not told: nothing, asterisks, zeros. */
const UNTOLD = /^(?:\**|0+)$/
const MASK = /^\*+$/
/** The hub keeps no larger file in git itself. */
const MAX_GIT_BYTES = 10 << 20

/** Thrown for a file whose hash the hub does not tell, as for gated repositories. */
export class UntoldHash extends Error {
  override readonly name = 'UntoldHash'
  /** `isMasked`: the hub says so itself. */
  readonly details: { readonly path: string; readonly isMasked: boolean }

  constructor(path: string, hash: unknown) {
    super(`the hub does not tell the hash of ${shown(path)}`)
    this.details = { path, isMasked: typeof hash === 'string' && MASK.test(hash) }
  }
}

/** A file or a folder of a page. */
export type TreeEntry = Omit<HubFile, 'repoId' | 'commit'> | { readonly folder: string }

/** What is read of a page depends on. */
export interface PageAbout {
  readonly repoId: string
  readonly gated: boolean
  /** Of the listing. */
  readonly maxEntries: number
}

const tooMany = (repoId: string, maxEntries: number): HubError =>
  refusedListing(repoId, `it has more than ${maxEntries} entries`)

/**
 * The entries of one page, checked as far as that needs no other page.
 * @throws HubError `E_NOT_IMPORTABLE`, reason `bad-listing`. @throws UntoldHash
 */
export function treeEntries(page: unknown, about: PageAbout): TreeEntry[] {
  if (!Array.isArray(page)) throw refusedListing(about.repoId, 'one of its pages is not a list')
  if (page.length > about.maxEntries) throw tooMany(about.repoId, about.maxEntries)
  const check = new EntryCheck(about)
  return (page as unknown[]).map((entry) => check.entry(entry))
}

/**
 * Collects the entries of a tree, page by page, and refuses the whole listing at the first invalid entry: nothing is
 * returned before {@link ListingCheck.finish}. In turns of the event loop. Invariant: every path in `#files` passed all
 * checks except those against later entries (duplicates, a file that is also a folder).
 */
export class ListingCheck {
  readonly #of: Pick<HubFile, 'repoId' | 'commit'>
  readonly #maxEntries: number
  readonly #files: HubFile[] = []
  readonly #names = new Set<string>()
  readonly #folders = new Set<string>()
  #entries = 0
  #totalBytes = 0

  constructor({ repoId, commit }: Pick<HubFile, 'repoId' | 'commit'>, maxEntries: number) {
    this.#of = { repoId, commit }
    this.#maxEntries = maxEntries
  }

  /** @throws HubError `E_NOT_IMPORTABLE`, reason `bad-listing` */
  async add(page: readonly TreeEntry[]): Promise<void> {
    this.#entries += page.length
    if (this.#entries > this.#maxEntries) throw tooMany(this.#of.repoId, this.#maxEntries)
    for (const entry of page) {
      this.#add(entry)
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
    }
  }

  async finish(): Promise<readonly HubFile[]> {
    for (const folder of this.#folders) this.#requireNoFile(folder)
    // keeps not every folder of every path: a path of a thousand characters can have five hundred
    const looked = new Set<string>()
    for (const path of [...this.#names, ...this.#folders]) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')))
      if (looked.has(parent)) continue
      looked.add(parent)
      for (let end = parent.length; end > 0; end = parent.lastIndexOf('/', end - 1))
        this.#requireNoFile(parent.slice(0, end))
    }
    return this.#files
  }

  #requireNoFile(folder: string): void {
    if (this.#names.has(folder)) throw this.#refuse(`${JSON.stringify(folder)} is both a file and a folder`)
  }

  #add(entry: TreeEntry): void {
    if ('folder' in entry) return void this.#folders.add(entry.folder.normalize('NFC'))
    const name = entry.path.normalize('NFC')
    if (this.#names.has(name)) throw this.#refuse(`${shown(entry.path)} is listed twice`)
    this.#names.add(name)
    this.#totalBytes += entry.sizeBytes
    if (!Number.isSafeInteger(this.#totalBytes)) throw this.#refuse('its sizes add up to more than can be counted')
    this.#files.push({ ...this.#of, ...entry })
  }

  #refuse(what: string): HubError {
    return refusedListing(this.#of.repoId, what)
  }
}

class EntryCheck {
  readonly #about: PageAbout

  constructor(about: PageAbout) {
    this.#about = about
  }

  entry(entry: unknown): TreeEntry {
    if (!isObject(entry)) throw this.#refuse('an entry is not an object')
    const path = own(entry, 'path')
    const flaw = pathFlaw(path)
    if (flaw !== undefined) throw this.#refuse(`the path ${shown(path)} ${flaw}`)
    const type = own(entry, 'type')
    if (type === 'directory') return { folder: path as string }
    if (type !== 'file') throw this.#refuse(`${shown(path)} is neither a file nor a directory`)
    return this.#file(path as string, entry)
  }

  #file(path: string, entry: Readonly<Record<string, unknown>>): TreeEntry {
    const sizeBytes = own(entry, 'size')
    if (!isSize(sizeBytes)) throw this.#refuse(`the size of ${shown(path)} is not a whole number of bytes`)
    const lfs = own(entry, 'lfs') ?? undefined
    const base = { path, sizeBytes }
    if (lfs === undefined) {
      // the hash would be that of the pointer
      if (this.#about.gated && sizeBytes > MAX_GIT_BYTES) throw new UntoldHash(path, lfs)
      return { ...base, gitBlobSha1: this.#oid(path, entry) }
    }
    if (!isObject(lfs)) throw this.#refuse(`the lfs part of ${shown(path)} is not an object`)
    const lfsOid = own(lfs, 'oid')
    if (isUntold(lfsOid)) throw new UntoldHash(path, lfsOid)
    const oid = this.#oid(path, entry)
    if (typeof lfsOid !== 'string' || !SHA256.test(lfsOid))
      throw this.#refuse(`the lfs oid of ${shown(path)} is not a SHA-256 in hex`)
    if (own(lfs, 'size') !== sizeBytes) throw this.#refuse(`${shown(path)} has two different sizes`)
    const pointerSize = own(lfs, 'pointerSize')
    if (pointerSize !== undefined && !isSize(pointerSize))
      throw this.#refuse(`the pointer size of ${shown(path)} is not a whole number of bytes`)
    // pointers with extension lines are longer, and cannot be reconstructed from the listing.
    const pointer = Buffer.from(lfsPointerText(lfsOid, sizeBytes))
    if (pointer.length === pointerSize && gitBlobSha1(pointer) !== oid)
      throw this.#refuse(`the SHA-256 and size of ${shown(path)} do not belong to its oid`)
    return { ...base, sha256: digestFromHex(lfsOid), ...xetHashIn(entry) }
  }

  #oid(path: string, entry: Readonly<Record<string, unknown>>): string {
    const oid = own(entry, 'oid')
    if (isUntold(oid)) throw new UntoldHash(path, oid)
    if (typeof oid === 'string' && SHA1.test(oid)) return oid
    throw this.#refuse(`the oid of ${shown(path)} is not a SHA-1 in hex`)
  }

  #refuse(what: string): HubError {
    return refusedListing(this.#about.repoId, what)
  }
}

/** An invalid one is left out: nothing depends on it. */
function xetHashIn(entry: Readonly<Record<string, unknown>>): Pick<HubFile, 'xetHash'> {
  const xetHash = own(entry, 'xetHash')
  return typeof xetHash === 'string' && SHA256.test(xetHash) && !isUntold(xetHash) ? { xetHash } : {}
}

const isUntold = (hash: unknown): boolean =>
  hash === undefined || hash === null || (typeof hash === 'string' && UNTOLD.test(hash))

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.length > 120 ? `${value.slice(0, 120)}…` : value) : 'of an entry'

/** What is wrong with a path of a listing (spec rec.22), or undefined. */
function pathFlaw(path: unknown): string | undefined {
  if (typeof path !== 'string') return 'is not text'
  if (!path.isWellFormed()) return 'is not well-formed text'
  if (path.length > 1024 || Buffer.byteLength(path) > 1024) return 'is longer than 1,024 bytes'
  if (/[\0-\x1f\x7f\\]/.test(path)) return 'contains a control character or a backslash'
  for (const segment of path.split('/')) {
    if (segment === '') return 'is absolute or has an empty segment'
    if (segment === '.' || segment === '..') return 'has a "." or ".." segment'
    if (segment.toLowerCase() === '.git') return 'leads into ".git"'
  }
  return undefined
}
