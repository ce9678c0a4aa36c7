import { CliError } from '../errors.ts'
import { follow } from '../follow.ts'
import { formatBytes } from '../format.ts'
import { changeEach, refsOf, shortRef } from '../models/reference.ts'
import { canAsk, saysYes } from '../questions/question.ts'
import type { Session } from '../session.ts'

/** `svc pin REF…` */
export const keep = (session: Session, texts: readonly string[]): Promise<void> => setKept(session, texts, true)

/** `svc unpin REF…` */
export const unkeep = (session: Session, texts: readonly string[]): Promise<void> => setKept(session, texts, false)

/** `ns/name` stands for all its quants. */
async function setKept(session: Session, texts: readonly string[], pinned: boolean): Promise<void> {
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
    const name = shortRef(ref)
    const isLast = force && (await session.client.why(ref)).copies === undefined
    if (isLast) {
      const what = `${name} is known nowhere else: nothing can bring it back`
      session.note(what)
      if (canAsk(session) && !(await saysYes(session, 'Evict it all the same? ')))
        throw new CliError('usage', `${what}; it was not evicted`)
    }
    const { result } = await follow(session, await session.client.evict({ ref, force }))
    if (session.json) continue
    session.print(name)
    const freed = `freed ${formatBytes(result?.bytes ?? 0)}`
    session.note(isLast ? `${freed}; import it again to have it` : `${freed}; svc pull ${name} fetches it again`)
  }
}
