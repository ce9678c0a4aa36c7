import { createClient, type View } from '@svc/client'
import type { Session } from '../session.ts'
import { madeView } from './runtime-view.ts'

/** How long the daemon keeps the view after our last renewal. */
const HOLD_SECONDS = 30
const RENEW_MS = 10_000

/** As {@link withHeldView}, for several models at once. */
export async function withHeldViews<T>(
  session: Session,
  refs: readonly string[],
  work: (views: readonly View[]) => Promise<T>
): Promise<T> {
  const [first, ...others] = refs
  if (first === undefined) return work([])
  return withHeldView(session, first, (view) => withHeldViews(session, others, (views) => work([view, ...views])))
}

/** Runs `work` while the managed view of a model, and with it the model, cannot be removed. @throws errors of `work` */
export async function withHeldView<T>(session: Session, ref: string, work: (view: View) => Promise<T>): Promise<T> {
  const view = await madeView(session, ref, { holdSeconds: HOLD_SECONDS })
  // a client of its own, because Ctrl-C aborts the session's
  const client = createClient({ socketPath: session.client.socketPath })
  const hold = { ref: view.ref, holdSeconds: HOLD_SECONDS }
  // if the daemon is away now, a later renewal restores the hold
  const renewal = session.clock.every(RENEW_MS, () => void client.makeView(hold).catch(() => undefined))
  try {
    return await work(view)
  } finally {
    renewal.cancel()
    client.close()
  }
}
