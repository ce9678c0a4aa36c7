/** The environment variables that the rule reads; pass `process.env`. */
export type SocketEnv = Readonly<Record<string, string | undefined>>

/** Facts from `lstat` about the folder of a socket. */
export interface SocketFolderFacts {
  readonly isFolder: boolean
  readonly uid: number
  /** Permission bits; other bits may be set as well. */
  readonly mode: number
}

/**
 * Why the folder of a default socket path cannot be trusted, to follow the folder's name; undefined if it can. Anybody
 * could have created it first in a temporary folder: it must be no link, the user's own, and closed to others (spec
 * http.3), for the daemon and its clients.
 */
export function socketFolderProblem({ isFolder, uid, mode }: SocketFolderFacts, user: number): string | undefined {
  if (!isFolder) return 'is not a plain folder'
  if (uid !== user) return `belongs to user ${uid}, not to ${user}`
  if ((mode & 0o077) !== 0) return `is open to others (mode ${(mode & 0o777).toString(8)})`
  return undefined
}

/** Where a daemon tells about itself (`runtime.json`, spec swarm.11): in the folder of its socket. */
export const runtimeFilePath = (socketPath: string): string =>
  `${socketPath.slice(0, socketPath.lastIndexOf('/') + 1)}runtime.json`

/** Whether the path comes from {@link defaultSocketPath}'s own rule: then its folder has to be checked. */
export const isDefaultSocket = (env: SocketEnv): boolean => env.SVC_SOCKET === undefined || env.SVC_SOCKET === ''

/**
 * Where the daemon listens and clients connect (spec http.3): `SVC_SOCKET` unchanged, else `svc-<uid>/svc.sock` under
 * `$XDG_RUNTIME_DIR`, else `$TMPDIR`, else `/tmp`. An empty variable counts as absent, and so does an `XDG_RUNTIME_DIR`
 * or `TMPDIR` that is not absolute (XDG Base Directory: relative paths are invalid).
 */
export function defaultSocketPath(env: SocketEnv, uid: number): string {
  if (env.SVC_SOCKET !== undefined && env.SVC_SOCKET !== '') return env.SVC_SOCKET
  const base = [env.XDG_RUNTIME_DIR, env.TMPDIR].find((folder) => folder?.startsWith('/')) ?? '/tmp'
  return `${base.replace(/\/+$/, '')}/svc-${uid}/svc.sock`
}
