import type { Stats } from 'node:fs'
import { lstat, readdir, readlink, realpath, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import type { FoundFile } from '@svc/view'
import { canonicalRef } from '../reference.ts'
import type { Session } from '../session.ts'
import type { AdoptableModel } from './found-models.ts'
import type { Outcome } from './take-over.ts'

/**
 * Deletes from other tools' caches the files that were imported, model by model, so that the disk never has to hold all
 * of them twice. A finished import is durable. A file is deleted only when every model of the cache that uses it was
 * imported completely, and only if it is unchanged since the listing. Small files that became part of a tar, and files
 * that were not imported, stay. Dangling links and folders that become empty are deleted, too.
 */
export class MovedFiles {
  readonly #session: Session
  /** How many of the remaining models use a file, by its path. */
  readonly #needed = new Map<string, number>()
  readonly #removed = new Map<string, Set<string>>()
  removedBytes = 0

  constructor(session: Session, models: readonly AdoptableModel[]) {
    this.#session = session
    for (const { path } of models.flatMap(({ found }) => found.files))
      this.#needed.set(path, (this.#needed.get(path) ?? 0) + 1)
  }

  /** Call once per model, after its import was attempted. */
  async tried({ model, refs, damaged, error, before }: Outcome): Promise<void> {
    const isWhole = error === undefined && damaged.length === 0 && refs.length > 0
    const stored = isWhole ? await storedFiles(this.#session, refs) : []
    for (const file of new Map(model.found.files.map((each) => [each.path, each])).values()) {
      // the model still needs files of its that were not imported
      if (!stored.some((each) => isSame(each, file))) continue
      const needed = this.#needed.get(file.path)! - model.found.files.filter(({ path }) => path === file.path).length
      this.#needed.set(file.path, needed)
      if (needed === 0) await this.#remove(file.path, model.root, before.get(file.path))
    }
  }

  async #remove(path: string, root: string, before: Stats | undefined): Promise<void> {
    if (before === undefined || !(await isAsBefore(path, before))) return
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

interface Stored {
  readonly name: string
  readonly digest: string
  readonly size: number
}

async function storedFiles(session: Session, refs: readonly string[]): Promise<Stored[]> {
  const stored: Stored[] = []
  for (const ref of refs) {
    const { files, missing } = await session.client.open(await canonicalRef(session, ref))
    if (missing !== undefined) return []
    for (const { name, digest, size } of files) if (name !== undefined) stored.push({ name, digest, size })
  }
  return stored
}

/** Names may have been normalized during the import; without a digest, compare name and size. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[._-]/g, '-')
const isSame = ({ name, digest, size }: Stored, file: FoundFile): boolean =>
  size === file.sizeBytes &&
  (file.expectedSha256 === undefined ? plain(name) === plain(file.name) : digest === file.expectedSha256)

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
