import { forEachLimited } from '@svc/internal-concurrency'
import { diskUse, type StoredModel } from '../disk-use.ts'
import { count, formatBytes } from '../format.ts'
import { readManifestBlob } from '../manifest-facts.ts'
import { membersOf } from '../models-here.ts'
import { asRepo, canonicalRef } from '../reference.ts'
import type { Session } from '../session.ts'
import { unknownHere } from '../unknown-here.ts'

/** Manifests that are read at the same time: the daemon then has work while an answer is on its way. */
const READS = 8

/** `svc du [REF]`: the space that each repository and each of its quants needs alone, and shares with others. */
export async function du(session: Session, text: string | undefined): Promise<void> {
  const { client } = session
  const wanted = text === undefined ? undefined : (asRepo(text) ?? (await memberOf(session, text)))
  const [inventory, { store }] = await Promise.all([client.models(), client.status()])
  const members = membersOf(inventory).map(({ ref, repo, manifest, companions }) => ({
    ref,
    repo,
    documents: [manifest, ...(companions === undefined ? [] : [companions])]
  }))
  const contents = await readContents(session, new Set(members.flatMap(({ documents }) => documents)))
  const models = members.map(({ ref, repo, documents }): StoredModel => {
    const digests = new Set(documents.flatMap((document) => contents.get(document)!.map(({ digest }) => digest)))
    return { ref, repo, digests }
  })
  const sizes = new Map(
    [...contents.values()].flatMap((blobs) => blobs.map(({ digest, size }) => [digest, size] as const))
  )
  const use = diskUse(models, sizes)
  const isShown = new Set(
    models.filter(({ ref, repo }) => wanted === undefined || ref === wanted || repo === wanted).map(({ ref }) => ref)
  )
  if (text !== undefined && isShown.size === 0) throw unknownHere(text, [])
  const rows = Map.groupBy(
    use.models.filter(({ ref }) => isShown.has(ref)),
    ({ ref }) => ref.slice(0, ref.lastIndexOf(':'))
  )
  const repositories = use.repositories.filter(({ ref }) => rows.has(ref))
  const { result } = await client.waitJob(await client.gc({ dryRun: true, graceSeconds: 0, views: true }))
  const freeableBytes = result?.bytes ?? 0
  if (session.json) {
    const shown = [...rows.values()].flat()
    return session.document({ models: shown, repositories, freeableBytes, storeBytes: store.bytes })
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
    const used = [...sizes.values()].reduce((sum, size) => sum + size, 0)
    // kept by tags, views and pinned imports
    const kept = store.bytes - used - freeableBytes
    const more = kept > 2 ** 20 ? `, ${formatBytes(kept)} more kept for tags, views and imports without a name` : ''
    session.note(`${count(models.length, 'model')} in ${formatBytes(used)}${more}`)
  }
  if (freeableBytes > 0) session.note(`${formatBytes(freeableBytes)} belong to no model: svc gc gives them back`)
}

interface ListedBlob {
  readonly digest: string
  readonly size: number
}

/** The blobs that each manifest, or document of companions, lists, and it itself. They are read as blobs: opening a model would count as a use of it. */
async function readContents(
  { client, signal }: Session,
  documents: ReadonlySet<string>
): Promise<ReadonlyMap<string, readonly ListedBlob[]>> {
  const contents = new Map<string, readonly ListedBlob[]>()
  await forEachLimited([...documents], READS, signal, async (document) => {
    const { files = [], sizeBytes } = await readManifestBlob(client, document)
    contents.set(document, [
      { digest: document, size: sizeBytes },
      ...files.map(({ digest, size }) => ({ digest, size }))
    ])
  })
  return contents
}

/** `ns/name:quant` of the selected member; like everywhere, a prefix of the quant suffices. */
async function memberOf(session: Session, text: string): Promise<string> {
  const { ns, name, quant } = await session.client.resolve(await canonicalRef(session, text))
  return `${ns}/${name}:${quant}`
}
