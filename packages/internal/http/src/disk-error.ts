import { getSystemErrorMap } from 'node:util'

/** System calls on files. `read` and `close` also serve sockets; the others have different names there. */
const CALLS: ReadonlySet<string> = new Set(['open', 'read', 'close', 'fstat', 'stat', 'lstat', 'realpath', 'scandir'])
/** Codes that only sockets give. */
const OF_SOCKETS = /^E(?:CONN|NOTCONN|TIMEDOUT|PIPE|NET|HOST|ADDR|PROTO)/
/** Errors are wrapped where they cross a thread or a library; a longer chain is a loop. */
const MAX_CAUSES = 8

/**
 * The disk error behind a failed request: the code of the HTTP client or of a thread could not be loaded, or there was no
 * descriptor for it. The other side of the network has no part in it.
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
 * The disk error behind code that could not be loaded. Node calls a package.json that it cannot read invalid, and gives the
 * system's error only in words, after the last colon.
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
