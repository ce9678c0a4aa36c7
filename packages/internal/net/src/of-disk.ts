import { getSystemErrorMap } from 'node:util'

/** Calls that are made to files, and to sockets under other names; `read` and `close` are made to both. */
const CALLS: ReadonlySet<string> = new Set(['open', 'read', 'close', 'fstat', 'stat', 'lstat', 'realpath', 'scandir'])
/** What only sockets give. */
const OF_SOCKETS = /^E(?:CONN|NOTCONN|TIMEDOUT|PIPE|NET|HOST|ADDR|PROTO)/
/** Errors are wrapped where they cross a thread or a library: more than that is a loop. */
const MAX_CAUSES = 8

/**
 * The error of the disk that is behind a failed request: the HTTP client, or a thread, whose code the disk did not give, or
 * for which there was no descriptor. The other side of the network has no part in it.
 */
export function diskErrorOf(error: unknown): NodeJS.ErrnoException | undefined {
  let at = error as NodeJS.ErrnoException | null | undefined
  for (let n = 0; n < MAX_CAUSES && typeof at === 'object' && at !== null; n++) {
    const { code, syscall } = at
    const unloaded = unloadedCode(at)
    if (unloaded !== undefined) return unloaded
    if (typeof code === 'string' && CALLS.has(syscall ?? '') && !OF_SOCKETS.test(code)) return at
    at = at.cause as NodeJS.ErrnoException | undefined
  }
  return undefined
}

/**
 * The error of the disk behind code that could not be loaded. Node says of a package's description that cannot be read that it
 * is invalid, and has the system's error only in words, behind the last colon.
 */
export function unloadedCode(error: unknown): NodeJS.ErrnoException | undefined {
  const { code, message } = (error ?? {}) as NodeJS.ErrnoException
  if (code !== 'ERR_INVALID_PACKAGE_CONFIG' || typeof message !== 'string') return undefined
  const words = message.slice(message.lastIndexOf(': ') + 2).replace(/\.$/, '')
  const unnamed = /^Unknown system error (-\d{1,5})$/.exec(words)
  const known = [...getSystemErrorMap()].find(([, [, spoken]]) => spoken === words)
  const [errno, name] =
    unnamed !== null ? [Number(unnamed[1]), words] : known !== undefined ? [known[0], known[1][0]] : []
  if (errno === undefined || name === undefined) return undefined
  return Object.assign(new Error(`${name}: ${words}, read`, { cause: error }), { errno, code: name, syscall: 'read' })
}
