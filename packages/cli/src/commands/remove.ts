import type { Job, RemovedModel } from '@svc/client'
import { parseRef } from '@svc/ref'
import { CliError, usage } from '../errors.ts'
import { follow } from '../follow.ts'
import { count, formatBytes } from '../format.ts'
import { membersOf, repositoryIn } from '../models/models-here.ts'
import { olderVersions } from '../models/older-versions.ts'
import { asRepo, canonicalRef, changeEach, fullName, shortRef } from '../models/reference.ts'
import { letGoOfViews } from '../models/runtime-view.ts'
import { canAsk, saysYes } from '../questions/question.ts'
import type { Session } from '../session.ts'

/** `svc rm REF… [--tags]`: removes names; `ns/name` stands for all its quants. */
export async function rm(
  session: Session,
  texts: readonly string[],
  options: { readonly tags?: boolean }
): Promise<void> {
  let freeable = 0
  const removed: RemovedModel[] = []
  for (const text of texts) {
    const model = await removeOne(session, text, options.tags === true)
    removed.push(model)
    freeable += model.freeableBytes
    if (!session.json) session.print(`removed ${model.ref}`)
    for (const tag of model.tags) session.note(`removed its tag ${tag}`)
    for (const { quant, holders = [] } of model.quants)
      if (holders.length > 0) session.note(`${quant} keeps its space: ${holders.map(spoken).join('; ')}`)
  }
  if (session.json) return session.document({ removed })
  await tellOlder(session, removed)
  if (freeable > 0) session.note(`svc gc frees ${formatBytes(freeable)}`)
}

/** The older versions that upgrades kept of what was removed. */
async function tellOlder(session: Session, removed: readonly RemovedModel[]): Promise<void> {
  const repos = new Set(removed.map(({ ref }) => ref.split(/[:@]/, 1)[0]))
  for (const { ref, repo, sizeBytes } of await olderVersions(session, await session.client.models()))
    if (repos.has(repo))
      session.note(
        `${ref}, an older version, stays and takes ${formatBytes(sizeBytes)}; svc gc --older-than 0 removes those that upgrades kept`
      )
}

type Holder = NonNullable<RemovedModel['quants'][number]['holders']>[number]

function spoken({ kind, what = '' }: Holder): string {
  switch (kind) {
    case 'tag':
      return `the tag ${what} keeps it (svc rm --tags, svc tag rm)`
    case 'view':
      return `the view ${what} needs it (svc view --rm, once no command uses it)`
    case 'job':
      return `the job ${what.slice(0, 8)} needs it (svc cancel)`
    case 'pin':
      return 'it is pinned by its digest'
    case 'use':
      return 'it is being read'
    default:
      return `it is also ${what}`
  }
}

/** Removes what a text names: a model, one quant of it, or a pinned import. */
export async function removeOne(session: Session, typed: string, allTags: boolean): Promise<RemovedModel> {
  const text = await fullName(session, typed)
  const repo = asRepo(text)
  if (repo !== undefined) {
    const [ns, name] = repo.split('/') as [string, string]
    const { members = [] } = repositoryIn(await session.client.models(), repo) ?? {}
    await letGoOfViews(session, new Set(members.map(({ manifest }) => manifest)))
    return session.client.removeModel({ ns, name, allTags })
  }
  const canonical = await canonicalRef(session, text)
  const ref = parseRef(canonical)
  if (ref.quant === undefined) {
    await letGoOfViews(session, new Set([ref.digest]))
    return session.client.unpin(ref.digest)
  }
  if (ref.tag !== undefined) throw usage('remove a tag with svc tag rm', `svc tag rm ${ref.ns}/${ref.name}:${ref.tag}`)
  const { quant, manifestDigest } = await session.client.resolve(canonical)
  const name = `${ref.ns}/${ref.name}:${quant}`
  if (quant !== ref.quant) await requireMeant(session, name, text)
  await letGoOfViews(session, new Set([manifestDigest]))
  return session.client.removeModel({ ns: ref.ns, name: ref.name, quant, allTags })
}

/** What is removed is typed as a whole, or a person confirms it. @throws CliError */
async function requireMeant(session: Session, ref: string, typed: string): Promise<void> {
  if (canAsk(session) && (await saysYes(session, `"${typed}" means ${ref}. Remove it? `))) return
  throw new CliError('usage', `"${typed}" is only the beginning of ${ref}; nothing was removed`, {
    candidates: [ref],
    hint: `svc rm ${ref}`
  })
}

export interface GcOptions {
  readonly dryRun?: boolean
  readonly grace?: string
  readonly olderThan?: string
  readonly partial?: boolean
}

/** `svc gc`: frees the space of everything unneeded. Whoever types this wants it now, so there is no grace period by default. */
export async function gc(
  session: Session,
  { dryRun = false, grace = '0', olderThan, partial }: GcOptions
): Promise<void> {
  // folders of svc path keep no model that has lost its name
  const started = await session.client.gc({
    dryRun,
    graceSeconds: secondsOf(grace),
    views: true,
    ...(partial === true && { leftovers: true }),
    ...(olderThan !== undefined && { beforeOlderThanSeconds: secondsOf(olderThan) })
  })
  const { result } = await follow(session, started)
  if (session.json) return
  const { blobs = 0, bytes = 0, views = 0, tags = 0, unreadable = 0, leftovers = 0, leftoverBytes = 0 } = result ?? {}
  if (unreadable > 0)
    session.note(
      `${count(unreadable, 'record')} cannot be read, and everything that they may need was kept: svc doctor`
    )
  if (tags > 0)
    session.note(`${dryRun ? 'would remove' : 'removed'} ${count(tags, 'older version')} that upgrades kept`)
  if (leftovers > 0)
    session.print(
      `${dryRun ? 'would free' : 'freed'} ${formatBytes(leftoverBytes)} of unfinished downloads and corrupt files, ${count(leftovers, 'file')}`
    )
  if (blobs === 0 && views === 0) return leftovers === 0 ? session.note('nothing to remove') : undefined
  session.print(`${dryRun ? 'would free' : 'freed'} ${formatBytes(bytes)}, ${count(blobs, 'blob')}`)
  if (views > 0)
    session.note(
      `${dryRun ? 'would remove' : 'removed'} ${count(views, 'folder')} of svc path, whose models were removed or replaced`
    )
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** `90`, `90s`, `15m`, `12h`, `7d`. @throws CliError */
export function secondsOf(text: string): number {
  const match = /^(\d{1,9})([smhd]?)$/.exec(text)
  if (match === null) throw usage(`"${text}" is not a time`, 'write seconds, or 15m, 12h, 7d')
  return Number(match[1]) * UNITS[match[2] || 's']!
}

/** `svc private REF… [--off]`; `ns/name` stands for all its quants. */
export async function setPrivate(
  session: Session,
  texts: readonly string[],
  options: { readonly off?: boolean }
): Promise<void> {
  const kept = options.off !== true
  const done = await changeEach(session, texts, (ref) => session.client.setPrivate({ ref, private: kept }))
  if (session.json) return session.document({ models: done })
  if (kept) return session.note('now private: neither announced nor shared')
  const withheld = new Map<string, string>()
  for (const { ref } of done)
    for (const door of (await session.client.why(ref)).doors)
      if (door.door === 'swarm' && door.withheld !== undefined) withheld.set(ref, door.withheld.reason)
  if (withheld.size < done.length) session.note('no longer private: shared while the daemon seeds')
  for (const [ref, reason] of withheld) session.note(`${shortRef(ref)} is still withheld: ${reason}`)
}

/** Prints the models that `verify` found damaged, each with a way to repair it; then what affects no model. */
export async function printHurt(session: Session, { verify, target }: Job): Promise<void> {
  const members = membersOf(await session.client.models())
  const hurt = members.filter(
    ({ complete, away, manifest }) => !complete && away !== true && (target === 'all' || target === manifest)
  )
  for (const { ref, missingBytes = 0 } of hurt)
    session.print(`${ref}  ${formatBytes(missingBytes)} damaged or missing; repair it with: svc pull ${ref}`)
  for (const text of verify?.stateErrors ?? []) session.print(`state: ${text}`)
  // artifacts without a name are identified by digest
  if (hurt.length > 0) return
  for (const digest of verify?.mismatched ?? []) session.print(`corrupt  ${digest}, moved to quarantine`)
  for (const digest of verify?.missing ?? []) session.print(`missing  ${digest}`)
}
