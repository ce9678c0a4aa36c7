import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SwarmStatus } from '@svc/client'
import { usage } from '../errors.ts'
import type { Session } from '../session.ts'
import { stateFolder } from '../user-state.ts'
import { asking, canAsk } from './question.ts'

/** From when on others can fetch an import; undefined if nothing is shared. */
function sharedFrom({ enabled, seed, seedOnImport }: SwarmStatus): string | undefined {
  if (!enabled || !seed) return undefined
  return seedOnImport === true ? 'as soon as it is here' : 'from the next start of the daemon on'
}

/** Tells a person at a terminal, before the first import from the hub, that models are shared, and how to turn that off. */
export async function tellSharingOnce(session: Session): Promise<void> {
  const mark = toldMark(session.terminal.env)
  if (!canAsk(session) || (mark !== undefined && existsSync(mark))) return
  const from = sharedFrom((await session.client.status()).swarm)
  if (from === undefined) return
  session.note(
    `public models of the hub are shared with others over BitTorrent, ${from}; svc seed off turns sharing off`
  )
  if (mark === undefined) return
  // if this fails, it is told again
  await mkdir(join(mark, '..'), { recursive: true, mode: 0o700 })
    .then(() => writeFile(mark, ''))
    .catch(() => undefined)
}

/** The file that records that this user was told. */
function toldMark(env: Session['terminal']['env']): string | undefined {
  const folder = stateFolder(env)
  return folder === undefined ? undefined : join(folder, 'told-sharing')
}

/**
 * Settles whether own models are shared: on a terminal it asks once, and the daemon stores the answer. @returns from
 * when they are shared if nobody could be asked, to be mentioned after the import
 */
export async function settleOwnModels(session: Session): Promise<string | undefined> {
  const { swarm, seedLocal } = await session.client.status()
  const from = sharedFrom(swarm)
  if (seedLocal !== undefined || from === undefined) return undefined
  if (!canAsk(session)) return from
  session.note('The daemon shares models over BitTorrent. Share your own models, too?')
  await askOwnModels(session)
  return undefined
}

/**
 * Whether adopted models may be shared where everybody may have them: by the options, the configuration, or the answer
 * to the same question. Where nobody answers, they may not.
 */
export async function mayShareAdopted(
  session: Session,
  options: { readonly share?: boolean; readonly private?: boolean; readonly yes?: boolean }
): Promise<boolean> {
  if (options.private === true) return false
  if (options.share === true) return true
  const { swarm, seedLocal } = await session.client.status()
  if (seedLocal !== undefined) return seedLocal
  if (sharedFrom(swarm) !== undefined && options.yes !== true && canAsk(session)) {
    session.note(
      'The daemon shares models over BitTorrent. Share your own models, too? Those of other tools are shared only if the hub gives them to everybody.'
    )
    return askOwnModels(session)
  }
  session.note('the models will be private, since nobody said that they may be shared: --share says so')
  return false
}

/** @throws CliError without an answer */
async function askOwnModels(session: Session): Promise<boolean> {
  const shared = await asking(session, async (ask) => {
    let question = 'Share own models? (yes, or no to keep them private; asked once) '
    for (;;) {
      const answer = await ask(question)
      if (answer === undefined || answer === '')
        throw usage('nothing was imported: the question about sharing was not answered', '--private skips the question')
      const said = /^(?:(y|yes)|n|no)$/i.exec(answer)
      if (said !== null) return said[1] !== undefined
      question = 'Please answer yes or no: '
    }
  })
  const { file } = await session.client.decideSeedLocal({ seedLocal: shared })
  const kept = shared ? 'own models are shared' : 'own models stay private; svc private REF --off shares one of them'
  session.note(file === undefined ? kept : `${kept} (seed_local = ${shared} in ${file})`)
  return shared
}

/** Printed after each import of own models until the user has decided. */
export const tellShared = (session: Session, as: string, from: string): void =>
  session.note(
    `own models are shared by default: others can fetch it from here, ${from}. To keep it to yourself: svc private ${as}, or import with --private; all models of your own: seed_local = false below [swarm] in the configuration`
  )
