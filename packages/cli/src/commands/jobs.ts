import { ClientError, isTerminal, type Job } from '@svc/client'
import { tryParseTypedDigest } from '@svc/ref'
import { CliError } from '../errors.ts'
import { follow, StalledError } from '../follow.ts'
import { count, formatBytes, formatSince, formatTime } from '../format.ts'
import { type HubOrigin, hubOrigin, importAgain } from '../hub/hub-origin.ts'
import { tryParseHubAddress, tryParseHubSource } from '../hub/hub-source.ts'
import { membersOf, repositoryIn } from '../models/models-here.ts'
import { canonicalRef, fullName, nameHere, refsOf, shortRef } from '../models/reference.ts'
import { subjectOf } from '../progress.ts'
import { type EvictField, makingRoom } from '../questions/making-room.ts'
import type { Session } from '../session.ts'
import { importByName, importHf, printImport } from './imports.ts'
import { gc, printHurt, secondsOf } from './remove.ts'

/** `svc jobs [ID] [--follow]`; --follow without an id follows the newest running job. */
export async function jobs(
  session: Session,
  id: string | undefined,
  options: { readonly follow?: boolean }
): Promise<void> {
  if (id === undefined && options.follow !== true) return listJobs(session)
  const job = id === undefined ? await newestRunning(session) : await jobNamed(session, id)
  if (options.follow === true && !isTerminal(job)) {
    const warned = new Set<string>()
    return finishJob(session, await follow(session, job, { warned }), warned)
  }
  if (session.json) return session.document(job)
  printJob(session, job)
}

export interface CancelOptions {
  /** Also frees what it has fetched. */
  readonly discard?: boolean
}

/** `svc cancel ID [--discard]`; a job that has already ended is unchanged, and the output says so. */
export async function cancel(session: Session, id: string, { discard = false }: CancelOptions): Promise<void> {
  const job = await session.client.cancelJob((await jobNamed(session, id)).id)
  if (!session.json) {
    session.print(job.id)
    const kept = discard ? '' : '; verified data is kept for the next attempt'
    session.note(
      job.error?.code === 'E_ABORTED'
        ? `cancelled: ${job.kind} ${subjectOf(job)}${kept}`
        : `it had already ended: ${job.state}`
    )
  }
  if (discard) return gc(session, { partial: true })
  if (session.json) session.document(job)
}

/** `svc resume [ID]`: goes on with an import that was interrupted or has failed; without ID with all interrupted ones. */
export async function resume(session: Session, id: string | undefined): Promise<void> {
  const { client } = session
  const found =
    id === undefined
      ? (await client.jobs()).filter(({ interrupted }) => interrupted === true)
      : [await jobNamed(session, id)]
  if (found.length === 0) return session.note('no job was interrupted')
  for (const job of found) {
    const warned = new Set<string>()
    finishJob(session, await follow(session, await client.resumeJob(job.id), { warned }), warned)
  }
}

/** The job of an id, which may be abbreviated as long as it is unique. @throws ClientError `E_NOT_FOUND` */
async function jobNamed({ client }: Session, text: string): Promise<Job> {
  try {
    return await client.job(text)
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'E_NOT_FOUND' || !/^[0-9a-f]{4,}$/.test(text)) throw error
    const [found, ...others] = (await client.jobs()).filter(({ id }) => id.startsWith(text))
    if (found === undefined || others.length > 0) throw error
    return found
  }
}

async function newestRunning(session: Session): Promise<Job> {
  const running = (await session.client.jobs()).find((job) => !isTerminal(job))
  if (running === undefined) throw new CliError('notFound', 'no job is running', { code: 'E_NOT_FOUND' })
  return running
}

async function listJobs(session: Session): Promise<void> {
  const all = await session.client.jobs()
  if (session.json) return session.document({ jobs: all })
  if (session.quiet) return all.forEach((job) => session.print(job.id))
  if (all.length === 0) return session.note('no jobs since the daemon started')
  const rows = towardsPrompt(all).map((job) => [
    job.id,
    kindOf(job),
    stateOf(job),
    formatSince(job.createdAt, session.clock.now()),
    amount(job),
    subjectOf(job)
  ])
  session.table([['JOB', 'KIND', 'STATE', 'STARTED', 'PROGRESS', 'MODEL'], ...rows])
  if (all.some(({ interrupted }) => interrupted === true))
    session.note('svc resume goes on with what was interrupted; svc cancel ID --discard frees what it has fetched')
  if (all.some(({ state, interrupted }) => state === 'failed' && interrupted !== true))
    session.note('svc jobs ID says why a job failed, and svc resume ID tries an import again')
}

/** The newest next to the prompt, and last what still runs. @param all newest first */
export const towardsPrompt = (all: readonly Job[]): readonly Job[] =>
  [...all].reverse().sort((a, b) => Number(!isTerminal(a)) - Number(!isTerminal(b)))

/** Marks garbage collections that only count, such as those of `svc du`, so that they are not mistaken for real ones. */
const kindOf = ({ kind, dryRun }: Job): string => (dryRun === true ? `${kind} --dry-run` : kind)

const stateOf = ({ state, error, interrupted }: Job): string =>
  interrupted === true
    ? 'interrupted'
    : error === undefined
      ? state
      : error.code === 'E_ABORTED'
        ? 'cancelled'
        : `${state} (${error.code})`

function amount(job: Job): string {
  const files = job.filesTotal === undefined ? '' : `${job.filesDone ?? 0} of ${count(job.filesTotal, 'file')}`
  const { bytesDone = 0, bytesTotal } = job
  const bytes = bytesTotal === undefined ? '' : `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`
  return [files, bytes].filter((text) => text !== '').join(', ')
}

function printJob(session: Session, job: Job): void {
  const rows: (readonly [string, string | undefined])[] = [
    ['job', job.id],
    ['kind', kindOf(job)],
    ['state', stateOf(job)],
    ['ref', job.ref],
    ['as', job.as],
    ['target', job.target],
    ['manifest', job.manifest],
    ['progress', amount(job) || undefined],
    ['message', job.message],
    ['created', formatTime(job.createdAt)],
    ['finished', job.finishedAt && formatTime(job.finishedAt)],
    ['error', job.error?.message]
  ]
  const shown = rows.filter(([, value]) => value !== undefined) as [string, string][]
  session.table(shown)
  if (job.verify !== undefined) printVerify(session, job)
  if (job.result !== undefined) printImport(session, job)
}

function finishJob(session: Session, job: Job, warned: ReadonlySet<string>): void {
  if (session.json) return
  if (job.result !== undefined) printImport(session, job, warned)
  else session.print(`${job.kind} ${job.state}: ${subjectOf(job)}`)
}

export interface PullOptions {
  readonly wait?: string
  readonly evict?: boolean
  readonly force?: boolean
}

/** When peers send nothing for this long, a model from the hub is imported from there again. */
const PEERS_SECONDS = '15s'

/**
 * `svc pull REF [--wait TIME]`: fetches missing weights from the hub if they came from there, and the rest from peers.
 * The hub lacks files that an import makes, such as a tokenizer.tar: if no peer sends one, the import runs again.
 */
export async function pull(session: Session, typed: string, options: PullOptions): Promise<void> {
  const { wait, ...more } = options
  // an address of the hub is imported again, since it may have another commit
  const text = tryParseHubAddress(typed) === undefined ? await nameHere(session, typed) : typed
  if (await isOnlyOnHub(session, text)) return importByName(session, typed, more)
  const other = await quantOnHub(session, text)
  if (other !== undefined) return importHf(session, other.source, { ...more, as: other.as })
  const ref = await canonicalRef(session, text)
  await makingRoom(session, options, (field) => pullMissing(session, ref, wait ?? PEERS_SECONDS, field))
}

/** Imports what is not here, neither under its name nor from its address: a repository of the hub, or a further quant. */
export async function importIfAbsent(session: Session, typed: string): Promise<void> {
  const text = await nameHere(session, typed)
  if (await isOnlyOnHub(session, text)) return importByName(session, typed, {})
  const other = await quantOnHub(session, text)
  if (other !== undefined) await importHf(session, other.source, { as: other.as })
}

async function pullMissing(session: Session, ref: string, wait: string, field: EvictField): Promise<void> {
  const stallTimeoutMs = secondsOf(wait) * 1000
  const started = await session.client.ensure({ ref, ...field })
  const complete = started.state === 'done'
  const origin = complete ? undefined : await hubOrigin(session, ref)
  if (!isTerminal(started)) session.note(`fetching the missing parts of ${shortRef(ref)}${sourcesOf(origin)}`)
  const done = await follow(session, started, origin?.as === undefined ? {} : { stallTimeoutMs }).catch(
    (error: unknown) => followHub(session, error, { started, origin, ref, wait })
  )
  if (session.json) return
  for (const warning of done?.result?.warnings ?? []) session.note(`warning: ${warning}`)
  session.print(shortRef(ref))
  session.note(complete ? 'already complete' : 'complete')
}

/** If peers sent nothing, imports a model that came from the hub once more. @throws the failure otherwise */
async function followHub(
  session: Session,
  error: unknown,
  { started, origin, ref, wait }: { started: Job; origin: HubOrigin | undefined; ref: string; wait: string }
): Promise<void> {
  const isSilence = error instanceof StalledError
  const isRefusal = error instanceof CliError && error.code === 'E_SOURCE_UNAVAILABLE'
  if (isRefusal && (await isUnknown(session, started))) throw unknownDigest(shortRef(ref), error)
  if (origin === undefined || !(isSilence || isRefusal)) throw error
  const { repo, revision, as } = origin
  if (as === undefined) throw withoutName(error, shortRef(ref), origin)
  const why = isSilence ? `no peer sent anything for ${wait}` : 'no peer has it'
  session.note(`${why}; asking the hub for ${repo} at ${revision}`)
  const job = await follow(session, await importAgain(session, origin))
  if (started.manifest !== undefined && job.result?.manifests.includes(started.manifest) !== true)
    session.note('the files on the hub differ from those imported before: the model has a new digest')
}

/** `svc companions REF`: fetches the companions of a model; `ns/name` stands for all its quants. */
export async function companions(session: Session, text: string): Promise<void> {
  for (const ref of await refsOf(session, [text])) {
    const warned = new Set<string>()
    const { result } = await follow(session, await session.client.companions({ ref }), { warned })
    if (session.json) continue
    for (const warning of result?.warnings ?? []) if (!warned.has(warning)) session.note(`warning: ${warning}`)
    session.print(shortRef(ref))
  }
}

/** Whether a text names a repository of the hub, and nothing here. */
async function isOnlyOnHub(session: Session, text: string): Promise<boolean> {
  const source = tryParseHubSource(text)
  if (source === undefined) return false
  const isAddress = tryParseHubAddress(text) !== undefined
  const { namespaces } = await session.client.models()
  const repo = source.repo.toLowerCase()
  return isAddress || !namespaces.some(({ ns, name }) => (repo.includes('/') ? `${ns}/${name}` : name) === repo)
}

/** Where a quant that is not here may be found: in the repository of the hub that the others came from. */
async function quantOnHub(
  session: Session,
  text: string
): Promise<{ readonly source: string; readonly as: string } | undefined> {
  const [, as = '', quant = ''] = /^(?:svc:\/\/\/)?([^:@+#]+):([^:@+#]+)$/.exec(await fullName(session, text)) ?? []
  const entry = repositoryIn(await session.client.models(), as.toLowerCase())
  if (entry === undefined || entry.quants.some((each) => each.startsWith(quant.toLowerCase()))) return undefined
  const repo = entry.members.find(({ origin }) => origin?.kind === 'hf')?.origin?.repo
  return repo === undefined ? undefined : { source: `${repo}:${quant}`, as: as.toLowerCase() }
}

/** Whether the artifact's manifest is absent, so that only its digest is known. */
async function isUnknown({ client }: Session, { manifest }: Job): Promise<boolean> {
  if (manifest === undefined) return false
  try {
    await client.headBlob(manifest)
    return false
  } catch (error) {
    return error instanceof ClientError && error.code === 'E_NOT_FOUND'
  }
}

const unknownDigest = (ref: string, cause: unknown): CliError =>
  new CliError('source', `only the digest of ${ref} is known here, which is not enough to find a source`, {
    code: 'E_SOURCE_UNAVAILABLE',
    hint: 'on a machine that has it, svc share prints the command to type here',
    cause
  })

const sourcesOf = (origin: HubOrigin | undefined): string =>
  origin === undefined
    ? ' from peers; there is no other source: it did not come from the hub'
    : ` from the hub (${origin.repo}), then from peers`

/** The artifact has no name here, and the user has to choose the one to import it under. */
const withoutName = (cause: unknown, ref: string, { repo, revision }: HubOrigin): CliError =>
  new CliError('source', `no peer has ${ref}, and it has no name to import it under from the hub`, {
    code: 'E_SOURCE_UNAVAILABLE',
    hint: `svc import hf ${repo} --revision ${revision} --as NS/NAME`,
    cause
  })

/** `svc verify [REF|DIGEST|all]` */
export async function verify(session: Session, text: string | undefined): Promise<void> {
  const digest = text === undefined ? undefined : tryParseTypedDigest(text)
  const isAll = text === undefined || text === 'all'
  const target = isAll ? 'all' : (digest ?? (await canonicalRef(session, text)))
  const started = await session.client.verify({ target })
  try {
    const job = await follow(session, started)
    if (session.json) return
    const members = membersOf(await session.client.models())
    const what = isAll ? count(members.length, 'model') : (digest ?? shortRef(target))
    const unusable = members.filter(({ ref, malformed }) => malformed && (isAll || `svc:///${ref}` === target))
    const verdict = unusable.length === 0 ? 'all good' : 'all bytes are right'
    session.print(`${what} verified, ${formatBytes(job.bytesTotal ?? 0)}: ${verdict}`)
    for (const { ref, malformed = [] } of unusable) session.print(notAModel(ref, malformed))
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'E_VERIFY_FAILED') throw error
    if (!session.json) await printHurt(session, await session.client.job(started.id))
    throw error
  }
}

const notAModel = (ref: string, files: readonly string[]): string =>
  `${ref} is no model: no runtime can load ${files.join(', ')}`

export const fsck = (session: Session): Promise<void> => verify(session, 'all')

function printVerify(session: Session, job: Job): void {
  for (const digest of job.verify?.mismatched ?? []) session.print(`mismatched  ${digest}`)
  for (const digest of job.verify?.missing ?? []) session.print(`missing     ${digest}`)
  for (const text of job.verify?.stateErrors ?? []) session.print(`state       ${text}`)
}
