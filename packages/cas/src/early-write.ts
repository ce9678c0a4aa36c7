import { constants } from 'node:fs'
import { type FilePort, isOnFileSystem } from '@svc/internal-files'
import { closeQuietly } from './part-file.ts'

/** `f_type` of statfs(2) on Linux for the file systems on which {@link beginEarlyWrite} saves syncs: ext4 and XFS. */
const DELAYED_TYPES = new Set([0xef53, 0x58465342])

const TRUNCATE = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW

/** Whether the file system of a folder chooses blocks only when a file is written back. An unknown one does not. */
export const delaysBlocks = (port: FilePort, path: string): Promise<boolean> =>
  isOnFileSystem(port, path, DELAYED_TYPES)

/**
 * Makes the system write a new file to the disk once it is complete, instead of once it is synced.
 *
 * ext4 and XFS choose the blocks of new bytes late: at the sync, which then has to commit the journal for this file
 * alone. A thousand files took a thousand commits. Both choose them at once when a file is closed that was truncated to
 * nothing before, because programs that rewrite their files like that forget to sync. Here a descriptor that truncates the
 * empty file is closed when the bytes are written: the files of a batch then share one commit. Nothing depends on it:
 * each file is still synced, through the descriptor that it was written through, which sees every error.
 * @param part a part file that was just created
 * @returns to be called when all bytes are written, or the part is given up
 */
export function beginEarlyWrite(port: FilePort, part: string): () => void {
  try {
    const fd = port.openSync(part, TRUNCATE)
    return () => closeQuietly(port, fd)
  } catch {
    // without it the sync takes longer.
    return () => undefined
  }
}
