import { systemClock } from '@svc/internal-clock'
import { runtimeFacts } from '@svc/internal-services'
import { METRICS_PATH, READY_PATH } from '../api/own-routes.ts'
import { DaemonError } from '../errors.ts'
import { askSocket } from './ask-socket.ts'

export type Question = 'metrics' | 'health' | 'ready'

const MAX_REASON = 500

/**
 * `svcd metrics`, `health` and `ready`: what the daemon at a socket answers, as text to print. It is ready if it responds
 * and has its store; it is healthy also while it starts. @throws DaemonError when it is not
 */
export async function askCommand(question: Question, socketPath: string, clock = systemClock): Promise<string> {
  const path = question === 'metrics' ? METRICS_PATH : READY_PATH
  const answer = await askSocket(socketPath, path, { clock }).catch((error: Error) => error)
  const isAnswered = !(answer instanceof Error)
  if (isAnswered && answer.status === 200) return question === 'metrics' ? answer.text : 'ok\n'
  if (question === 'health' && runtimeFacts(socketPath, clock.now())?.state === 'starting') return 'starting\n'
  if (!isAnswered)
    throw new DaemonError('E_SOURCE_UNAVAILABLE', `no daemon answers at ${socketPath}: ${answer.message}`, {
      cause: answer
    })
  const why = answer.text.trim().slice(0, MAX_REASON) || `it answered with status ${answer.status}`
  throw new DaemonError('E_INTERNAL', `the daemon at ${socketPath}: ${why}`)
}
