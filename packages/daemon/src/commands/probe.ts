import { readFileSync, statSync } from 'node:fs'
import { type Clock, systemClock } from '@svc/internal-clock'
import { METRICS_PATH, READY_PATH } from '../api/own-routes.ts'
import { DaemonError } from '../errors.ts'
import { runtimePathFor } from '../socket/claim.ts'
import { askSocket } from './ask-socket.ts'

/** The questions that `svcd` can ask the daemon at a socket. */
export type Question = 'metrics' | 'health' | 'ready'

/** The same limit that clients use (spec add.30). */
const STALE_MS = 10_000
const MAX_REASON = 500

/** The daemon answers, and says why it cannot do its work. */
class UnfitError extends Error {}

/**
 * `svcd metrics`, `health` and `ready`: asks the daemon at a socket, and returns the text to print. A daemon is healthy
 * if it responds and has its store, or reports that it is starting; it is ready if it responds and has its store. @throws DaemonError when it is not
 */
export async function askCommand(question: Question, socketPath: string, clock = systemClock): Promise<string> {
  try {
    const text = await ask(socketPath, question === 'metrics' ? METRICS_PATH : READY_PATH, clock)
    return question === 'metrics' ? text : 'ok\n'
  } catch (cause) {
    if (question === 'health' && isStarting(socketPath, clock)) return 'starting\n'
    const why = (cause as Error).message
    if (cause instanceof UnfitError)
      throw new DaemonError('E_INTERNAL', `the daemon at ${socketPath}: ${why}`, { cause })
    throw new DaemonError('E_SOURCE_UNAVAILABLE', `no daemon answers at ${socketPath}: ${why}`, { cause })
  }
}

async function ask(socketPath: string, path: string, clock: Clock): Promise<string> {
  const { status, text } = await askSocket(socketPath, path, { clock })
  if (status === 200) return text
  throw new UnfitError(text.trim().slice(0, MAX_REASON) || `it answered with status ${status}`)
}

function isStarting(socketPath: string, clock: Clock): boolean {
  try {
    const path = runtimePathFor(socketPath)
    const { state, pid } = JSON.parse(readFileSync(path, 'utf8')) as { state?: unknown; pid?: unknown }
    if (state !== 'starting' || !Number.isSafeInteger(pid) || clock.now() - statSync(path).mtimeMs > STALE_MS)
      return false
    // throws if the process does not exist
    return process.kill(pid as number, 0)
  } catch {
    return false
  }
}
