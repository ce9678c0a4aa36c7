import { follow } from '../follow.ts'
import { formatBytes } from '../format.ts'
import { changeEach, refsOf, shortRef } from '../models/reference.ts'
import type { Session } from '../session.ts'

export const pin = (session: Session, texts: readonly string[]): Promise<void> => setPinned(session, texts, true)

export const unpin = (session: Session, texts: readonly string[]): Promise<void> => setPinned(session, texts, false)

/** `ns/name` stands for all its quants. */
async function setPinned(session: Session, texts: readonly string[], pinned: boolean): Promise<void> {
  const models = await changeEach(session, texts, (ref) => session.client.setPinned({ ref, pinned }))
  if (session.json) session.document({ models })
}

/** `svc evict REF… [--force]`: frees the weights of models; `ns/name` stands for all its quants. */
export async function evict(
  session: Session,
  texts: readonly string[],
  { force = false }: { readonly force?: boolean }
): Promise<void> {
  for (const ref of await refsOf(session, texts)) {
    const { result } = await follow(session, await session.client.evict({ ref, force }))
    if (session.json) continue
    session.print(shortRef(ref))
    session.note(`freed ${formatBytes(result?.bytes ?? 0)}; svc pull ${shortRef(ref)} fetches it again`)
  }
}
