import type { ImportHfBody, OutdatedModel } from '@svc/client'
import { CliError, jobFailure, usage } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { count, formatBytes } from '../format.ts'
import { refsOf } from '../reference.ts'
import type { Session } from '../session.ts'
import { sayingWhatWaits } from '../slow-answer.ts'
import { finishImport } from './imports.ts'

/** `svc outdated [REF…]` */
export async function outdated(session: Session, texts: readonly string[]): Promise<void> {
  const models = await ask(session, texts)
  if (session.json) return session.document({ models })
  if (session.quiet) return models.forEach(({ ref, status }) => status === 'newer' && session.print(ref))
  const shown = texts.length > 0 ? models : models.filter(({ status }) => !SILENT.includes(status))
  printTable(session, shown)
  const newer = models.filter(({ status }) => status === 'newer')
  if (newer.length > 0) return session.note('import them with: svc upgrade REF, or svc upgrade --all')
  session.note(`nothing newer for ${count(models.length, 'model')}`)
}

/** Without a reference, these are not worth a line. */
const SILENT: readonly string[] = ['same', 'pinned', 'elsewhere']

function printTable(session: Session, models: readonly OutdatedModel[]): void {
  const rows = models.map(({ ref, status, origin, commit, movedTo, files, bytes = 0, bytesPresent = 0, reason }) => [
    ref,
    status,
    origin?.revision ?? '',
    `${origin?.commit?.slice(0, 8) ?? ''}${status === 'newer' ? ` > ${commit?.slice(0, 8)}` : ''}`,
    files === undefined
      ? (reason ?? '')
      : `${count(files, 'file')}, ${formatBytes(bytes)}, ${formatBytes(bytesPresent)} here`,
    movedTo === undefined ? '' : `now ${movedTo}`
  ])
  if (rows.length === 0) return
  session.table([['MODEL', 'STATUS', 'FOLLOWS', 'COMMIT', 'CHANGED', ''], ...rows])
}

async function ask(session: Session, texts: readonly string[]): Promise<readonly OutdatedModel[]> {
  const job = await session.client.outdated(texts.length === 0 ? {} : { refs: await refsOf(session, texts) })
  const done = await sayingWhatWaits(session, 'asking the hub for newer commits', session.client.waitJob(job))
  if (done.state === 'failed') throw jobFailure(done)
  return done.result?.models ?? []
}

export interface UpgradeOptions {
  readonly all?: boolean
  readonly dryRun?: boolean
  readonly replace?: boolean
}

/** `svc upgrade REF…|--all [--dry-run]`: imports what is newer; what the names stood for before gets a tag. */
export async function upgrade(session: Session, texts: readonly string[], options: UpgradeOptions): Promise<void> {
  if ((texts.length === 0) !== (options.all === true))
    throw usage('name the models to upgrade, or use --all', 'svc outdated lists what is newer')
  const models = await ask(session, texts)
  if (options.dryRun === true) {
    if (session.json) return session.document({ models })
    printTable(
      session,
      models.filter(({ status }) => texts.length > 0 || status === 'newer')
    )
    const bytes = models.reduce((sum, { bytes = 0, bytesPresent = 0 }) => sum + bytes - bytesPresent, 0)
    return session.note(`it would fetch at most ${formatBytes(bytes)}`)
  }
  const bodies = bodiesOf(models)
  if (bodies.length === 0 && session.json) session.document({ models })
  for (const body of bodies)
    await finishImport(session, async (field) => session.client.importHf({ ...body, ...field }), {
      ...options,
      as: body.as!
    })
  if (bodies.length === 0) session.note('nothing newer')
  const barred = texts.length === 0 ? [] : models.filter(({ status }) => BARRED.includes(status))
  for (const { ref, status, reason = '' } of barred) session.note(`${ref} is ${status}: ${reason}`)
  if (barred.length > 0) throw new CliError(EXIT.source, `${count(barred.length, 'model')} could not be upgraded`)
}

const BARRED: readonly string[] = ['gone', 'gated', 'unknown']

/** One import for the quants of a name that come from one commit. */
function bodiesOf(models: readonly OutdatedModel[]): ImportHfBody[] {
  const bodies = models.flatMap(({ upgrade }) => (upgrade === undefined ? [] : [upgrade]))
  const groups = Map.groupBy(bodies, ({ quants: _, ...rest }) => JSON.stringify(rest))
  return [...groups.values()].map((group) => ({ ...group[0]!, quants: group.flatMap(({ quants = [] }) => quants) }))
}
