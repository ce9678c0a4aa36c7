import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Session } from './session.ts'

/** A start is given this long; then the command goes on, and says what it finds. */
const PATIENCE_MS = 60_000
/** A starting daemon rewrites its file twice a second, so an older file is a leftover, even if its process id is in use again. */
const STALE_MS = 10_000
const LOOK_EVERY_MS = 100
const TELL_EVERY_MS = 2_000

/** Waits while the daemon of the session's socket says that it is starting (spec add.30), and says so. Reads a file, and no more, where none is. */
export async function awaitStart({ client, signal, note }: Session): Promise<void> {
  const begun = performance.now()
  let told: { readonly text: string; readonly atMs: number } | undefined
  for (;;) {
    const text = startingText(client.socketPath)
    const now = performance.now()
    if (text === undefined || now - begun > PATIENCE_MS) return
    if (told === undefined || (text !== told.text && now - told.atMs > TELL_EVERY_MS)) {
      note(text)
      told = { text, atMs: now }
    }
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

/** undefined when no daemon is starting there. */
function startingText(socketPath: string): string | undefined {
  try {
    const path = join(dirname(socketPath), 'runtime.json')
    const { state, pid, socket, verifying } = JSON.parse(readFileSync(path, 'utf8'))
    if (state !== 'starting' || socket !== resolve(socketPath) || !Number.isSafeInteger(pid) || pid <= 0)
      return undefined
    if (Date.now() - statSync(path).mtimeMs > STALE_MS) return undefined
    // throws for a process that is gone
    process.kill(pid, 0)
    const { artifactsDone, artifactsTotal } = verifying ?? {}
    if (!(artifactsTotal > 0)) return 'the daemon is starting …'
    return `the daemon is starting (verifying ${artifactsDone} of ${artifactsTotal} artifacts) …`
  } catch {
    return undefined
  }
}
