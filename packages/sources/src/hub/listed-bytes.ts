import type { DiskBlobStore, HashAttachment, HashResult } from '@svc/cas'
import { gitBlobSha1, gitBlobSha1HasherUrl, type HubFile } from '@svc/hub'
import { readWholeBlob } from '@svc/library/parts'
import type { ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'

const MAX_GIT_BYTES = 64 << 20

/** Git's name of the bytes, computed while the store hashes them. */
export const GIT_NAME: HashAttachment = { name: 'git-blob-sha1', module: gitBlobSha1HasherUrl }

export const gitNameIn = ({ attachments }: Pick<HashResult, 'attachments'>): string =>
  Buffer.from(attachments[GIT_NAME.name]!).toString('hex')

/** Whether the hub lists a file's bytes. Those of files in git must be here. */
export async function isListedAs(
  listed: HubFile | undefined,
  { digest, size }: Pick<ManifestFile, 'digest' | 'size'>,
  store: DiskBlobStore
): Promise<boolean> {
  if (listed === undefined || listed.sizeBytes !== size) return false
  if (listed.sha256 !== undefined) return listed.sha256 === digest
  return listed.gitBlobSha1 === (await gitSha1Of(store, digest, size))
}

/** Git's name of a blob; undefined if it is absent, or larger than files in git. */
export async function gitSha1Of(
  store: DiskBlobStore,
  digest: Sha256Digest,
  sizeBytes: number
): Promise<string | undefined> {
  if (sizeBytes > MAX_GIT_BYTES) return undefined
  const reader = await store.open(digest).catch(() => undefined)
  if (reader === undefined) return undefined
  try {
    return gitBlobSha1(await readWholeBlob(reader))
  } finally {
    await reader.close()
  }
}
