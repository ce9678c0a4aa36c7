/** What the rule reads; pass `process.env`. */
export type SocketEnv = Readonly<Record<string, string | undefined>>

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
