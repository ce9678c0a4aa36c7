import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * The canonical path of a place: links in its parent folders are resolved. If these do not exist, the path as written.
 */
export async function placeOf(path: string): Promise<string> {
  const target = resolve(path)
  try {
    return join(await realpath(dirname(target)), basename(target))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return target
    throw error
  }
}

/** Identifies the disk of a folder; undefined if the folder does not exist. */
export async function deviceOf(folder: string): Promise<string | undefined> {
  try {
    return String((await stat(folder, { bigint: true })).dev)
  } catch {
    return undefined
  }
}
