import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

/** A place as views know it: the links of its parent folders resolved. Where these are absent, as it was written. */
export async function placeOf(path: string): Promise<string> {
  const target = resolve(path)
  try {
    return join(await realpath(dirname(target)), basename(target))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return target
    throw error
  }
}

/** What tells one disk from another; undefined where the folder is away. */
export async function deviceOf(folder: string): Promise<string | undefined> {
  try {
    return String((await stat(folder, { bigint: true })).dev)
  } catch {
    return undefined
  }
}
