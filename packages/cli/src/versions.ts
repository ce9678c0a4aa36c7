import { existsSync } from 'node:fs'
import { createClient } from '@svc/client'
import { runtimeFilePath } from '@svc/client/protocol'
import type { Session } from './session.ts'

/** Thrown by the parser at `--version`: the answer needs the daemon, and the parser is synchronous. */
export class VersionAsked extends Error {
  override readonly name = 'VersionAsked'
}

const TIMEOUT_MS = 2000

/** The version of the running daemon; undefined if none is running. Never starts a daemon. */
export async function runningVersion(socketPath: string, signal: AbortSignal): Promise<string | undefined> {
  // with a service manager listening on the socket, connecting would start the daemon. So check the file next to the
  // socket first.
  if (!existsSync(runtimeFilePath(socketPath))) return undefined
  const client = createClient({ socketPath, signal, timeoutMs: TIMEOUT_MS })
  try {
    return (await client.status()).version
  } catch {
    return undefined
  } finally {
    client.close()
  }
}

/** Advice when the versions differ. */
export const DIFFER =
  'svc and the running daemon have different versions: restart the daemon (svc service install does so)'

/** `svc --version`: prints this program's version and the running daemon's, with a warning when they differ. */
export async function tellVersions(session: Session): Promise<void> {
  const { client, signal, version } = session
  const daemon = await runningVersion(client.socketPath, signal)
  if (session.json)
    return session.document({
      svc: version,
      svcd: daemon ?? null,
      same: daemon === undefined ? null : daemon === version
    })
  session.print(`svc ${version}`)
  if (daemon === undefined) return session.note(`svcd: none is running at ${client.socketPath}`)
  session.print(`svcd ${daemon}`)
  if (daemon !== version) session.note(`svc: ${DIFFER}`)
}
