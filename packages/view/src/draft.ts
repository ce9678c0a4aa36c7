import { lstat, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { ioError, ViewError } from './errors.ts'
import { readMarker, readReplaceable } from './marker.ts'
import { isAbandoned, isOurs, isWorkName, releaseName, takeName } from './owner.ts'
import { syncFolderIfPossible, writeNewFile } from './written-file.ts'

// A view is built in a folder next to its final place, `.svc-view-<maker>/`, which holds:
//   target   the name of the place, written first
//   new/     the view, renamed to its place when it is complete and synced
//   old/     the earlier view, from just before the new one takes its place
//   gone/    a view that is being removed
// The place is empty only between the two renames of a replacement. After a kill there, the next process puts the new
// view in its place (it was complete), or else the old one.

const EXISTS = new Set(['ENOTEMPTY', 'EEXIST', 'ENOTDIR'])
const TRIES = 5

/** A view under construction. */
export interface Draft {
  readonly folder: string
  /**
   * Moves it to its place; an earlier view there has been deleted when this resolves. @throws ViewError `E_NOT_A_VIEW`
   */
  moveIntoPlace(): Promise<void>
  /** Deletes whatever is left; never throws. */
  dispose(): Promise<void>
}

/** @param folder made in it, unless empty */
async function openWork(target: string, folder = ''): Promise<{ readonly name: string; readonly path: string }> {
  const name = takeName()
  const path = join(dirname(target), name)
  try {
    await mkdir(path, { mode: 0o700 })
    await writeNewFile(join(path, 'target'), [Buffer.from(basename(target))])
    if (folder !== '') await mkdir(join(path, folder))
  } catch (error) {
    await closeWork(name, path)
    throw error
  }
  return { name, path }
}

async function closeWork(name: string, path: string): Promise<void> {
  // if this fails, recoverViews finds the folder later: its name is released, so it counts as abandoned.
  await rm(path, { recursive: true, force: true }).catch(() => undefined)
  releaseName(name)
}

/** @throws errors of the file system as they are */
export async function openDraft(target: string): Promise<Draft> {
  const { name, path } = await openWork(target, 'new')
  let isOldSafe = true
  return {
    folder: join(path, 'new'),
    moveIntoPlace: () =>
      replaceByRename(path, target, () => {
        isOldSafe = false
      }),
    dispose: async () => {
      if (isOldSafe) await closeWork(name, path)
      else releaseName(name)
    }
  }
}

/** @param onStuck called when the earlier view could neither be replaced nor put back: recoverViews will try again */
async function replaceByRename(work: string, target: string, onStuck: () => void): Promise<void> {
  const old = join(work, 'old')
  for (let tried = 1; ; tried++) {
    if (tried > 1) await rm(old, { recursive: true, force: true })
    const moved = (await readReplaceable(target)) !== undefined && (await tryRename(target, old))
    if (moved) await syncFolderIfPossible(work)
    try {
      await rename(join(work, 'new'), target)
      break
    } catch (error) {
      const isTaken = EXISTS.has(errnoOf(error) ?? '')
      if (moved) await rename(old, target).catch(() => isTaken || onStuck())
      // another process made a view there at the same time: it is replaced like any earlier one.
      if (!isTaken || tried === TRIES) throw error
    }
  }
  await syncFolderIfPossible(dirname(target))
}

/** @returns false when `from` does not exist. */
async function tryRename(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
}

/** Renames a view away from its place, then deletes it; links in it are deleted, never followed. */
export async function discardView(target: string): Promise<boolean> {
  const { name, path } = await openWork(target)
  try {
    if (!(await tryRename(target, join(path, 'gone')))) return false
    await syncFolderIfPossible(dirname(target))
    await rm(path, { recursive: true, force: true })
    return true
  } finally {
    await closeWork(name, path)
  }
}

/**
 * Cleans up in `folder` after processes that were killed while making views: a view between two renames is put in its
 * place, other leftovers are deleted. Folders of running processes and of other users are left alone. Making a view
 * calls this for its parent folder; a daemon calls it when it starts.
 * @returns the number of leftovers. @throws ViewError `E_IO`.
 */
export async function recoverViews(folder: string): Promise<number> {
  let count = 0
  try {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !isWorkName(entry.name)) continue
      const work = join(folder, entry.name)
      try {
        if (!(await isOurs(work)) || !isAbandoned(entry.name, work)) continue
        await restore(work, folder)
        await rm(work, { recursive: true, force: true })
        count++
      } catch (error) {
        // another process is cleaning up at the same time.
        if (errnoOf(error) !== 'ENOENT') throw error
      }
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return count
    throw ioError(error, 'clean up after an earlier run', folder)
  }
  return count
}

async function restore(work: string, folder: string): Promise<void> {
  const look = (name: string) => lstat(join(work, name)).catch(ifAbsent)
  if (!(await look('old'))?.isDirectory()) return
  // `target` is written first and deleted last.
  const name = (await look('target'))?.isFile() === true ? await readFile(join(work, 'target'), 'utf8') : ''
  if (name === '' || name === '.' || name === '..' || name.includes('/')) return
  const target = join(folder, name)
  if (await lstat(target).catch(() => undefined)) return
  const whole = await readMarker(join(work, 'new')).catch((error: unknown) => {
    if (error instanceof ViewError && error.code === 'E_NOT_A_VIEW') return undefined
    throw error
  })
  await rename(join(work, whole === undefined ? 'old' : 'new'), target)
  await syncFolderIfPossible(folder)
}
