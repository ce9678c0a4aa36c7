import { constants } from 'node:fs'
import { type FileHandle, open, stat, unlink } from 'node:fs/promises'
import { tryFlock } from '@svc/internal-files'
import { OciError } from './errors.ts'

/** Of files that anybody may read as far as the umask lets them, and of those for their owner alone. */
export const ANY_FILE = 0o644
export const OWN_FILE = 0o600
/** Of folders. */
export const OWN_FOLDER = 0o700

/** O_NONBLOCK: opening a pipe of that name would wait for a writer otherwise. */
const PARTIAL = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Opens a file that an earlier attempt may have started, and locks it for this call. It gets `mode` before anything is written to it.
 * @throws OciError `E_BAD_TARGET` when another call holds it, or when it is not a regular file; errors of the file
 *   system as they are
 */
export async function openPartial(path: string, mode: number): Promise<FileHandle> {
  for (;;) {
    const handle = await open(path, PARTIAL, mode)
    try {
      const mine = await handle.stat()
      if (!mine.isFile()) throw new OciError('E_BAD_TARGET', `${path} is not a regular file`, { path })
      await lock(handle, path)
      // the previous owner may have finished it in the meantime; then it is no longer ours to write
      const named = await stat(path).catch(() => undefined)
      const isNamed = named?.ino === mine.ino && named.dev === mine.dev
      if (isNamed && mine.nlink === 1) {
        if (mode === OWN_FILE) await handle.chmod(mode)
        return handle
      }
      // it was finished, and its writer died before removing this name
      if (isNamed) await unlink(path)
    } catch (error) {
      await handle.close()
      throw error
    }
    await handle.close()
  }
}

/**
 * Locks a folder for this call until the handle is closed.
 * @throws OciError `E_BAD_TARGET` when another call holds it; errors of the file system as they are
 */
export async function claimFolder(path: string): Promise<FileHandle> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await lock(handle, path)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Where locking is impossible (no `flock` program, a network share), two simultaneous calls are not detected. */
async function lock({ fd }: FileHandle, path: string): Promise<void> {
  if ((await tryFlock(fd).catch(() => undefined)) !== false) return
  throw new OciError('E_BAD_TARGET', `another export is writing ${path}; try again when it has finished`, {
    path
  })
}
