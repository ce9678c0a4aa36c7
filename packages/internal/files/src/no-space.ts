import { constants } from 'node:os'

/**
 * True where a system error says that the file system, or the user's quota on it, is full (`ENOSPC`, `EDQUOT`). Node has no name for the
 * second: its `code` is then "Unknown system error -122", and the number differs between systems.
 */
export function isNoSpace(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT' || errno === -constants.errno.EDQUOT
}
