import { type FileHandle, stat, unlink } from 'node:fs/promises'
import { openPartial, tryClaim } from '@svc/internal-files'
import { OciError } from './errors.ts'

/** The modes of files that anybody may read, within the umask, and of those for their owner alone. */
export const ANY_FILE = 0o644
export const OWN_FILE = 0o600
/** The mode of a folder for its owner alone. */
export const OWN_FOLDER = 0o700

/**
 * Opens a file that an earlier attempt may have started, and locks it for this call. It gets `mode` before anything is
 * written to it.
 * @throws OciError `E_BAD_TARGET` when another call holds it; errors of the file system as they are
 */
export async function claimPartial(path: string, mode: number): Promise<FileHandle> {
  for (;;) {
    const handle = await openPartial(path, mode)
    try {
      if (!(await tryClaim(handle))) throw held(path)
      const mine = await handle.stat()
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

export const held = (path: string): OciError =>
  new OciError('E_BAD_TARGET', `another export is writing ${path}; try again when it has finished`, { path })
