import { constants } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tryFlock } from './flock.ts'
import { type CopyInput, type CopyOptions, copyVerified } from './handle.ts'

/** O_NONBLOCK: otherwise opening a pipe of that name would wait for its other end. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK
const PARTIAL = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK
const OWN_FILE = 0o600

/** The `code` of the error for something that is not a regular file. */
export const NOT_REGULAR = 'ERR_NOT_REGULAR'

/**
 * Opens a regular file for reading; refuses links unless it is to `follow` them.
 * @throws an error of code {@link NOT_REGULAR}; the system's error, `ELOOP` for a link
 */
export const openRegular = (path: string, { follow = false } = {}): Promise<FileHandle> =>
  requireRegular(path, open(path, follow ? READ : READ | constants.O_NOFOLLOW))

/** Opens a regular file of exactly this size for reading, through links; undefined for anything else of that name. @throws the system's error */
export async function openSized(path: string, sizeBytes: number): Promise<FileHandle | undefined> {
  const handle = await open(path, READ)
  const stats = await handle.stat()
  if (stats.isFile() && stats.size === sizeBytes) return handle
  await handle.close()
  return undefined
}

/** Opens a file that an earlier attempt may have left, or makes it with `mode`. @throws as {@link openRegular} */
export const openPartial = (path: string, mode: number): Promise<FileHandle> =>
  requireRegular(path, open(path, PARTIAL, mode))

async function requireRegular(path: string, opening: Promise<FileHandle>): Promise<FileHandle> {
  const handle = await opening
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw Object.assign(new Error(`${path} is not a regular file`), { code: NOT_REGULAR })
}

/**
 * Writes a source to a file that an earlier attempt may have left, as {@link copyVerified} does, and syncs it. Mode 0600 is set before
 * anything is written.
 * @returns false when the source's bytes do not match the digest; the file is gone then. @throws as {@link openRegular}
 */
export async function writePartial(
  path: string,
  mode: number,
  source: CopyInput,
  options?: CopyOptions
): Promise<boolean> {
  await using handle = await openPartial(path, mode)
  if (mode === OWN_FILE) await handle.chmod(mode)
  const { size } = await handle.stat()
  if (!(await copyVerified(source, handle, 0, size, options))) {
    await unlink(path).catch(() => undefined)
    return false
  }
  await handle.truncate(source.sizeBytes)
  await handle.sync()
  return true
}

/**
 * Locks an open file or folder for this process until it is closed; false when another process holds it. Where there are no locks (no
 * `flock` program, a network share), two at once go unnoticed.
 */
export const tryClaim = async ({ fd }: FileHandle): Promise<boolean> =>
  (await tryFlock(fd).catch(() => undefined)) !== false

/** Opens a folder and locks it, as {@link tryClaim} does; undefined when another process holds it. @throws the system's error */
export async function claimFolder(path: string): Promise<FileHandle | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  if (await tryClaim(handle)) return handle
  await handle.close()
  return undefined
}
