import { workerUrl } from '@svc/internal-workers'
import createGitBlobSha1Hasher from './git-blob-sha1-hasher.ts'

/** URL of the module whose default export hashes a stream as git does; for worker threads. */
export const gitBlobSha1HasherUrl: string = workerUrl('./git-blob-sha1-hasher', import.meta.url).href

/** Git's name of these bytes, as 40 hex characters. For small texts; hash large data in a worker thread. */
export function gitBlobSha1(bytes: Uint8Array): string {
  const hasher = createGitBlobSha1Hasher(undefined, bytes.length)
  hasher.update(bytes)
  return Buffer.from(hasher.digest()).toString('hex')
}

/** The text that git stores for a file in LFS. */
export const lfsPointerText = (sha256Hex: string, sizeBytes: number): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256Hex}\nsize ${sizeBytes}\n`
