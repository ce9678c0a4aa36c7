import { tryParseByteSize } from '@svc/client/protocol'
import { usage } from '../errors.ts'
import { formatBytes } from '../format.ts'
import { membersOf } from '../models/models-here.ts'
import { runDaemonCommand } from '../service/daemon-run.ts'
import type { Session } from '../session.ts'
import { runningVersion } from '../versions.ts'
import { swarmLine } from './daemon.ts'

/** `svc seed [on|off]`: at once where the daemon runs, else from its next start on. @throws CliError */
export async function seed(
  session: Session,
  word: 'on' | 'off' | undefined,
  { svcd }: { readonly svcd?: string }
): Promise<void> {
  const { client, signal } = session
  if ((await runningVersion(client.socketPath, signal)) === undefined)
    return runDaemonCommand(session, ['seed', ...(word === undefined ? [] : [word])], {
      svcd,
      otherwise: 'the configuration was not changed'
    })
  const remembered = word === undefined ? undefined : await client.decideSeed({ seed: word === 'on' })
  const { swarm } = await client.status()
  const { seed, enabled, seeding, heldBack } = swarm
  if (session.json)
    return session.document({ seed, enabled, seeding, heldBack: heldBack.length, file: remembered?.file })
  if (session.quiet) return session.print(seed ? 'on' : 'off')
  session.print(swarmLine(swarm, membersOf(await client.models())))
  if (remembered?.file !== undefined) session.note(`[swarm] seed = ${seed} in ${remembered.file}`)
  else if (word !== undefined) session.note('the daemon has no configuration file: the setting lasts until it stops')
  else if (enabled) session.note(seed ? 'svc seed off turns sharing off' : 'svc seed on shares models with others')
}

/** `svc limit [download|upload RATE]`: at once. @throws CliError */
export async function limit(
  session: Session,
  direction: 'download' | 'upload' | undefined,
  text: string | undefined
): Promise<void> {
  const { client } = session
  if (direction !== undefined && text === undefined) throw usage('the rate is missing', `svc limit ${direction} 20MB`)
  const remembered = direction && (await client[LIMITS[direction]]({ bytesPerSecond: rateOf(text!) }))
  const { swarm, downloadLimitBytesPerSecond = 0 } = await client.status()
  const limits = { download: downloadLimitBytesPerSecond, upload: swarm.uploadLimitBytesPerSecond ?? 0 }
  if (session.json) return session.document({ ...limits, file: remembered?.file })
  session.table(
    Object.entries(limits).map(([name, rate]) => [name, rate === 0 ? 'no limit' : `${formatBytes(rate)}/s`])
  )
  if (remembered !== undefined && remembered.file === undefined)
    session.note('the daemon has no configuration file: the limit lasts until it stops')
}

const LIMITS = { download: 'limitDownload', upload: 'limitUpload' } as const

function rateOf(text: string): number {
  const rate = text === 'off' ? 0 : tryParseByteSize(text.replace(/\/s$/, ''))
  if (rate !== undefined) return rate
  throw usage(`"${text}" is no rate`, 'write bytes per second, such as 20MB, or off')
}
