import { readFileSync, statSync } from 'node:fs'
import { createConnection } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import type { Session } from './session.ts'

/** Longest wait for a start; then the command continues, and reports what it finds. */
const TIMEOUT_MS = 60_000
/** A starting daemon rewrites its file twice a second: an older one is a leftover, even if its process id is in use again. */
const STALE_MS = 10_000
const LOOK_EVERY_MS = 100
const TELL_EVERY_MS = 2_000

const STARTING = 'the daemon is starting …'

/**
 * While the daemon of the session's socket is starting, from the moment its process exists, waits and says so. If a
 * daemon is running, this reads one file and nothing else.
 */
export async function awaitStart({ client, clock, signal, note }: Session): Promise<void> {
  const begun = clock.monotonic()
  let told: { readonly text: string; readonly atMs: number } | undefined
  for (;;) {
    const text = await startingText(client.socketPath, clock.now())
    const now = clock.monotonic()
    if (text === undefined || now - begun > TIMEOUT_MS) return
    if (told === undefined || (text !== told.text && now - told.atMs > TELL_EVERY_MS)) {
      note(text)
      told = { text, atMs: now }
    }
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
}

/** Undefined when no daemon is starting there. */
async function startingText(socketPath: string, nowMs: number): Promise<string | undefined> {
  const said = runtimeFacts(socketPath, nowMs)
  if (said?.state === 'running') return undefined
  if (said?.state === 'starting') {
    const { artifactsDone, artifactsTotal } = said.verifying ?? {}
    if (artifactsDone === undefined || artifactsTotal === undefined || artifactsTotal === 0) return STARTING
    return `the daemon is starting (verifying ${artifactsDone} of ${artifactsTotal} models) …`
  }
  if (await isAnswered(socketPath)) return undefined
  const { isDaemonProcessStarting } = await import('./starting-process.ts')
  return isDaemonProcessStarting(socketPath) ? STARTING : undefined
}

interface StartState {
  readonly state: 'starting' | 'running'
  readonly verifying?: { readonly artifactsDone?: number; readonly artifactsTotal?: number }
}

/** What a daemon writes of itself beside its socket (spec add.30); undefined if it writes nothing, or is gone. */
function runtimeFacts(socketPath: string, nowMs: number): StartState | undefined {
  try {
    const path = join(dirname(socketPath), 'runtime.json')
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
