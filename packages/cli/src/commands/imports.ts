import { resolve } from 'node:path'
import type { ImportHfBody, ImportPlan, Job } from '@svc/client'
import { CliError, usage } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { follow } from '../follow.ts'
import { count, formatBytes, formatTable } from '../format.ts'
import { settleOwnModels } from '../own-models.ts'
import { printable } from '../printable.ts'
import { importName } from '../reference.ts'
import type { Session } from '../session.ts'

export interface ImportOptions {
  readonly as?: string
  readonly detach?: boolean
  readonly private?: boolean
}

/** What imports from disk, hub and catalog take besides. */
interface ChoiceOptions extends ImportOptions {
  readonly keepNames?: boolean
  readonly quant?: string
  readonly file?: readonly string[]
}

/** The choice as the daemon takes it: quants are read as publishers spell them, unless their names are to be kept. */
const choiceOf = ({ keepNames, quant, file, private: kept }: ChoiceOptions) => ({
  ...(keepNames !== true && { names: 'normalized' as const }),
  ...(quant !== undefined && { quants: quant.split(',').filter((each) => each !== '') }),
  ...(file !== undefined && { files: [...file] }),
  ...(kept === true && { private: true })
})

/** `svc import local PATH… --as ns/name` */
export async function importLocal(session: Session, paths: readonly string[], options: ChoiceOptions): Promise<void> {
  const absolute = paths.map((path) => resolve(session.terminal.cwd, path))
  const as = importName(options.as, absolute[0]!)
  if (options.private !== true) await settleOwnModels(session)
  await finish(session, await session.client.importLocal({ paths: absolute, as, ...choiceOf(options) }), options)
}

export interface HfOptions extends ChoiceOptions {
  readonly revision?: string
  readonly dryRun?: boolean
  readonly all?: boolean
}

/** `svc import hf org/name[:QUANT[,QUANT]] [--file GLOB]… [--revision R] [--as ns/name] [--private] [--keep-names] [--all] [--dry-run]` */
export async function importHf(session: Session, text: string, options: HfOptions): Promise<void> {
  const [repo, quant] = withQuants(text)
  const { revision, as, all } = options
  const body: ImportHfBody = {
    repo,
    ...choiceOf({ ...options, ...(quant !== undefined && { quant }) }),
    ...(revision !== undefined && { revision }),
    ...(as !== undefined && { as: importName(as, repo) })
  }
  if (options.dryRun === true) {
    const plan = await session.client.planHf(body)
    return session.json ? session.document(plan) : printPlan(session, plan)
  }
  const chosen = quant !== undefined || options.file !== undefined || all === true
  await finish(session, await session.client.importHf(chosen ? body : await choose(session, body)), options)
}

/** `org/name:Q4_K_M,Q8_0`, as llama.cpp spells it, into the repository and its quants. */
function withQuants(text: string): readonly [string, string | undefined] {
  const colon = text.indexOf(':')
  return colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)]
}

/** Where a repository holds several quants, which of them: asked on a terminal, else refused with the list. */
async function choose(session: Session, body: ImportHfBody): Promise<ImportHfBody> {
  const plan = await session.client.planHf(body)
  // the commit that was looked at is the one to import
  const pinned = { ...body, revision: plan.commit }
  if (plan.quants.length < 2) return pinned
  const example = `svc import hf ${body.repo}:${plan.quants[0]}`
  const { stdin, stderr } = session.terminal
  const several = `${plan.repo} holds ${plan.quants.length} quants`
  if (!session.json) for (const line of artifactTable(plan)) stderr.write(`${printable(line)}\n`)
  if (session.json || session.quiet || stdin?.isTTY !== true || stderr.isTTY !== true)
    throw new CliError(EXIT.usage, `${several}; name those that you want`, {
      candidates: session.json ? plan.quants : [],
      hint: `${example}, or --all for ${formatBytes(plan.totals.fetchBytes)}`
    })
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: stdin, output: stderr, terminal: false })
  let answer: string
  try {
    answer = (
      await lines.question(`${several}. Which? (names with commas, or all) `, { signal: session.signal })
    ).trim()
  } finally {
    lines.close()
  }
  if (answer === '') throw usage('nothing was chosen', example)
  return answer.toLowerCase() === 'all' ? pinned : { ...pinned, quants: answer.split(/[\s,]+/) }
}

function artifactTable({ artifacts }: ImportPlan): string[] {
  const rows = artifacts.map(({ quant, bytes, files, bytesPresent }) => [
    `  ${quant}`,
    formatBytes(bytes),
    count(files, 'file'),
    bytesPresent === 0 ? '' : bytesPresent >= bytes ? 'here' : `${formatBytes(bytesPresent)} here`
  ])
  return formatTable([['  QUANT', 'SIZE', 'FILES', ''], ...rows])
}

function printPlan(session: Session, plan: ImportPlan): void {
  const { totals } = plan
  session.print(`${plan.repo} at ${plan.commit}, as ${plan.as}`)
  if (!session.quiet) {
    const rows = plan.files.map((file) => [
      `  ${file.action}`,
      formatBytes(file.size),
      file.name,
      [file.kind, file.quant, file.reason, file.upstream && `named ${file.upstream} there`]
        .filter((text) => text !== undefined)
        .join(', ')
    ])
    for (const line of formatTable(rows)) session.print(line)
    for (const line of artifactTable(plan)) session.print(line)
  }
  session.print(`fetch   ${count(totals.fetchFiles, 'file')}, ${formatBytes(totals.fetchBytes)}`)
  session.print(`store   ${count(totals.storeFiles, 'file')}, ${formatBytes(totals.storeBytes)}`)
  session.print(`skip    ${count(totals.skipFiles, 'file')}, ${formatBytes(totals.skipBytes)}`)
  session.print(`quants  ${plan.quants.join(', ') || 'none'}`)
  session.print(`license ${plan.license ?? 'none found'}`)
  for (const warning of plan.warnings) session.note(`warning: ${warning}`)
}

export interface BtOptions extends ImportOptions {
  readonly pin?: string
  readonly webseed?: readonly string[]
  readonly tracker?: readonly string[]
  readonly peer?: readonly string[]
}

/** `svc import bt MAGNET|INFOHASH --pin DIGEST …` */
export async function importBt(session: Session, source: string, options: BtOptions): Promise<void> {
  if (options.pin === undefined) {
    const hint = 'add --pin sha256:<hex>, the manifest digest; svc share prints it on the other side'
    throw usage('a magnet or infohash alone does not say which model it must be', hint)
  }
  const hex = /^[0-9a-f]{64}$/.test(source) ? `btmh:1220${source}` : source
  const job = await session.client.importBt({
    ...(hex.startsWith('magnet:') ? { magnet: hex } : { infohash: hex }),
    manifestDigest: /^[0-9a-f]{64}$/.test(options.pin) ? `sha256:${options.pin}` : options.pin,
    manifestFromPeers: true,
    ...(options.webseed !== undefined && { webseeds: [...options.webseed] }),
    ...(options.tracker !== undefined && { trackers: [...options.tracker] }),
    ...(options.peer !== undefined && { peers: [...options.peer] }),
    ...(options.as !== undefined && { as: importName(options.as, source) }),
    ...(options.private === true && { private: true })
  })
  await finish(session, job, options)
}

export interface CatalogOptions extends ChoiceOptions {
  readonly trustCatalog?: boolean
  readonly peer?: readonly string[]
}

/** `svc import catalog owner/name [--quant Q] [--trust-catalog]` */
export async function importCatalog(session: Session, text: string, options: CatalogOptions): Promise<void> {
  const [repo, named] = withQuants(text)
  const quant = named ?? options.quant
  const { quant: _, ...choice } = options
  const job = await session.client.importCatalog({
    repo,
    ...choiceOf(choice),
    ...(quant !== undefined && { quant }),
    ...(options.trustCatalog === true && { trustCatalog: true }),
    ...(options.as !== undefined && { as: options.as }),
    ...(options.peer !== undefined && { peers: [...options.peer] })
  })
  await finish(session, job, options)
}

/** Watches an import and prints its result. */
async function finish(session: Session, job: Job, options: ImportOptions): Promise<void> {
  if (options.detach === true) {
    if (session.json) session.document(job)
    else session.print(job.id)
    return session.note(`look again with: svc jobs ${job.id} --follow`)
  }
  const done = await follow(session, job)
  if (!session.json) printImport(session, done)
}

/** The result of a finished import, as references to type next. */
export function printImport(session: Session, job: Job): void {
  const { result } = job
  if (result === undefined) return
  for (const warning of result.warnings ?? []) session.note(`warning: ${warning}`)
  const quants = result.quants ?? []
  const refs = job.as === undefined ? [] : quants.map((quant) => `${job.as}:${quant}`)
  if (refs.length > 0) {
    for (const ref of refs) session.print(ref)
    const skipped = result.skipped > 0 ? `, ${count(result.skipped, 'file')} skipped` : ''
    const left =
      result.notChosen === undefined || result.notChosen === 0 ? '' : `, ${count(result.notChosen, 'file')} not chosen`
    session.note(`imported ${count(refs.length, 'quant')}${skipped}${left}; look at it with: svc show ${refs[0]}`)
    return
  }
  for (const digest of result.manifests) session.print(digest)
  session.note(`imported; look at it with: svc show any/name@${result.manifests[0]}`)
}
