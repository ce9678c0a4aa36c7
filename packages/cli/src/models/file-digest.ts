import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'

interface ReadOptions {
  readonly signal?: AbortSignal
  readonly start?: number
  /** The last byte. */
  readonly end?: number
}

/** The digest of a file, or of a part of it. @throws the error of a file that cannot be read */
export async function digestOfFile(path: string, options: ReadOptions = {}): Promise<Sha256Digest> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, options)) hash.update(chunk as Buffer)
  return digestFromBytes(hash.digest())
}
