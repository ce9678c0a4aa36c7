import { ClientError, type ImportHfBody, type OutdatedModel } from '@svc/client'
import { CliError, jobFailure, usage } from '../errors.ts'
import { count, formatBytes } from '../format.ts'
import { olderViews } from '../models/older-views.ts'
import { refsOf } from '../models/reference.ts'
import { reportOf } from '../report.ts'
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
  const asked = models.filter(({ status }) => !BARRED.includes(status))
  if (asked.length > 0 || models.length === 0) session.note(`nothing newer for ${count(asked.length, 'model')}`)
}

/** Listed only if the model was named. */
const SILENT: readonly string[] = ['same', 'pinned', 'elsewhere']

function printTable(session: Session, models: readonly OutdatedModel[]): void {
  const rows = models.map(({ ref, status, origin, commit, movedTo, files, bytes = 0, bytesPresent = 0, reason }) => [
    ref,
    status,
    origin?.revision ?? '',
    `${origin?.commit?.slice(0, 8) ?? ''}${status === 'newer' ? ` > ${commit?.slice(0, 8)}` : ''}`,
    [
      ...(files === undefined ? [] : [count(files, 'file'), formatBytes(bytes), `${formatBytes(bytesPresent)} here`]),
      ...(reason === undefined ? [] : [reason]),
      ...(movedTo === undefined ? [] : [`now ${movedTo}`])
    ].join(', ')
  ])
  if (rows.length > 0) session.table([['MODEL', 'STATUS', 'FOLLOWS', 'COMMIT', 'CHANGED'], ...rows])
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
  readonly evict?: boolean
}

/** `svc upgrade REF…|--all [--dry-run]`: imports newer commits; the older artifacts get a tag. */
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
  const barred = texts.length === 0 ? [] : models.filter(({ status }) => BARRED.includes(status))
  if (bodies.length === 0 && session.json) session.document({ models })
  else if (bodies.length === 0 && barred.length === 0) session.note('nothing newer')
  const failures = await upgradeEach(session, bodies, models, options)
  if (bodies.length > failures.length) await tellOlderViews(session)
  for (const { ref, status, reason = '' } of barred) session.note(`${ref} is ${status}: ${reason}`)
  if (barred.length + failures.length === 0) return
  const exit = barred.length > 0 ? 'source' : reportOf(failures[0]).exit
  throw new CliError(exit, `${count(barred.length + failures.length, 'model')} could not be upgraded`)
}

async function tellOlderViews(session: Session): Promise<void> {
  const older = await olderViews(session)
  for (const { view, newer } of older) session.note(`${view.path} still shows the older version of ${newer.ref}`)
  if (older.length > 0) session.note('svc view --refresh moves these views')
}

/** @returns the failures, which do not stop the others */
async function upgradeEach(
  session: Session,
  bodies: readonly ImportHfBody[],
  models: readonly OutdatedModel[],
  options: UpgradeOptions
): Promise<readonly Error[]> {
  const failures: Error[] = []
  for (const body of bodies) {
    try {
      await upgradeOne(session, body, models, options)
    } catch (error) {
      if (bodies.length === 1 || !(error instanceof CliError || error instanceof ClientError)) throw error
      failures.push(error)
      const { message, hint } = reportOf(error)
      session.note(`${body.as}: ${message}${hint === undefined ? '' : ` (${hint})`}`)
    }
  }
  return failures
}

async function upgradeOne(
  session: Session,
  body: ImportHfBody,
  models: readonly OutdatedModel[],
  options: UpgradeOptions
): Promise<void> {
  const as = body.as!
  const movedTo = models.find(({ upgrade }) => upgrade?.as === as)?.movedTo
  try {
    await finishImport(session, (field) => session.client.importHf({ ...body, malformed: 'refuse', ...field }), {
      ...options,
      as
    })
  } catch (error) {
    if (movedTo === undefined || !(error instanceof CliError) || error.code !== 'E_NAME_TAKEN') throw error
    const { exit, code, candidates } = error
    const hint = 'svc upgrade --replace follows it there'
    throw new CliError(exit, `${as} is ${movedTo} at the hub now`, { code, candidates, hint, cause: error })
  }
}

const BARRED: readonly string[] = ['gone', 'gated', 'unknown']

/** One import for the quants of a name that come from one commit. */
function bodiesOf(models: readonly OutdatedModel[]): ImportHfBody[] {
  const bodies = models.flatMap(({ upgrade }) => (upgrade === undefined ? [] : [upgrade]))
  const groups = Map.groupBy(bodies, ({ quants: _, ...rest }) => JSON.stringify(rest))
  return [...groups.values()].map((group) => ({ ...group[0]!, quants: group.flatMap(({ quants = [] }) => quants) }))
}
