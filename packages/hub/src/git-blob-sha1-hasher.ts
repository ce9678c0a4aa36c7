import { createHash } from 'node:crypto'

/**
 * Git's name of a file: `sha1("blob " + size + "\0" + bytes)`. The default export fits hashing worker threads that load
 * `{update, digest}` factories by module URL, such as the blob store of @svc/cas.
 *
 * @throws TypeError without the total size, which is hashed before the bytes.
 */
export default function createGitBlobSha1Hasher(
  _options: unknown,
  sizeBytes: number | undefined
): { update(chunk: Uint8Array): void; digest(): Uint8Array } {
  if (sizeBytes === undefined || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
    throw new TypeError('a git blob is hashed with its size first: sizeBytes must be known before the first byte')
  const hash = createHash('sha1').update(`blob ${sizeBytes}\0`)
  return {
    update: (chunk) => void hash.update(chunk),
    digest: () => hash.digest()
  }
}
