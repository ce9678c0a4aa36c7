import { constants } from 'node:fs'
import type { FilePort } from '@svc/internal-files'

/** How a part file is created. */
export const NEW_PART = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** Closes and deletes a part file that is no longer needed. If that fails, the sweep at the next start deletes it. */
export function discardPart(port: FilePort, fd: number | undefined, part: string | undefined): void {
  closeQuietly(port, fd)
  try {
    if (part !== undefined) port.unlinkSync(part)
  } catch {
    // harmless: the part is not addressable, and the next start sweeps it.
  }
}

/** Closes a descriptor through which nothing was written that still matters. */
export function closeQuietly(port: FilePort, fd: number | undefined): void {
  try {
    if (fd !== undefined) port.closeSync(fd)
  } catch {
    // the system releases the descriptor in any case.
  }
}
