import { lstat, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errnoOf, ioError, ViewError } from './errors.ts'
import { readMarker } from './marker.ts'
import { isAbandoned, isWorkName, releaseName, takeName } from './owner.ts'
import { syncFolder, writeNewFile } from './written-file.ts'

// A view is made in a folder beside its place, `.svc-view-<who makes it>/`, that holds:
//   target   the name of the place, written first
//   new/     the view, renamed to its place when it is whole and synced
//   old/     the earlier view, from the moment that the new one is about to take its place
//   gone/    a view that is being removed
// A place is empty between two renames of a replacement, and only there. Whoever comes next, after a kill there, puts the
// new view in its place (it was whole), or the old one.

const EXISTS = new Set(['ENOTEMPTY', 'EEXIST', 'ENOTDIR'])
const TRIES = 5

/** A view that is being made. */
export interface Draft {
  /** Where its files go. */
  readonly folder: string
  /** Puts it in its place; the earlier view there, if any, is gone when this resolves. @throws ViewError `E_NOT_A_VIEW` */
  publish(): Promise<void>
  /** Takes away whatever is left; does not throw. */
  dispose(): Promise<void>
}

async function openWork(target: string): Promise<{ readonly name: string; readonly path: string }> {
  const name = takeName()
  const path = join(dirname(target), name)
  try {
    await mkdir(path, { mode: 0o700 })
    await writeNewFile(join(path, 'target'), [Buffer.from(basename(target))])
  } catch (error) {
    await closeWork(name, path)
    throw error
  }
  return { name, path }
}

async function closeWork(name: string, path: string): Promise<void> {
  // What cannot be removed now is found by recoverViews: the name is released, so it counts as abandoned.
  await rm(path, { recursive: true, force: true }).catch(() => undefined)
  releaseName(name)
}

/** @throws errors of the file system as they are */
export async function openDraft(target: string): Promise<Draft> {
  const { name, path } = await openWork(target)
  const folder = join(path, 'new')
  try {
    await mkdir(folder)
  } catch (error) {
    await closeWork(name, path)
    throw error
  }
  let isOldSafe = true
  return {
    folder,
    publish: () =>
      publish(path, target, () => {
        isOldSafe = false
      }),
    dispose: async () => {
      if (isOldSafe) await closeWork(name, path)
      else releaseName(name)
    }
  }
}

/** @param onStuck called when the earlier view could neither be replaced nor put back: recoverViews tries again later */
async function publish(work: string, target: string, onStuck: () => void): Promise<void> {
  const old = join(work, 'old')
  for (let tried = 1; ; tried++) {
    if (tried > 1) await rm(old, { recursive: true, force: true })
    const moved = (await readMarker(target)) !== undefined && (await tryRename(target, old))
    if (moved) await syncFolder(work)
    try {
      await rename(join(work, 'new'), target)
      break
    } catch (error) {
      const isTaken = EXISTS.has(errnoOf(error) ?? '')
      if (moved) await rename(old, target).catch(() => isTaken || onStuck())
      // Somebody made a view there at the same time: it is replaced like any earlier one.
      if (!isTaken || tried === TRIES) throw error
    }
  }
  await syncFolder(dirname(target))
}

/** @returns false when there is nothing to rename. */
async function tryRename(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
}

/** Takes a view off its place in one step, then deletes it; links in it are deleted, never followed. */
export async function discardView(target: string): Promise<boolean> {
  const { name, path } = await openWork(target)
  try {
    if (!(await tryRename(target, join(path, 'gone')))) return false
    await syncFolder(dirname(target))
    await rm(path, { recursive: true, force: true })
    return true
  } finally {
    await closeWork(name, path)
  }
}

/**
 * Clears up in `folder` after makers that were killed: a view that was between two renames is put in its place, other
 * remains are deleted. Folders in which somebody works are left alone. Views call it by themselves for the folder
 * that they are made in; a daemon calls it when it starts.
 * @returns how many remains there were. @throws ViewError `E_IO`.
 */
export async function recoverViews(folder: string): Promise<number> {
  let count = 0
  try {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !isWorkName(entry.name)) continue
      const work = join(folder, entry.name)
      try {
        if (!isAbandoned(entry.name, work)) continue
        await restore(work, folder)
        await rm(work, { recursive: true, force: true })
        count++
      } catch (error) {
        // Another process clears up at the same time.
        if (errnoOf(error) !== 'ENOENT') throw error
      }
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return count
    throw ioError(error, 'clear up after an earlier run', folder)
  }
  return count
}

async function kindOf(path: string): Promise<'folder' | 'file' | undefined> {
  try {
    const stats = await lstat(path)
    return stats.isDirectory() ? 'folder' : stats.isFile() ? 'file' : undefined
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

async function restore(work: string, folder: string): Promise<void> {
  if ((await kindOf(join(work, 'old'))) !== 'folder') return
  // The first name given, and gone only when all was done but the clearing up.
  const name = (await kindOf(join(work, 'target'))) === 'file' ? await readFile(join(work, 'target'), 'utf8') : ''
  if (name === '' || name === '.' || name === '..' || name.includes('/')) return
  const target = join(folder, name)
  if (await lstat(target).catch(() => undefined)) return
  const whole = await readMarker(join(work, 'new')).catch((error: unknown) => {
    if (error instanceof ViewError && error.code === 'E_NOT_A_VIEW') return undefined
    throw error
  })
  await rename(join(work, whole === undefined ? 'old' : 'new'), target)
  await syncFolder(folder)
}
