import { constants } from 'node:fs'
import type { FilePort } from '@svc/internal-files'

/** `f_type` of statfs(2) on Linux for the file systems on which {@link EarlyWrite} saves syncs: ext4 and XFS. */
const DELAYED_TYPES = new Set([0xef53, 0x58465342])

const TRUNCATE = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW

/** Whether the file system of a folder chooses blocks only when a file is written back. An unknown one does not. */
export async function delaysBlocks(port: FilePort, path: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  try {
    return DELAYED_TYPES.has((await port.statfs(path)).type >>> 0)
  } catch {
    return false
  }
}

/**
 * Has a new file's bytes on their way to the disk when it is complete, instead of when it is synced.
 *
 * ext4 and XFS choose the blocks of new bytes late: at the sync, which then has to commit the journal for this file
 * alone. A thousand files took a thousand commits. Both choose them at once when a file is closed that was truncated to
 * nothing before, because programs that rewrite their files like that forget to sync. Here a descriptor that truncates the
 * empty file is closed when the bytes are written: the files of a batch then share one commit. Nothing depends on it:
 * each file is synced as it would be without, through the descriptor that it was written through, which has seen all errors.
 */
export class EarlyWrite {
  readonly #port: FilePort
  #fd: number | undefined

  /** For a part file that was just created. */
  constructor(port: FilePort, part: string) {
    this.#port = port
    try {
      this.#fd = port.openSync(part, TRUNCATE)
    } catch {
      // Ignored: without it the sync takes longer.
    }
  }

  /** All bytes are written, or the part is given up. */
  close(): void {
    try {
      if (this.#fd !== undefined) this.#port.closeSync(this.#fd)
    } catch {
      // Ignored: nothing was written through it. What the system fails to write is reported to the sync.
    }
  }
}
