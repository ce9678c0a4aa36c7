import { createHash, type Hash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { errnoOf } from '@svc/internal-errors'
import { type CopyOptions, nodeFilePort, syncFolder, writeAt } from '@svc/internal-files'
import { throwIfAborted } from './errors.ts'

/** The result of a write: the length, and the requested hashes in hex. */
export interface Written {
  readonly sizeBytes: number
  readonly hashes: readonly string[]
}

export type ByteChunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * Writes a new file, read-only from the start, and syncs it. Existing files are never touched (`EEXIST`).
 * @param hashes updated with every byte
 * @throws errors of the file system and of `source` as they are; the caller deletes a partial file.
 */
export async function writeNewFile(
  path: string,
  source: ByteChunks,
  hashes: readonly Hash[] = [],
  { signal, onBytes }: CopyOptions = {}
): Promise<Written> {
  await using handle = await open(path, 'wx', 0o444)
  let sizeBytes = 0
  for await (const chunk of source) {
    throwIfAborted(signal)
    for (const hash of hashes) hash.update(chunk)
    await writeAt(handle, chunk, sizeBytes)
    sizeBytes += chunk.length
    onBytes?.(chunk.length)
  }
  await handle.sync()
  return { sizeBytes, hashes: hashes.map((hash) => hash.digest('hex')) }
}

/** A hash for git's name of a blob, to be updated with its bytes. */
export const gitBlobHash = (sizeBytes: number): Hash => createHash('sha1').update(`blob ${sizeBytes}\0`)

/** Syncs a folder. File systems that cannot do that are left alone. */
export const syncFolderIfPossible = (path: string): Promise<void> =>
  syncFolder(nodeFilePort, path).catch((error: unknown) => {
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EISDIR'].includes(errnoOf(error) ?? '')) throw error
  })
