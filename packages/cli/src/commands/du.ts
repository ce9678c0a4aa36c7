import { count, formatBytes } from '../format.ts'
import { readDiskUse } from '../models/disk-use.ts'
import { asRepo, canonicalRef } from '../models/reference.ts'
import { unknownHere } from '../models/unknown-here.ts'
import type { Session } from '../session.ts'

/** `svc du [REF]`: the space that each repository and each of its quants needs alone, and shares with others. */
export async function du(session: Session, text: string | undefined): Promise<void> {
  const wanted = text === undefined ? undefined : (asRepo(text) ?? (await memberOf(session, text)))
  const use = await readDiskUse(session)
  const { models, freeableBytes, storeBytes } = use
  const isShown = new Set(
    models.map(({ ref }) => ref).filter((ref) => wanted === undefined || ref === wanted || ref.startsWith(`${wanted}:`))
  )
  if (text !== undefined && isShown.size === 0) throw unknownHere(text, [])
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
  if (freeableBytes > 0) session.note(`${formatBytes(freeableBytes)} belong to no model: svc gc frees them`)
}

/** `ns/name:quant` of the selected member; like everywhere, a prefix of the quant suffices. */
async function memberOf(session: Session, text: string): Promise<string> {
  const { ns, name, quant } = await session.client.resolve(await canonicalRef(session, text))
  return `${ns}/${name}:${quant}`
}
