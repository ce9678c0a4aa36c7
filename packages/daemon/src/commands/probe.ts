import { readFileSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { type Clock, systemClock } from '@svc/internal-clock'
import { METRICS_PATH, READY_PATH } from '../api/own-routes.ts'
import { DaemonError } from '../errors.ts'
import { runtimePathFor } from '../socket/claim.ts'

/** The questions that `svcd` can ask the daemon at a socket. */
export type Question = 'metrics' | 'health' | 'ready'

/** Orchestrators ask again; a daemon that takes longer hangs. */
const TIMEOUT_MS = 10_000
/** The same limit that clients use (spec add.30). */
const STALE_MS = 10_000
const MAX_ANSWER_BYTES = 16 << 20
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

function ask(socketPath: string, path: string, clock: Clock): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path, headers: { Host: 'svcd' }, agent: false }, (response) => {
      const chunks: Buffer[] = []
      let sizeBytes = 0
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        sizeBytes += chunk.length
        if (sizeBytes > MAX_ANSWER_BYTES) call.destroy(new Error('its answer is too long'))
      })
      response.on('error', reject)
      response.on('end', () => {
        timer.cancel()
        const text = Buffer.concat(chunks).toString('utf8')
        if (response.statusCode === 200) resolve(text)
        else
          reject(new UnfitError(text.trim().slice(0, MAX_REASON) || `it answered with status ${response.statusCode}`))
      })
    })
    const timer = clock.after(TIMEOUT_MS, () => call.destroy(new Error('it took too long')))
    call.on('error', (error) => {
      timer.cancel()
      reject(error)
    })
    call.end()
  })
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
