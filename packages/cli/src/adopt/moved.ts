import type { Stats } from 'node:fs'
import { lstat, readdir, readlink, realpath, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import type { OpenResult } from '@svc/client'
import type { FoundFile } from '@svc/view'
import { digestOfFile } from '../models/file-digest.ts'
import { canonicalRef } from '../models/reference.ts'
import type { Session } from '../session.ts'
import type { FoundModels } from './found-models.ts'
import type { AdoptOutcome, TakenMember } from './take-over.ts'

const UNLIKE = 'it is not what was imported'

/**
 * Deletes the imported files from other tools' caches, model by model, so that the disk never holds all of them twice.
 * Deletes a file only if every model of the cache that uses it is complete here, its bytes in the store were read again
 * and are right, the file itself is unchanged, and the references, checked last, still lead to what was imported. Keeps
 * files that became part of a tar or were not imported. Also deletes dangling links and empty folders.
 */
export class MovedFiles {
  readonly #session: Session
  /** How many of the remaining models use a file, by its path. */
  readonly #needed = new Map<string, number>()
  readonly #removed = new Map<string, Set<string>>()
  removedBytes = 0

  constructor(session: Session, { models, usedElsewhere }: FoundModels) {
    this.#session = session
    const used = [...models.flatMap(({ found }) => found.files.map(({ path }) => path)), ...usedElsewhere]
    for (const path of used) this.#needed.set(path, (this.#needed.get(path) ?? 0) + 1)
  }

  /** Call once per model, after its import was attempted. */
  async tried({ model, members, damaged, error, before }: AdoptOutcome): Promise<void> {
    const isWhole = error === undefined && damaged.length === 0 && members.length > 0
    const stored = isWhole ? await this.#soundBlobs(members) : new Set<string>()
    if (stored.size === 0) return
    for (const file of new Map(model.found.files.map((each) => [each.path, each])).values()) {
      const stats = before.get(file.path)
      // the model still needs its files that were not imported
      if (stats === undefined || !(await isAmong(stored, file, stats))) continue
      const needed = this.#needed.get(file.path)! - model.found.files.filter(({ path }) => path === file.path).length
      this.#needed.set(file.path, needed)
      if (needed > 0) continue
      // while the file was read, another command may have replaced and collected what was imported
      if (!(await this.#areHere(members))) return
      await this.#remove(file.path, model.root, stats)
    }
  }

  /** The digests of a model's blobs, after reading their bytes; none if anything differs from what was imported. */
  async #soundBlobs(members: readonly TakenMember[]): Promise<ReadonlySet<string>> {
    const { client } = this.#session
    const digests = new Set<string>()
    for (const member of members) {
      try {
        const target = await canonicalRef(this.#session, member.ref)
        const job = await client.waitJob(await client.verify({ target }), { signal: this.#session.signal })
        if (job.state !== 'done') throw new Error(job.error?.message ?? UNLIKE)
        for (const { digest } of (await this.#opened(member)).files) digests.add(digest)
      } catch (error) {
        this.#keep(member, error)
        return new Set()
      }
    }
    return digests
  }

  /** Whether the references of a model still lead to what was imported, and all of it. */
  async #areHere(members: readonly TakenMember[]): Promise<boolean> {
    for (const member of members) {
      try {
        await this.#opened(member)
      } catch (error) {
        this.#keep(member, error)
        return false
      }
    }
    return true
  }

  async #opened({ ref, manifest }: TakenMember): Promise<OpenResult> {
    const opened = await this.#session.client.open(await canonicalRef(this.#session, ref))
    if (opened.missing !== undefined || opened.manifestDigest !== manifest) throw new Error(UNLIKE)
    return opened
  }

  #keep({ ref }: TakenMember, error: unknown): void {
    this.#session.signal.throwIfAborted()
    this.#session.note(`warning: the originals of ${ref} stay: ${(error as Error).message}`)
  }

  async #remove(path: string, root: string, before: Stats): Promise<void> {
    if (!(await isAsBefore(path, before))) return
    try {
      await unlink(path)
    } catch (error) {
      this.#session.note(`warning: ${path} stays: ${(error as Error).message}`)
      return
    }
    this.removedBytes += before.size
    this.#removed.set(root, (this.#removed.get(root) ?? new Set()).add(path))
  }

  /** Deletes dangling links and empty folders. */
  async clearUp(): Promise<void> {
    for (const [root, removed] of this.#removed) {
      await removeDangling(root, removed)
      for (const path of removed) await removeEmptyFolders(dirname(path), root)
    }
    this.#removed.clear()
  }
}

/** Whether the store has a file's bytes. Where the cache has no digest of it, the file is read. */
async function isAmong(stored: ReadonlySet<string>, file: FoundFile, before: Stats): Promise<boolean> {
  if (file.expectedSha256 !== undefined) return stored.has(file.expectedSha256)
  if (before.size !== file.sizeBytes || !(await isAsBefore(file.path, before))) return false
  const digest = await digestOfFile(file.path).catch(() => undefined)
  return digest !== undefined && stored.has(digest)
}

async function isAsBefore(path: string, before: Stats): Promise<boolean> {
  const now = await lstat(path).catch(() => undefined)
  if (now === undefined || !now.isFile()) return false
  return now.ino === before.ino && now.dev === before.dev && now.size === before.size && now.mtimeMs === before.mtimeMs
}

/** Deletes links below `root` that pointed to a deleted file. */
async function removeDangling(root: string, removed: ReadonlySet<string>): Promise<void> {
  // includes links to such links
  const lost = new Set(removed)
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) await visit(path)
      else if (entry.isSymbolicLink() && (await leadsTo(path, lost))) {
        await unlink(path).catch(() => undefined)
        lost.add(path)
        await removeEmptyFolders(folder, root)
      }
    }
  }
  // a link visited before the link that it points to is found in the second pass
  await visit(root)
  await visit(root)
}

async function leadsTo(path: string, removed: ReadonlySet<string>): Promise<boolean> {
  if (await stat(path).catch(() => undefined)) return false
  const target = resolve(dirname(path), await readlink(path))
  const folder = await realpath(dirname(target)).catch(() => undefined)
  if (folder === undefined) return false
  return removed.has(folder + target.slice(target.lastIndexOf(sep)))
}

async function removeEmptyFolders(folder: string, root: string): Promise<void> {
  for (let at = folder; at.startsWith(root + sep); at = dirname(at)) {
    try {
      await rmdir(at)
    } catch {
      return
    }
  }
}
