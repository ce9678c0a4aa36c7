import { createHash } from 'node:crypto'

/** A file of a commit, as the hub lists it. */
export interface TreeFile {
  readonly size: number
  /** Git's name of it; of a file in large-file storage, that of its pointer. */
  readonly blob_id: string
  readonly lfs_sha256?: string
  readonly lfs_size?: number
}

/** @param etag SHA-256 of a file in large-file storage, else git's SHA-1 */
export function treeFile(etag: string, sizeBytes: number): TreeFile {
  if (etag.length === 40) return { size: sizeBytes, blob_id: etag }
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${etag}\nsize ${sizeBytes}\n`
  const blobId = createHash('sha1').update(`blob ${pointer.length}\0${pointer}`).digest('hex')
  return { size: sizeBytes, blob_id: blobId, lfs_sha256: etag, lfs_size: sizeBytes }
}

/** Where a commit's listing is, below a hub cache. @param repoFolder `models--org--name` */
export const treeAt = (repoFolder: string, commit: string): string => `${repoFolder}/trees/${commit}.json`

/** `trees/<commit>.json` of a hub cache, format 1, as `huggingface_hub` writes it. */
export function formatTree(files: ReadonlyMap<string, TreeFile>): string {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify({ format_version: 1, files: Object.fromEntries(sorted) }, null, 1)
}
