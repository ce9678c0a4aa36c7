import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { KeyedLock } from '@svc/internal-concurrency'
import { errnoOf } from '@svc/internal-errors'
import { ioError, ViewError } from './errors.ts'
import { isWorkName } from './owner.ts'

/**
 * The place of a view, with all links of its parent folders resolved; undefined when its parent folder is absent.
 * @throws ViewError `E_BAD_TARGET` for a relative path, the root folder, or a name that is used while views are made.
 */
export async function checkedTarget(path: string): Promise<string | undefined> {
  const bad = (why: string): ViewError => new ViewError('E_BAD_TARGET', `${JSON.stringify(path)} ${why}`, { path })
  if (!isAbsolute(path)) throw bad('is not an absolute path')
  if (path.includes('\0')) throw bad('holds a zero character')
  const target = resolve(path)
  if (dirname(target) === target) throw bad('is the root folder')
  if (isWorkName(basename(target))) throw bad('is a name that is reserved for making views')
  try {
    return join(await realpath(dirname(target)), basename(target))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw ioError(error, 'look for the folder of a view', path)
  }
}

const places = new KeyedLock()

/** Serializes operations on one place within this process. Between processes, renames decide. */
export const inTurn = <T>(place: string, work: () => Promise<T>): Promise<T> => places.run(place, undefined, work)
