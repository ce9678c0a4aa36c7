import { count, formatBytes } from '../format.ts'
import { readDiskUse, type StoreUse } from '../models/disk-use.ts'
import { asRepo, canonicalRef, fullName } from '../models/reference.ts'
import { unknownHere } from '../models/unknown-here.ts'
import type { Session } from '../session.ts'
import { copyLines } from './standing.ts'

/** `svc du [REF]`: the space that each repository and each of its quants needs alone, and shares with others. */
export async function du(session: Session, typed: string | undefined): Promise<void> {
  const wanted = typed === undefined ? undefined : await wantedOf(session, typed)
  const use = await readDiskUse(session)
  const { models, freeableBytes, storeBytes } = use
  const isShown = new Set(
    models.map(({ ref }) => ref).filter((ref) => wanted === undefined || ref === wanted || ref.startsWith(`${wanted}:`))
  )
  if (typed !== undefined && isShown.size === 0) throw unknownHere(typed, [])
  const rows = Map.groupBy(
    models.filter(({ ref }) => isShown.has(ref)),
    ({ ref }) => ref.slice(0, ref.lastIndexOf(':'))
  )
  const repositories = use.repositories.filter(({ ref }) => rows.has(ref))
  if (session.json) {
    const shown = [...rows.values()].flat()
    return session.document({ models: shown, repositories, freeableBytes, storeBytes })
  }
  const table = repositories.flatMap((whole) => {
    const parts = rows.get(whole.ref)!
    return (wanted !== undefined && wanted !== whole.ref) || parts.length === 1 ? parts : [whole, ...parts]
  })
  const cells = table.map(({ ref, bytes, aloneBytes, sharedBytes }) => [
    ref,
    ...[bytes, aloneBytes, sharedBytes].map(formatBytes)
  ])
  session.table([['MODEL', 'SIZE', 'ALONE', 'SHARED'], ...cells])
  if (wanted === undefined) {
    const { keptBytes, sharedBytes } = use
    const used = models.reduce((sum, { aloneBytes }) => sum + aloneBytes, sharedBytes)
    const more =
      keptBytes > 2 ** 20 ? `, ${formatBytes(keptBytes)} more kept for tags, views and imports without a name` : ''
    session.note(`${count(models.length, 'model')} in ${formatBytes(used)}${more}`)
  }
  if (wanted === undefined)
    for (const line of [...leftoverLines(use), ...(await copyLines(session))]) session.note(line)
  if (freeableBytes > 0) session.note(`${formatBytes(freeableBytes)} belong to no model: svc gc frees them`)
}

function leftoverLines({ unfinished, quarantined }: Pick<StoreUse, 'unfinished' | 'quarantined'>): string[] {
  const line = (found: StoreUse['unfinished'], what: string): string[] =>
    found === undefined ? [] : [`${formatBytes(found.bytes)} more ${what}: svc gc --partial frees them`]
  return [...line(unfinished, 'of unfinished downloads'), ...line(quarantined, 'of corrupt files, moved aside')]
}

/** `ns/name`, or `ns/name:quant` of the selected member; like everywhere, a prefix of the quant suffices. */
async function wantedOf(session: Session, typed: string): Promise<string> {
  const text = await fullName(session, typed)
  const repo = asRepo(text)
  if (repo !== undefined) return repo
  const { ns, name, quant } = await session.client.resolve(await canonicalRef(session, text))
  return `${ns}/${name}:${quant}`
}
