import { createClient, type View } from '@svc/client'
import { viewOf } from './runtime-view.ts'
import type { Session } from './session.ts'

/** How long the daemon keeps the view when it hears nothing more of us. */
const HOLD_SECONDS = 30
const RENEW_MS = 10_000

/** Runs `work` while the managed view of a model, and so the model itself, is kept from being removed. @throws what `work` throws */
export async function withHeldView<T>(session: Session, ref: string, work: (view: View) => Promise<T>): Promise<T> {
  const view = await viewOf(session, ref, { holdSeconds: HOLD_SECONDS })
  // one that Ctrl-C does not cut
  const client = createClient({ socketPath: session.client.socketPath })
  const hold = { ref: view.ref, holdSeconds: HOLD_SECONDS }
  // a daemon that is away now holds it again when it is back
  const renewal = setInterval(() => void client.makeView(hold).catch(() => undefined), RENEW_MS)
  try {
    return await work(view)
  } finally {
    clearInterval(renewal)
    client.close()
  }
}
