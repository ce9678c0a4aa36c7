import { constants } from 'node:os'

/**
 * True if a system error means that the file system, or the user's quota on it, is full (`ENOSPC`, `EDQUOT`). Node has
 * no name for the second: its `code` is "Unknown system error -122", with a number that differs between systems.
 */
export function isNoSpace(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as NodeJS.ErrnoException
  const quota = -constants.errno.EDQUOT
  // only the code crosses threads
  return code === 'ENOSPC' || code === 'EDQUOT' || errno === quota || code === `Unknown system error ${quota}`
}

/** The name of a system error, for a message: also of those that Node does not name; undefined for other errors. */
export function errnoName(error: unknown): string | undefined {
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  if (isNoSpace(error)) return code === 'ENOSPC' ? code : 'EDQUOT'
  return typeof code === 'string' && /^E[A-Z0-9]{2,20}$/.test(code) ? code : undefined
}
