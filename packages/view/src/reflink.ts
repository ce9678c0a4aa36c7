import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, lstat, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { errnoOf } from '@svc/internal-errors'
import { ioError } from './errors.ts'

const run = promisify(execFile)
/** Errors of a file system that cannot share blocks, or not between these two files. */
const NO_REFLINK = new Set(['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOSYS', 'ENOTTY', 'EBADF', 'ETXTBSY'])
/** `f_type` of APFS on macOS. */
const APFS = 0x1a

/**
 * Creates `to` as a file that shares its blocks with `from`, copy-on-write. Uses FORCE, since plain FICLONE silently
 * copies if the file system cannot share.
 * @returns false if sharing is impossible; then no file is left. @throws other errors of the file system as they are.
 */
export async function reflink(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch (error) {
    if (!NO_REFLINK.has(errnoOf(error) ?? '')) throw error
    // libuv removes its file, but does not report when it cannot: the copy would then find the name taken
    await rm(to, { force: true })
  }
  // Node refuses FORCE on macOS. Its cp clones, and copies only between volumes or off APFS: both are ruled out before.
  if (process.platform !== 'darwin') return false
  const [source, folder] = [await stat(from), await stat(join(to, '..'))]
  if (source.dev !== folder.dev || (await statfs(from)).type !== APFS) return false
  try {
    await run('/bin/cp', ['-c', from, to])
    return true
  } catch {
    await rm(to, { force: true })
    return false
  }
}

/** The cost of bringing a file into a folder. */
export interface TransferCost {
  /** `reflink`: the file system shares the blocks. */
  readonly by: 'reflink' | 'copy'
  /** Bytes used up on the folder's file system. */
  readonly sizeBytes: number
}

/**
 * The cost of a copy of the regular file `path` in the existing folder `folder`. Tries to share its blocks for a
 * moment, since device numbers do not tell whether that works (btrfs has several on one file system).
 * @throws ViewError `E_IO`, `E_NO_SPACE`.
 */
export async function transferCost(path: string, folder: string): Promise<TransferCost> {
  const probe = join(folder, `.svc-probe-${randomBytes(8).toString('hex')}`)
  try {
    const { size: sizeBytes } = await lstat(path)
    try {
      return (await reflink(path, probe)) ? { by: 'reflink', sizeBytes: 0 } : { by: 'copy', sizeBytes }
    } finally {
      await rm(probe, { force: true })
    }
  } catch (error) {
    throw ioError(error, 'test whether blocks can be shared', path)
  }
}
