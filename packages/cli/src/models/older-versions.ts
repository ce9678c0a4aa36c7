import type { Inventory } from '@svc/client'
import type { Session } from '../session.ts'
import { jsonDocument, readManifestBlob } from './documents.ts'
import { membersOf } from './models-here.ts'

/** An artifact that only the tag of an upgrade keeps. */
export interface UpgradedVersion {
  /** `ns/name:before-…+quant` */
  readonly ref: string
  /** `ns/name` */
  readonly repo: string
  /** Of its files; bytes that the present version shares count as well. */
  readonly sizeBytes: number
}

/** What upgrades kept under tags `before-<date>`, and no name has any more. Indexes that cannot be read are left out. */
export async function olderVersions({ client }: Session, inventory: Inventory): Promise<readonly UpgradedVersion[]> {
  const named = new Set(membersOf(inventory).map(({ manifest }) => manifest))
  const found: UpgradedVersion[] = []
  for (const { repo, tag, digest } of inventory.tags.filter((each) => each.tag.startsWith('before-'))) {
    const { members = [] } = (await jsonDocument(client, digest).catch(() => ({}))) as {
      readonly members?: readonly { readonly quant: string; readonly manifest: string }[]
    }
    for (const { quant, manifest } of members) {
      if (named.has(manifest)) continue
      const { files = [] } = await readManifestBlob(client, manifest)
      const sizeBytes = files.reduce((sum, { size }) => sum + size, 0)
      found.push({ ref: `${repo}:${tag}+${quant}`, repo, sizeBytes })
    }
  }
  return found
}
