/** What the rule reads; pass `process.env`. */
export type SocketEnv = Readonly<Record<string, string | undefined>>

/** What `lstat` says of the folder that a socket lies in. */
export interface SocketFolderFacts {
  readonly isFolder: boolean
  readonly uid: number
  /** Permission bits; others may be set. */
  readonly mode: number
}

/**
 * What is wrong with the folder of a default socket path, in words that follow the folder's name; undefined when it can be trusted.
 * The folder may lie in a temporary one, where anybody could have made it first: it must be a real folder (no link), the user's own, and
 * closed to all others (spec http.3). The daemon and its clients judge alike.
 */
export function socketFolderProblem({ isFolder, uid, mode }: SocketFolderFacts, user: number): string | undefined {
  if (!isFolder) return 'is no plain folder'
  if (uid !== user) return `belongs to user ${uid}, not to ${user}`
  if ((mode & 0o077) !== 0) return `is open to others (mode ${(mode & 0o777).toString(8)})`
  return undefined
}

/** True where the path comes from {@link defaultSocketPath}'s rule, not from somebody who named it: its folder has to be checked. */
export const isDefaultSocket = (env: SocketEnv): boolean => env.SVC_SOCKET === undefined || env.SVC_SOCKET === ''

/**
 * Where the daemon listens and clients connect (spec http.3): `SVC_SOCKET` as it stands, else
 * `svc-<uid>/svc.sock` under `$XDG_RUNTIME_DIR`, else `$TMPDIR`, else `/tmp`. An empty variable counts as absent; so does an
 * `XDG_RUNTIME_DIR` or `TMPDIR` that is not absolute (XDG Base Directory: relative paths are invalid).
 */
export function defaultSocketPath(env: SocketEnv, uid: number): string {
  if (env.SVC_SOCKET !== undefined && env.SVC_SOCKET !== '') return env.SVC_SOCKET
  const base = [env.XDG_RUNTIME_DIR, env.TMPDIR].find((folder) => folder?.startsWith('/')) ?? '/tmp'
  return `${base.replace(/\/+$/, '')}/svc-${uid}/svc.sock`
}
