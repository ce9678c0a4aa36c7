import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'

/**
 * Hashes `prefix` followed by a file's bytes, chunk by chunk: a client's choice of file must not determine how much
 * memory that takes, or how long others wait. @throws errors of the file system
 */
export async function hashFile(path: string, algorithm: 'sha1' | 'sha256', prefix = ''): Promise<Buffer> {
  const hash = createHash(algorithm).update(prefix)
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest()
}
