import { usage } from './errors.ts'
import { asking, canAsk } from './question.ts'
import type { Session } from './session.ts'

/**
 * Before the user's own models are imported, settles whether they are shared. On a terminal it asks once, and the
 * daemon stores the answer in its configuration. Does nothing if the swarm shares nothing. @returns whether to mention
 * sharing after the import, because nobody could be asked
 */
export async function settleOwnModels(session: Session): Promise<boolean> {
  const { swarm, seedLocal } = await session.client.status()
  if (seedLocal !== undefined || !swarm.enabled || !swarm.seed) return false
  if (!canAsk(session)) return true
  session.note('The daemon shares the models it holds over BitTorrent. Your own models too?')
  const shared = await asking(session, async (ask) => {
    let question = 'Share own models? (yes, or no to keep them private; asked once) '
    for (;;) {
      const answer = await ask(question)
      if (answer === undefined || answer === '')
        throw usage(
          'nothing was imported: the question about sharing was not answered',
          'with --private it is not asked'
        )
      const said = ANSWERS[answer.toLowerCase()]
      if (said !== undefined) return said
      question = 'Please answer yes or no: '
    }
  })
  const { file } = await session.client.decideSeedLocal({ seedLocal: shared })
  const kept = shared ? 'own models are shared' : 'own models stay private; svc private REF --off shares one of them'
  session.note(file === undefined ? kept : `${kept} (seed_local = ${shared} in ${file})`)
  return false
}

/** Printed after each import of own models until the user has decided. */
export const tellShared = (session: Session, as: string): void =>
  session.note(
    `others can fetch it from here, from the next start of the daemon on. To keep it to yourself: svc private ${as}, or import with --private; all models of your own: seed_local = false below [swarm] in the configuration`
  )

const ANSWERS: Readonly<Record<string, boolean>> = { y: true, yes: true, n: false, no: false }
