import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createClient } from '@svc/client'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { jsonText, printable } from './printable.ts'
import { installedAgentSocket } from './service/agent.ts'
import type { Terminal } from './terminal.ts'

/** Thrown by the parser at `--version`: the answer needs the daemon, and the parser does not wait. */
export class VersionAsked extends Error {
  override readonly name = 'VersionAsked'
}

const PATIENCE_MS = 2000

/** The daemon that answers, by its `runtime.json` and its status; undefined where none runs. It is never started by asking. */
export async function runningVersion(socketPath: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    // Where a service manager listens for it, a connection would start the daemon: so the file beside the socket comes first.
    readFileSync(join(dirname(socketPath), 'runtime.json'))
  } catch {
    return undefined
  }
  const client = createClient({ socketPath, signal, timeoutMs: PATIENCE_MS })
  try {
    return (await client.status()).version
  } catch {
    return undefined
  } finally {
    client.close()
  }
}

/** What to do when the two differ. */
export const DIFFER =
  'svc and the running daemon are of different versions: restart the daemon (svc service install does so)'

/** `svc --version`: this program's version, the running daemon's, and a warning when they differ. */
export async function tellVersions(
  version: string,
  socket: string | undefined,
  terminal: Terminal,
  signal: AbortSignal,
  json: boolean
): Promise<ExitCode> {
  const { stdout, stderr, env } = terminal
  const { socketPath } = createClient({ socketPath: socket ?? installedAgentSocket(env), env })
  const daemon = await runningVersion(socketPath, signal)
  if (json) {
    stdout.write(
      `${jsonText({ svc: version, svcd: daemon ?? null, same: daemon === undefined ? null : daemon === version })}\n`
    )
    return EXIT.ok
  }
  stdout.write(`svc ${version}\n`)
  if (daemon === undefined) stderr.write(`svcd: none is running at ${printable(socketPath)}\n`)
  else stdout.write(`svcd ${printable(daemon)}\n`)
  if (daemon !== undefined && daemon !== version) stderr.write(`svc: ${DIFFER}\n`)
  return EXIT.ok
}
