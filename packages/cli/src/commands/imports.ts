import { resolve } from 'node:path'
import type { ImportPlan, Job } from '@svc/client'
import { usage } from '../errors.ts'
import { follow } from '../follow.ts'
import { count, formatBytes, formatTable } from '../format.ts'
import { importName } from '../reference.ts'
import type { Session } from '../session.ts'

export interface ImportOptions {
  readonly as?: string
  readonly detach?: boolean
}

/** `svc import local PATH… --as ns/name` */
export async function importLocal(session: Session, paths: readonly string[], options: ImportOptions): Promise<void> {
  const absolute = paths.map((path) => resolve(session.terminal.cwd, path))
  const as = importName(options.as, absolute[0]!)
  await finish(session, await session.client.importLocal({ paths: absolute, as }), options)
}

export interface HfOptions extends ImportOptions {
  readonly revision?: string
  readonly dryRun?: boolean
}

/** `svc import hf org/name [--revision R] [--dry-run]` */
export async function importHf(session: Session, repo: string, options: HfOptions): Promise<void> {
  const body = { repo, ...(options.revision !== undefined && { revision: options.revision }) }
  if (options.dryRun !== true) return finish(session, await session.client.importHf(body), options)
  const plan = await session.client.planHf(body)
  if (session.json) session.document(plan)
  else printPlan(session, plan)
}

function printPlan(session: Session, plan: ImportPlan): void {
  const { totals } = plan
  session.print(`${plan.repo} at ${plan.commit}, as ${plan.as}`)
  if (!session.quiet) {
    const rows = plan.files.map((file) => [
      `  ${file.action}`,
      formatBytes(file.size),
      file.name,
      [file.kind, file.quant, file.reason].filter((text) => text !== undefined).join(', ')
    ])
    for (const line of formatTable(rows)) session.print(line)
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
    ...(options.webseed !== undefined && { webseeds: [...options.webseed] }),
    ...(options.tracker !== undefined && { trackers: [...options.tracker] }),
    ...(options.peer !== undefined && { peers: [...options.peer] })
  })
  await finish(session, job, options)
}

export interface CatalogOptions extends ImportOptions {
  readonly quant?: string
  readonly trustCatalog?: boolean
  readonly peer?: readonly string[]
}

/** `svc import catalog owner/name [--quant Q] [--trust-catalog]` */
export async function importCatalog(session: Session, repo: string, options: CatalogOptions): Promise<void> {
  const job = await session.client.importCatalog({
    repo,
    ...(options.quant !== undefined && { quant: options.quant }),
    ...(options.trustCatalog === true && { trustCatalog: true }),
    ...(options.as !== undefined && { as: options.as }),
    ...(options.peer !== undefined && { peers: [...options.peer] })
  })
  await finish(session, job, options)
}

/** Watches an import and tells what came of it. */
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
    session.note(`imported ${count(refs.length, 'quant')}${skipped}; look at it with: svc show ${refs[0]}`)
    return
  }
  for (const digest of result.manifests) session.print(digest)
  session.note(`imported; look at it with: svc show any/name@${result.manifests[0]}`)
}
