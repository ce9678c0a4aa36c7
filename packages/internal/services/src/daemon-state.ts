import { readFileSync, statSync } from 'node:fs'
import { createConnection } from 'node:net'
import { resolve } from 'node:path'
import { runtimeFilePath } from '@svc/client/protocol'

/** A starting daemon rewrites its file twice a second: an older one is a leftover, even if its process id is in use again. */
const STALE_MS = 10_000

const STARTING = 'the daemon is starting …'

type DaemonState =
  | { readonly state: 'answers' | 'absent'; readonly text?: undefined }
  /** With what is said of it. */
  | { readonly state: 'starting'; readonly text: string }

/** Whether a daemon listens on the socket, is about to, or neither. */
export async function daemonState(socketPath: string, nowMs: number): Promise<DaemonState> {
  const said = runtimeFacts(socketPath, nowMs)
  if (said?.state === 'starting') {
    const { artifactsDone, artifactsTotal } = said.verifying ?? {}
    if (artifactsDone === undefined || artifactsTotal === undefined || artifactsTotal === 0)
      return { state: 'starting', text: STARTING }
    return {
      state: 'starting',
      text: `the daemon is starting (verifying ${artifactsDone} of ${artifactsTotal} models) …`
    }
  }
  // a file of one that was killed may name a process that has its number now
  if (await isAnswered(socketPath)) return { state: 'answers' }
  const { isDaemonProcessStarting } = await import('./daemon-process.ts')
  return isDaemonProcessStarting(socketPath) ? { state: 'starting', text: STARTING } : { state: 'absent' }
}

interface StartState {
  readonly state: 'starting' | 'running'
  readonly verifying?: { readonly artifactsDone?: number; readonly artifactsTotal?: number }
}

/** What a daemon writes of itself beside its socket (spec add.30); undefined if it writes nothing, or is gone. */
export function runtimeFacts(socketPath: string, nowMs: number): StartState | undefined {
  try {
    const path = runtimeFilePath(socketPath)
    const facts = JSON.parse(readFileSync(path, 'utf8'))
    const { state, pid, socket } = facts
    if (socket !== resolve(socketPath) || !Number.isSafeInteger(pid) || pid <= 0) return undefined
    if (state !== 'starting' && state !== 'running') return undefined
    if (state === 'starting' && nowMs - statSync(path).mtimeMs > STALE_MS) return undefined
    // throws if the process does not exist
    process.kill(pid, 0)
    return facts
  } catch {
    return undefined
  }
}

/** Whether a daemon listens there; true if unknown, as the request then finds out. */
const isAnswered = (path: string): Promise<boolean> =>
  new Promise((settle) => {
    const socket = createConnection({ path })
    socket.once('connect', () => {
      socket.destroy()
      settle(true)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => settle(code !== 'ENOENT' && code !== 'ECONNREFUSED'))
  })
