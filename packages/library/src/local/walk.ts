import type { BigIntStats } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { FileIdentity } from '@svc/cas'
import { LibraryError } from '@svc/internal-state'
import { type OpenFolder, sourceNotRegular, withParent } from './folder.ts'

const MAX_FILES = 100_000
const MAX_DEPTH = 64
const MAX_PATHS = 1_000
const MAX_PATH_BYTES = 4_096
const STATS_AT_ONCE = 32

export const fileIdentityOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FileIdentity => ({
  dev,
  ino,
  size,
  mtimeNs,
  ctimeNs
})

export const sameIdentity = (a: FileIdentity, b: FileIdentity): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs

export interface WalkedFile {
  /** Artifact-relative: the base name of a file's path, the path below a folder's. */
  readonly name: string
  /** Absolute. */
  readonly path: string
  readonly identity: FileIdentity
}

/**
 * Lists the files at `paths` without reading a byte (spec route.14, route.15). Anything other than regular files and
 * folders makes the whole request fail.
 * @throws LibraryError `E_SOURCE_NOT_REGULAR`; `E_INVALID` for a path that is relative, absent, unreadable or not
 *   normalized, for names that are not UTF-8 or occur twice, and beyond the limits
 */
export async function walk(paths: readonly string[]): Promise<WalkedFile[]> {
  if (paths.length > MAX_PATHS) throw bad(`"paths" has ${paths.length} entries, and the limit is ${MAX_PATHS}`)
  for (const path of paths) checkPath(path)
  const found = new Map<string, WalkedFile>()
  const add = (file: WalkedFile): void => {
    const other = found.get(file.name)
    if (other !== undefined) {
      throw bad(
        `${JSON.stringify(file.path)} and ${JSON.stringify(other.path)} would both be named ${JSON.stringify(file.name)}; name a common folder instead`
      )
    }
    if (found.size >= MAX_FILES) throw bad(`more than ${MAX_FILES} files; import a folder that holds the model alone`)
    found.set(file.name, file)
  }
  for (const path of paths) {
    try {
      await withParent(path, (parent, last) => addPath(parent, last, add))
    } catch (error) {
      throw explained(error, path)
    }
  }
  return [...found.values()]
}

async function addPath(parent: OpenFolder, last: string | undefined, add: (file: WalkedFile) => void): Promise<void> {
  if (last === undefined) return addFolder(parent, '', 0, add)
  const stat = await parent.lstat(last)
  const path = parent.pathOf(last)
  if (stat.isFile()) return add({ name: last, path, identity: fileIdentityOf(stat) })
  if (!stat.isDirectory()) throw sourceNotRegular(path, stat)
  const folder = await parent.folder(last)
  try {
    await addFolder(folder, '', 0, add)
  } finally {
    await folder.close()
  }
}

async function addFolder(
  folder: OpenFolder,
  prefix: string,
  depth: number,
  add: (file: WalkedFile) => void
): Promise<void> {
  if (depth > MAX_DEPTH) throw bad(`${JSON.stringify(folder.path)} is nested deeper than ${MAX_DEPTH} folders`)
  const listed = await folder.list()
  if (listed.length > MAX_FILES) throw bad(`${JSON.stringify(folder.path)} holds more than ${MAX_FILES} files`)
  const names = listed.map(({ name, isFile }) => ({ name: decodeName(name, folder.path), isFile }))
  // an entry that is not a file may be a mount point
  const lookAtFile = await folder.looks()
  for (let i = 0; i < names.length; i += STATS_AT_ONCE) {
    const batch = names.slice(i, i + STATS_AT_ONCE)
    const stats = await Promise.all(batch.map(({ name, isFile }) => (isFile ? lookAtFile(name) : folder.lstat(name))))
    for (const [at, { name }] of batch.entries()) {
      const stat = stats[at]!
      const path = folder.pathOf(name)
      if (stat.isFile()) add({ name: `${prefix}${name}`, path, identity: fileIdentityOf(stat) })
      else if (!stat.isDirectory()) throw sourceNotRegular(path, stat)
      else {
        const below = await folder.folder(name)
        try {
          await addFolder(below, `${prefix}${name}/`, depth + 1, add)
        } finally {
          await below.close()
        }
      }
    }
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeName(bytes: Buffer, folder: string): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new LibraryError(
      'E_INVALID',
      `a file name in ${JSON.stringify(folder)} is not UTF-8: ${JSON.stringify(bytes.toString('latin1'))}; rename it`,
      { cause }
    )
  }
}

/** @throws LibraryError `E_INVALID` for a path that is relative, too long or not normalized */
export function checkPath(path: string): void {
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
  if (!isAbsolute(path)) throw bad(`the path ${shown} is relative; write it from the root, as in "/home/me/model"`)
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw bad(`the path ${shown} is longer than ${MAX_PATH_BYTES} bytes`)
  if (path.includes('\0')) throw bad(`the path ${shown} contains a NUL character`)
  if (path.split('/').some((part) => part === '..' || part === '.')) {
    throw bad(`the path ${shown} has a "." or ".." segment; write the path that is meant`)
  }
}

/** The error that reports a failed look at a path to the caller. */
export function explained(error: unknown, path: string): unknown {
  if (error instanceof LibraryError) return error
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return bad(`${JSON.stringify(path)} does not exist, or changed while it was listed`, error)
    case 'ENOTDIR':
      return bad(`a part of ${JSON.stringify(path)} is not a folder`, error)
    case 'EACCES':
    case 'EPERM':
      return bad(`the daemon may not read ${JSON.stringify(path)}, or a folder below it`, error)
    case 'ENAMETOOLONG':
      return bad(`the path ${JSON.stringify(path.slice(0, 200))} is too long`, error)
    default:
      return error
  }
}

const bad = (message: string, cause?: unknown): LibraryError => new LibraryError('E_INVALID', message, { cause })
