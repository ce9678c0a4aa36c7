import { constants } from 'node:fs'
import { type FileHandle, open, stat, unlink } from 'node:fs/promises'
import { tryFlock } from '@svc/internal-files'
import { OciError } from './errors.ts'

/** O_NONBLOCK: opening a pipe of that name would wait for a writer otherwise. */
const PARTIAL = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Opens a file that an earlier attempt may have started, and locks it for this call.
 * @throws OciError `E_BAD_TARGET` when another call holds it, or when it is not a regular file; errors of the file
 *   system as they are
 */
export async function openPartial(path: string): Promise<FileHandle> {
  for (;;) {
    const handle = await open(path, PARTIAL, 0o644)
    try {
      const mine = await handle.stat()
      if (!mine.isFile()) throw new OciError('E_BAD_TARGET', `${path} is not a regular file`, { path })
      await lock(handle, path)
      // the previous owner may have published it in the meantime; then it is no longer ours to write
      const named = await stat(path).catch(() => undefined)
      const isNamed = named?.ino === mine.ino && named.dev === mine.dev
      if (isNamed && mine.nlink === 1) return handle
      // it was published, and its writer died before removing this name
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
