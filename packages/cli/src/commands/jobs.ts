import { type ImportHfBody, isTerminal, type Job } from '@svc/client'
import { CliError } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { follow } from '../follow.ts'
import { count, formatBytes, formatTable } from '../format.ts'
import { asDigest, canonicalRef, shortRef } from '../reference.ts'
import type { Session } from '../session.ts'
import { printImport } from './imports.ts'
import { readManifest } from './model.ts'
import { printHurt } from './remove.ts'

/** `svc jobs [ID] [--follow]`; --follow without an id takes the newest that runs. */
export async function jobs(
  session: Session,
  id: string | undefined,
  options: { readonly follow?: boolean }
): Promise<void> {
  if (id === undefined && options.follow !== true) return listJobs(session)
  const job = id === undefined ? await newestRunning(session) : await session.client.job(id)
  if (options.follow === true && !isTerminal(job)) return finishJob(session, await follow(session, job))
  if (session.json) return session.document(job)
  printJob(session, job)
}

/** `svc cancel ID`; a job that was over before stays as it is, and that is said. */
export async function cancel(session: Session, id: string): Promise<void> {
  const job = await session.client.cancelJob(id)
  if (session.json) return session.document(job)
  const cancelled = job.error?.code === 'E_ABORTED'
  session.print(job.id)
  session.note(cancelled ? `cancelled: ${job.kind} ${job.target ?? job.ref}` : `it was over before: ${job.state}`)
}

async function newestRunning(session: Session): Promise<Job> {
  const running = (await session.client.jobs()).find((job) => !isTerminal(job))
  if (running === undefined) throw new CliError(EXIT.notFound, 'no job is running', { code: 'E_NOT_FOUND' })
  return running
}

async function listJobs(session: Session): Promise<void> {
  const all = await session.client.jobs()
  if (session.json) return session.document({ jobs: all })
  if (session.quiet) return all.forEach((job) => session.print(job.id))
  if (all.length === 0) return session.note('no jobs since the daemon started')
  const rows = all.map((job) => [job.id, job.kind, job.state, amount(job), job.as ?? job.ref])
  for (const line of formatTable([['JOB', 'KIND', 'STATE', 'PROGRESS', 'MODEL'], ...rows])) session.print(line)
}

function amount(job: Job): string {
  const files = job.filesTotal === undefined ? '' : `${job.filesDone ?? 0}/${job.filesTotal}`
  const { bytesDone = 0, bytesTotal } = job
  const bytes = bytesTotal === undefined ? '' : `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`
  return [files, bytes].filter((text) => text !== '').join('  ')
}

function printJob(session: Session, job: Job): void {
  const rows: (readonly [string, string | undefined])[] = [
    ['job', job.id],
    ['kind', job.kind],
    ['state', job.state],
    ['ref', job.ref],
    ['as', job.as],
    ['target', job.target],
    ['manifest', job.manifest],
    ['progress', amount(job) || undefined],
    ['message', job.message],
    ['created', job.createdAt],
    ['finished', job.finishedAt],
    ['error', job.error === undefined ? undefined : `${job.error.code}: ${job.error.message}`]
  ]
  const shown = rows.filter(([, value]) => value !== undefined) as [string, string][]
  for (const line of formatTable(shown)) session.print(line)
  if (job.verify !== undefined) printVerify(session, job)
  if (job.result !== undefined) printImport(session, job)
}

function finishJob(session: Session, job: Job): void {
  if (session.json) return
  if (job.result !== undefined) printImport(session, job)
  else session.print(`${job.kind} ${job.state}: ${job.target ?? job.ref}`)
}

/** Without a byte from the swarm for so long, what came from the hub is asked for there. */
const SWARM_PATIENCE_MS = 15_000

/** `svc pull REF`: fetches what is missing from the swarm, and what came from the hub from there when no peer has it. */
export async function pull(session: Session, text: string): Promise<void> {
  const ref = await canonicalRef(session, text)
  const started = await session.client.ensure({ ref })
  const origin = isTerminal(started) && started.state === 'done' ? undefined : await hubOrigin(session, ref)
  let job: Job
  try {
    if (!isTerminal(started)) session.note(`asking the swarm for what is missing of ${shortRef(ref)}`)
    job = await follow(session, started, origin && { patienceMs: SWARM_PATIENCE_MS })
  } catch (error) {
    if (origin === undefined || !(error instanceof CliError) || !GIVES_UP.has(error.code)) throw error
    session.note(`no peer gave it; asking the hub for ${origin.repo} at ${origin.revision}`)
    job = await follow(session, await session.client.importHf(origin))
    if (started.manifest !== undefined && job.result?.manifests.includes(started.manifest) !== true)
      session.note('the hub gives more than was imported before: the model has a new digest')
  }
  if (session.json) return
  session.print(ref)
  session.note(`complete: ${count(job.filesTotal ?? 0, 'file')}`)
}

/** How a job ends when no peer helps, or when this command loses patience with the swarm. */
const GIVES_UP = new Set(['E_SOURCE_UNAVAILABLE', 'E_ABORTED'])

/** The import that gave this artifact, for what came from the hub: the same commit, quant and names give the same bytes. */
async function hubOrigin(session: Session, ref: string): Promise<ImportHfBody | undefined> {
  const result = await session.client.open(ref)
  const { annotations = {}, files = [] } = await readManifest(session.client, result)
  const { 'svc.hf.repo': repo, 'svc.hf.revision': revision } = annotations
  if (repo === undefined || revision === undefined || result.quant === undefined) return undefined
  const ggufs = files.filter(({ kind }) => kind === 'weights.gguf').map(({ name }) => name.split('/').at(-1)!)
  // names that normalizing would change were kept
  const kept = result.quant === 'raw' || ggufs.some((name) => name !== name.toLowerCase())
  return {
    repo,
    revision,
    as: `${result.ns}/${result.name}`,
    quants: [result.quant],
    ...(!kept && { names: 'normalized' as const })
  }
}

/** `svc verify [REF|DIGEST|all]` */
export async function verify(session: Session, text: string | undefined): Promise<void> {
  const target = text === undefined || text === 'all' ? 'all' : (asDigest(text) ?? (await canonicalRef(session, text)))
  const started = await session.client.verify({ target })
  try {
    const job = await follow(session, started)
    if (!session.json) session.print(`verified: ${count(job.filesTotal ?? 0, 'blob')}, all good`)
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'E_VERIFY_FAILED') throw error
    if (!session.json) await printHurt(session, await session.client.job(started.id))
    throw error
  }
}

function printVerify(session: Session, job: Job): void {
  for (const digest of job.verify?.mismatched ?? []) session.print(`mismatched  ${digest}`)
  for (const digest of job.verify?.missing ?? []) session.print(`missing     ${digest}`)
  for (const text of job.verify?.stateErrors ?? []) session.print(`state       ${text}`)
}
