import { daemonState } from '@svc/internal-services'
import type { Session } from './session.ts'

/** Longest wait for a start; then the command continues, and reports what it finds. */
const TIMEOUT_MS = 60_000
const LOOK_EVERY_MS = 100
const TELL_EVERY_MS = 2_000

/**
 * While the daemon of the session's socket is starting, from the moment its process exists, waits and says so. If there
 * is none, starts it, unless the socket was named or `SVC_AUTOSTART` is `0`. @throws CliError when it does not start
 */
export async function awaitDaemon(session: Session): Promise<void> {
  const state = await awaitStart(session)
  if (state !== 'absent' || session.isSocketNamed || session.terminal.env.SVC_AUTOSTART === '0') return
  const said = await (await import('./service/background.ts')).startDaemon(session)
  if (said !== undefined) session.note(said)
}

/** While the daemon of the session's socket is starting, waits and says so. @returns its state, `starting` where that takes too long */
export async function awaitStart({ client, clock, signal, note }: Session) {
  const begun = clock.monotonic()
  let told: { readonly text: string; readonly atMs: number } | undefined
  for (;;) {
    const { state, text } = await daemonState(client.socketPath, clock.now())
    const now = clock.monotonic()
    if (state !== 'starting' || now - begun > TIMEOUT_MS) return state
    if (told === undefined || (text !== told.text && now - told.atMs > TELL_EVERY_MS)) {
      note(text)
      told = { text, atMs: now }
    }
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
}
