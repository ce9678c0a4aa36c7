import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { View } from '@svc/client'
import { digestFromBytes, type Sha256Digest, tryParseDigest } from '@svc/ref'

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

type FileOfView = View['files'][number]

/** The files of a model's folder, with their digests. Reads those that the store does not have as they are, which are small. */
export async function withDigests(
  files: readonly FileOfView[],
  options: Pick<ReadOptions, 'signal'> = {}
): Promise<(FileOfView & { readonly digest: Sha256Digest })[]> {
  const all: (FileOfView & { readonly digest: Sha256Digest })[] = []
  for (const file of files) {
    const known = file.digest === undefined ? undefined : tryParseDigest(file.digest)
    all.push({ ...file, digest: known ?? (await digestOfFile(file.path, options)) })
  }
  return all
}
