/** The errno code (`ENOENT`, …) of a system error. */
export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** For a `catch`: undefined for a name that is not there. @throws any other error */
export function ifAbsent(error: unknown): undefined {
  const errno = errnoOf(error)
  if (errno !== 'ENOENT' && errno !== 'ENOTDIR') throw error
}
