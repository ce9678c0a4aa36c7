import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createClient } from '@svc/client'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { jsonText, printable } from './printable.ts'
import { installedAgentSocket } from './service/agent.ts'
import type { Terminal } from './terminal.ts'

/** Thrown by the parser at `--version`: the answer needs the daemon, and the parser is synchronous. */
export class VersionAsked extends Error {
  override readonly name = 'VersionAsked'
}

const TIMEOUT_MS = 2000

/**
 * The version of the running daemon, from its `runtime.json` and its status; undefined if none is running. Never starts
 * a daemon.
 */
export async function runningVersion(socketPath: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    // With a service manager listening on the socket, connecting would start the daemon. So check the file next to the
    // socket first.
    readFileSync(join(dirname(socketPath), 'runtime.json'))
  } catch {
    return undefined
  }
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
  'svc and the running daemon are of different versions: restart the daemon (svc service install does so)'

/** `svc --version`: prints this program's version and the running daemon's, with a warning when they differ. */
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
