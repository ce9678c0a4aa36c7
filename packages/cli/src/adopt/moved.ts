import { lstat, readdir, readlink, realpath, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import type { FoundFile } from '@svc/view'
import { canonicalRef } from '../reference.ts'
import type { Session } from '../session.ts'
import type { Outcome } from './take-over.ts'

/**
 * Removes from other tools' caches the files that became blobs here: the imports are done, so the blobs are durable. A file goes only when
 * every model over there that has it came in whole, and when it is the one that was looked at. Small files that went into a tar, and
 * whatever was not imported, stay. Links that lead nowhere afterwards go with the files, and so do folders that are empty then.
 * @returns how many bytes were removed
 */
export async function removeMoved(session: Session, outcomes: readonly Outcome[]): Promise<number> {
  const keep = new Set<string>()
  const gone = new Map<string, Outcome>()
  for (const outcome of outcomes) {
    const { model, refs, damaged, error } = outcome
    const whole = error === undefined && damaged.length === 0 && refs.length > 0
    const stored = whole ? await storedFiles(session, refs) : []
    for (const file of model.found.files) {
      if (whole && stored.some((each) => isSame(each, file))) gone.set(file.path, outcome)
      else keep.add(file.path)
    }
  }
  let removedBytes = 0
  const roots = new Map<string, Set<string>>()
  for (const [path, { model, before }] of gone) {
    if (keep.has(path) || !(await isAsBefore(path, before.get(path)))) continue
    const sizeBytes = before.get(path)!.size
    try {
      await unlink(path)
    } catch (error) {
      session.note(`warning: ${path} stays: ${(error as Error).message}`)
      continue
    }
    removedBytes += sizeBytes
    roots.set(model.root, (roots.get(model.root) ?? new Set()).add(path))
  }
  for (const [root, removed] of roots) {
    await removeDangling(root, removed)
    for (const path of removed) await removeEmptyFolders(dirname(path), root)
  }
  return removedBytes
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

/** Names were normalized on the way; without a digest, name and size decide. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[._-]/g, '-')
const isSame = ({ name, digest, size }: Stored, file: FoundFile): boolean =>
  size === file.sizeBytes &&
  (file.expectedSha256 === undefined ? plain(name) === plain(file.name) : digest === file.expectedSha256)

async function isAsBefore(path: string, before: Awaited<ReturnType<typeof lstat>> | undefined): Promise<boolean> {
  const now = await lstat(path).catch(() => undefined)
  if (now === undefined || before === undefined || !now.isFile()) return false
  return now.ino === before.ino && now.dev === before.dev && now.size === before.size && now.mtimeMs === before.mtimeMs
}

/** Removes links below `root` that led to a removed file. */
async function removeDangling(root: string, removed: ReadonlySet<string>): Promise<void> {
  // links to links that led there go as well
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
  // a link that is looked at before the one that it leads to shows at the second look
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
