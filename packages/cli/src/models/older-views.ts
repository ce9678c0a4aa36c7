import type { ViewEntry } from '@svc/client'
import type { Session } from '../session.ts'
import { jsonDocument, readManifestBlob } from './documents.ts'
import { membersOf, type StoredMember } from './models-here.ts'

/** A view at a place that a user chose, which shows an older version of a model. */
export interface OlderView {
  readonly view: ViewEntry
  /** The manifest that it shows. */
  readonly manifest: string
  /** The version of the same repository and quant that has a name now. */
  readonly newer: StoredMember
}

/** The views that an upgrade left behind: their artifact has no name any more, and its repository's quant has another one. */
export async function olderViews(session: Session, path?: string): Promise<readonly OlderView[]> {
  const views = (await session.client.views()).filter((view) => !view.managed && (path ?? view.path) === view.path)
  if (views.length === 0) return []
  const members = membersOf(await session.client.models())
  const named = new Set(members.map(({ manifest }) => manifest))
  const found: OlderView[] = []
  for (const view of views)
    for (const manifest of [view.manifestDigest, ...(view.others ?? [])]) {
      const newer = named.has(manifest) ? undefined : await newerOf(session, manifest, members)
      if (newer !== undefined) found.push({ view, manifest, newer })
    }
  return found
}

async function newerOf(
  { client }: Session,
  digest: string,
  members: readonly StoredMember[]
): Promise<StoredMember | undefined> {
  const { annotations, files } = await readManifestBlob(client, digest)
  const repo = annotations?.['svc.hf.repo']
  const config = files?.find(({ kind }) => kind === 'config')
  if (repo === undefined || config === undefined) return undefined
  const { quantization } = await jsonDocument(client, config.digest).catch(() => ({ quantization: undefined }))
  return members.find(({ origin, quant }) => origin?.repo === repo && quant === quantization)
}
