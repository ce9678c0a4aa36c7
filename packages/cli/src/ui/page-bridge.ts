import { ClientError } from '@svc/client'
import { Bridge, type BridgeBehind, type BridgeOptions, isBrowserHere, type ToldError } from '@svc/internal-bridge'
import { CliError } from '../errors.ts'
import { reportOf } from '../report.ts'
import type { Session } from '../session.ts'
import { findRoute } from './routes.ts'

/** Serves the page of a session. @throws the error of `listen`, e.g. EADDRINUSE */
export function startBridge(own: Session, options: BridgeOptions): Promise<Bridge> {
  // remarks are for a terminal
  const session: Session = { ...own, note: () => undefined }
  const behind: BridgeBehind = {
    client: session.client,
    clock: session.clock,
    isBrowserHere: isBrowserHere(session.terminal.env),
    find(method, path) {
      const { route, params } = findRoute(method, path)
      return (asked) => route({ session, params, ...asked })
    },
    explain
  }
  return Bridge.start(behind, options)
}

const CLIENT_STATUS: Readonly<Record<string, number>> = {
  E_UNREACHABLE: 503,
  E_UNSAFE_SOCKET: 503,
  E_NO_ANSWER: 504,
  E_BAD_RESPONSE: 502
}

/** With the advice of the command line. */
function explain(error: unknown): ToldError {
  const { exit, ...told } = reportOf(error)
  if (error instanceof ClientError) return { ...told, status: CLIENT_STATUS[error.code] ?? error.status ?? 502 }
  return { ...told, status: exit === 'usage' ? 400 : exit === 'notFound' ? 404 : error instanceof CliError ? 502 : 500 }
}
