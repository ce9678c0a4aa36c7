import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { ClientError, type ImportBtBody, type ImportHfBody, type ImportPlan, type Job } from '@svc/client'
import { tryParseTypedDigest } from '@svc/ref'
import { repositoriesBelow, toolOfCache } from '@svc/view'
import { CliError, usage } from '../errors.ts'
import { follow } from '../follow.ts'
import { count, formatBytes } from '../format.ts'
import { globsOfFile, inAnyFolder, withShards } from '../hub/file-globs.ts'
import { tryParseHubSource } from '../hub/hub-source.ts'
import { thisMachine } from '../hub/machine.ts'
import { adviceOf, artifactTable, quantsBySize, recommendedQuant } from '../hub/plan-table.ts'
import { membersOf } from '../models/models-here.ts'
import { importName, isOllamaAddress } from '../models/reference.ts'
import { type OpaqueOptions, takingAsTheyAre } from '../questions/as-they-are.ts'
import { chooseQuants, meaningQuants } from '../questions/choose-quants.ts'
import { evictField, makingRoom } from '../questions/making-room.ts'
import { canAsk } from '../questions/question.ts'
import { type ReplaceField, replacingOnlyIfTold, tellReplaced } from '../questions/replacing.ts'
import { settleOwnModels, tellShared, tellSharingOnce } from '../questions/sharing.ts'
import type { Session } from '../session.ts'
import { sayingWhatWaits } from '../slow-answer.ts'

export interface ImportOptions {
  readonly as?: string
  readonly replace?: boolean
  readonly detach?: boolean
  readonly evict?: boolean
  readonly private?: boolean
  /** Imports weights that no runtime can load, too. */
  readonly force?: boolean
}

/** Options common to imports from disk, hub, catalog and OCI artifacts. */
export interface ChoiceOptions extends ImportOptions, OpaqueOptions {
  readonly keepNames?: boolean
  readonly quant?: string
  readonly file?: readonly string[]
  /** Not of OCI artifacts, which are chosen as they were packed. */
  readonly aux?: string
}

/** The options in the form of the API. Quants are normalized to our spelling unless names are to be kept. */
export const choiceOf = ({ keepNames, quant, file, private: kept, force }: ChoiceOptions) => ({
  ...(keepNames !== true && { names: 'normalized' as const }),
  ...(quant !== undefined && { quants: quant.split(',').filter((each) => each !== '') }),
  ...(file !== undefined && { files: file.map(inAnyFolder) }),
  ...(kept === true && { private: true }),
  ...(force !== true && { malformed: 'refuse' as const })
})

/** In the form of the API: one projector and one draft head unless the user says otherwise, or names files. */
export function auxOf({ aux, file }: ChoiceOptions): Pick<ImportHfBody, 'aux'> {
  if (aux === undefined) return file === undefined ? { aux: ['one'] } : {}
  if (aux === 'all' || aux === 'none') return { aux }
  const words = aux
    .toLowerCase()
    .split(',')
    .filter((word) => word !== '')
  // other words choose neither among projectors nor among draft heads: the nearest come
  const isDraft = (word: string): boolean => word === 'draft' || word.startsWith('draft:')
  const isProjector = (word: string): boolean => !isDraft(word) && word !== 'imatrix' && word !== 'lora'
  const more = [...(words.some(isProjector) ? [] : ['mmproj']), ...(words.some(isDraft) ? [] : ['draft'])]
  return { aux: words.includes('one') ? words : [...more, ...words] }
}

export interface LocalOptions extends ChoiceOptions {
  readonly companions?: 'loaders' | 'all'
  /** Makes one model of a folder that holds several. */
  readonly oneModel?: boolean
}

/** `svc import local PATH… --as ns/name` */
export async function importLocal(session: Session, paths: readonly string[], options: LocalOptions): Promise<void> {
  const absolute = withShards(paths.map((path) => resolve(session.terminal.cwd, path)))
  if (options.oneModel !== true) for (const path of absolute) await requireOneModel(path)
  const as = importName(options.as, absolute[0]!)
  const sharedFrom = options.private === true ? undefined : await settleOwnModels(session)
  const { companions } = options
  // a caller that names each file has chosen
  const aux = options.aux === undefined && absolute.every(isFile) ? {} : auxOf(options)
  const body = { paths: absolute, as, ...choiceOf(options), ...aux, ...(companions !== undefined && { companions }) }
  await takingAsTheyAre(session, options, (opaque) => {
    const start = (field: ReplaceField): Promise<Job> =>
      meaningQuants(body, (given) => session.client.importLocal({ ...given, ...opaque, ...field })).catch(
        (error: unknown) => {
          throw linkRefused(error, absolute) ?? error
        }
      )
    return finishImport(session, start, options)
  })
  if (sharedFrom !== undefined) tellShared(session, as, sharedFrom)
}

/** @throws CliError for the cache of a tool, or a folder of several repositories, which would become one model */
async function requireOneModel(path: string): Promise<void> {
  const tool = await toolOfCache(path)
  if (tool !== 'dir')
    throw usage(`${path} is a cache of ${tool}`, `svc adopt ${path} imports its models, each by its name`)
  const folders = await repositoriesBelow(path)
  if (folders.length === 0) return
  const named = folders.slice(0, 3).join(', ') + (folders.length > 3 ? ', …' : '')
  throw new CliError(
    'usage',
    `${path} holds ${folders.length} models (${named}), which this import would merge into one`,
    {
      hint: `svc adopt ${path} imports each under its own name; --one-model imports the folder as one`
    }
  )
}

/** The refusal of a symbolic link, with what to do instead. */
function linkRefused(error: unknown, paths: readonly string[]): CliError | undefined {
  if (!(error instanceof ClientError) || error.code !== 'E_SOURCE_NOT_REGULAR') return undefined
  const { code, message } = error
  const snapshot = paths.find((path) => /\/models--[^/]+(?:\/|$)/.test(path))
  const linked = paths.find((path) => realPath(path) !== path)
  const hint =
    snapshot !== undefined
      ? `svc adopt ${/^.*\/models--[^/]+(?:\/snapshots\/[^/]+)?/.exec(snapshot)![0]} reads it where it is, and svc adopt hf the whole cache`
      : linked !== undefined
        ? `svc import local ${realPath(linked)} --as ns/name, the path behind the link`
        : `svc adopt ${paths[0]} follows links that stay in the folder; else name the files behind the links`
  return new CliError('usage', message, { code, hint, cause: error })
}

/** With all links resolved, if it exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Imports what may be a mistake: only old repositories of the hub have names of one word. @throws CliError */
export async function importByName(session: Session, text: string, options: HfOptions): Promise<void> {
  try {
    await importHf(session, text, options)
  } catch (error) {
    const isAbsent = error instanceof ClientError && ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN'].includes(error.code)
    throw isAbsent && !text.includes('/') ? neitherHereNorThere(text, error) : error
  }
}

/** @throws CliError for an address of Ollama's registry, with the ways to have the model */
export function refuseOllamaAddress(text: string): void {
  if (!isOllamaAddress(text)) return
  const name = text.split('/').at(-1)!
  throw usage(
    `svc does not download from Ollama's registry, and ${name} is not here`,
    `svc search ${name.split(':', 1)[0]} --gguf finds it on the hub; or: ollama pull ${name}, then svc adopt ollama`
  )
}

/** The refusal of a word that may be a mistake. */
export function neitherHereNorThere(text: string, cause?: unknown): CliError {
  const word = text.split(/[:@/]/, 1)[0]
  const hint = `svc search ${word} asks the hub for models of that name; svc ls shows what is here; svc import local, bt, catalog and oci have other sources`
  return new CliError('usage', `"${text}" is neither a model here nor a repository of the hub`, { hint, cause })
}

export interface HfOptions extends ChoiceOptions {
  readonly revision?: string
  readonly dryRun?: boolean
  readonly all?: boolean
}

/** `svc import hf org/name[:QUANT[,QUANT]] [--file GLOB]… [--revision R] [--as ns/name] [--private] [--keep-names] [--all] [--dry-run]` */
export async function importHf(session: Session, text: string, options: HfOptions): Promise<void> {
  refuseOllamaAddress(text)
  const source = tryParseHubSource(text)
  if (source === undefined)
    throw new CliError('usage', `"${text}" is not a repository of the hub; write org/name, as the hub spells it`, {
      code: 'E_BAD_REQUEST',
      hint: 'svc import hf Qwen/Qwen3-0.6B-GGUF:Q8_0; import your own files with svc import local'
    })
  const { repo, quant } = source
  const file = options.file ?? (source.file === undefined ? undefined : globsOfFile(source.file))
  const { revision = source.revision, as, all } = options
  const choice = { ...options, ...(file !== undefined && { file }), ...(quant !== undefined && { quant }) }
  const body: ImportHfBody = {
    repo,
    ...choiceOf(choice),
    ...auxOf(choice),
    ...(revision !== undefined && { revision }),
    ...(as !== undefined && { as: importName(as, repo) })
  }
  const isChosen = quant !== undefined || file !== undefined || all === true
  await takingAsTheyAre(session, options, (opaque) => bringHf(session, { ...body, ...opaque }, isChosen, options))
}

async function bringHf(session: Session, body: ImportHfBody, isChosen: boolean, options: HfOptions): Promise<void> {
  if (options.dryRun === true) {
    const plan = await askingHub(
      session,
      body,
      meaningQuants(body, (given) => session.client.planHf(given))
    )
    return session.json ? session.document(plan) : printPlan(session, plan)
  }
  const { warnings, ...chosen } = isChosen ? { ...body, warnings: [] } : await choose(session, body)
  if (options.private !== true) await tellSharingOnce(session)
  const start = (field: ReplaceField): Promise<Job> =>
    askingHub(
      session,
      chosen,
      meaningQuants(chosen, (given) => session.client.importHf({ ...given, ...field }))
    )
  await finishImport(session, start, options, warnings)
}

/** Says what it waits for: if the hub limits the rate, an answer may take minutes. */
const askingHub = <T>(session: Session, body: ImportHfBody, answer: Promise<T>): Promise<T> =>
  sayingWhatWaits(
    session,
    `asking the hub what ${body.repo} contains; this takes a while if the hub limits the rate`,
    answer
  )

/** If a repository has several quants, asks on a terminal which to import; otherwise refuses with the list. */
async function choose(session: Session, body: ImportHfBody): Promise<ImportHfBody & Pick<ImportPlan, 'warnings'>> {
  const plan = await askingHub(session, body, session.client.planHf(body))
  // import the commit that was listed, and follow what was asked for
  const { revision: follows = 'main' } = body
  const followed = /^[0-9a-f]{40}$/.test(follows) ? {} : { follows }
  const pinned = { ...body, revision: plan.commit, ...followed, warnings: plan.warnings }
  // warn before gigabytes are fetched
  for (const warning of plan.warnings) session.note(`warning: ${warning}`)
  if (plan.quants.length < 2) return pinned
  // reads a header, so only if there is a question
  const sized = await askingHub(session, body, session.client.planHf({ ...body, revision: plan.commit, context: 0 }))
  const machine = await thisMachine(session)
  const advice = adviceOf(sized, machine)
  const chosen = await chooseQuants(session, {
    what: plan.repo,
    command: 'svc import hf',
    names: quantsBySize(sized),
    recommended: recommendedQuant(sized, machine),
    table: artifactTable(sized, machine, { isNumbered: canAsk(session) }),
    advice,
    all: `--all for ${formatBytes(plan.totals.fetchBytes)}`
  })
  return chosen === undefined ? pinned : { ...pinned, quants: [...chosen] }
}

/** Names are lower-cased anyway; report only other changes. */
const renamed = (name: string, upstream: string | undefined): string | undefined =>
  upstream === undefined || upstream.toLowerCase() === name.toLowerCase() ? undefined : `named ${upstream} there`

function printPlan(session: Session, plan: ImportPlan): void {
  const { totals } = plan
  session.print(`${plan.repo} at ${plan.commit}, as ${plan.as}`)
  if (!session.quiet) {
    const rows = plan.files.map((file) => [
      // in no manifest, and beside the model all the same
      `  ${file.companion === true && file.action === 'skip' ? 'keep' : file.action}`,
      formatBytes(file.size),
      file.name,
      [file.kind, file.quant, file.companion === true ? 'companion' : file.reason, renamed(file.name, file.upstream)]
        .filter((text) => text !== undefined)
        .join(', ')
    ])
    session.table(rows)
    session.table(artifactTable(plan))
  }
  session.print(`fetch   ${count(totals.fetchFiles, 'file')}, ${formatBytes(totals.fetchBytes)}`)
  session.print(`store   ${count(totals.storeFiles, 'file')}, ${formatBytes(totals.storeBytes)}`)
  // the contract counts companions as skipped
  const kept = plan.files.filter(({ action, companion }) => companion === true && action === 'skip')
  const keptBytes = kept.reduce((sum, { size }) => sum + size, 0)
  if (kept.length > 0) session.print(`keep    ${count(kept.length, 'file')}, ${formatBytes(keptBytes)}, as companions`)
  session.print(
    `skip    ${count(totals.skipFiles - kept.length, 'file')}, ${formatBytes(totals.skipBytes - keptBytes)}`
  )
  session.print(`quants  ${plan.quants.join(', ') || 'none'}`)
  session.print(`license ${plan.license ?? 'none found'}`)
  for (const warning of plan.warnings) session.note(`warning: ${warning}`)
}

export interface BtOptions extends ImportOptions, OpaqueOptions {
  readonly pin?: string
  readonly companions?: string
  readonly webseed?: readonly string[]
  readonly tracker?: readonly string[]
  readonly peer?: readonly string[]
}

const infohashOf = (text: string): string => (/^[0-9a-f]{64}$/.test(text) ? `btmh:1220${text}` : text)

/** `svc import bt MAGNET|INFOHASH --pin DIGEST …` */
export async function importBt(session: Session, source: string, options: BtOptions): Promise<void> {
  if (options.pin === undefined) {
    const hint = 'add --pin sha256:<hex>, the manifest digest; svc share prints it on the other side'
    throw usage('a magnet or infohash alone does not say which model it must be', hint)
  }
  const pin = tryParseTypedDigest(options.pin)
  if (pin === undefined)
    throw usage('--pin must be "sha256:" and 64 lower-case hex characters', 'svc share prints it on the other side')
  const [digest = '', torrent] = options.companions?.split('@') ?? []
  if (options.companions !== undefined && torrent === undefined)
    throw usage('--companions must be "sha256:<hex>@btmh:1220<hex>"', 'svc share prints it on the other side')
  const hex = infohashOf(source)
  const body: ImportBtBody = {
    ...(hex.startsWith('magnet:') ? { magnet: hex } : { infohash: hex }),
    manifestDigest: pin,
    manifestFromPeers: true,
    ...(torrent !== undefined && { companions: { digest, infohash: infohashOf(torrent) } }),
    ...(options.webseed !== undefined && { webseeds: [...options.webseed] }),
    ...(options.tracker !== undefined && { trackers: [...options.tracker] }),
    ...(options.peer !== undefined && { peers: [...options.peer] }),
    ...(options.as !== undefined && { as: importName(options.as, source) }),
    ...(options.private === true && { private: true })
  }
  await takingAsTheyAre(session, options, (opaque) =>
    finishImport(session, (field) => session.client.importBt({ ...body, ...opaque, ...field }), options)
  )
}

/** Runs an import that replaces only what it is told to. Prints each warning once; those in `told` were printed before. */
export async function finishImport(
  session: Session,
  start: (field: ReplaceField) => Promise<Job>,
  options: ImportOptions,
  told: readonly string[] = []
): Promise<void> {
  if (options.detach === true) {
    const job = await start({ ...(options.replace !== true && { replace: false }), ...evictField(options) })
    if (session.json) session.document(job)
    else session.print(job.id)
    return session.note(`watch it with: svc jobs ${job.id} --follow`)
  }
  const warned = new Set(told)
  const before = session.json ? [] : membersOf(await session.client.models())
  const done = await replacingOnlyIfTold(session, options, async (field) =>
    makingRoom(session, options, async (more) => follow(session, await start({ ...field, ...more }), { warned }))
  )
  if (session.json) return
  printImport(session, done, warned)
  const refs = done.result?.quants?.map((quant) => `${done.as}:${quant}`) ?? []
  const wasHere = (ref: string, i: number): boolean =>
    before.some((member) => member.ref === ref && member.complete && member.manifest === done.result!.manifests[i])
  if (refs.length > 0 && refs.every(wasHere)) session.note('it was here already, and is the same')
}

/** Prints the result of a finished import as references for the next command. */
export function printImport(session: Session, job: Job, warned: ReadonlySet<string> = new Set()): void {
  const { result } = job
  if (result === undefined) return
  for (const warning of result.warnings ?? []) if (!warned.has(warning)) session.note(`warning: ${warning}`)
  tellReplaced(session, job)
  const quants = result.quants ?? []
  const refs = job.as === undefined ? [] : quants.map((quant) => `${job.as}:${quant}`)
  if (refs.length > 0) {
    for (const ref of refs) session.print(ref)
    const others = sideNotes(result)
    session.note(`imported ${count(refs.length, 'quant')}${others.length > 0 ? ` (${others.join(', ')})` : ''}`)
    return session.note(`next: svc path ${refs[0]} prints the path to load, svc show ${refs[0]} lists its files`)
  }
  for (const digest of result.manifests) session.print(digest)
  // an ensure has a result if it fetched companions
  if (job.kind === 'ensure') return
  session.note(
    `imported without a name: use any/name@${result.manifests[0]} with svc path and svc show; --as ns/name gives it a name`
  )
}

/** Files that were left out, and for a newer version how much was fetched and reused. */
function sideNotes(result: NonNullable<Job['result']>): string[] {
  const { skipped, omitted = 0, companions, notChosen = 0, before, fetchedBytes, reusedBytes = 0 } = result
  // the contract counts companions as skipped
  const left = companions === undefined ? skipped : omitted
  const notes: string[] = []
  if (left > 0) notes.push(`${count(left, 'file')} left out`)
  if (notChosen > 0) notes.push(`${notChosen} not chosen`)
  if (fetchedBytes !== undefined && (before !== undefined || reusedBytes > 0))
    notes.push(`${formatBytes(fetchedBytes)} fetched`)
  if (reusedBytes > 0) notes.push(`${formatBytes(reusedBytes)} reused from older versions here`)
  return notes
}
