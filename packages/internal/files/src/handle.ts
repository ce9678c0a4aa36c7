import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'

const CHUNK_BYTES = 1 << 20

/** Fills `target` from `position`. @returns the number of bytes, fewer if the file ends earlier */
export async function readFully(handle: FileHandle, target: Uint8Array, position: number): Promise<number> {
  let done = 0
  while (done < target.length) {
    const { bytesRead } = await handle.read(target, done, target.length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done
}

/**
 * The bytes `[start, end)` of an open file, in chunks of at most 1 MiB; fewer if the file ends earlier. The buffer is reused: a chunk is
 * valid until the next one is requested.
 */
export async function* readChunks(handle: FileHandle, start = 0, end = Infinity): AsyncGenerator<Buffer, void, void> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, end - start)))
  for (let at = start; at < end; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Writes all of `bytes` at `position`. */
export async function writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}

export interface CopyInput {
  readonly sizeBytes: number
  /** `sha256:<64 hex>` */
  readonly digest: string
  /** The bytes from `start` on; a chunk may be overwritten when the next one is requested. */
  bytesFrom(start: number): AsyncIterable<Uint8Array>
}

/** Cancellation and progress of a copy. */
export interface CopyOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the number of bytes of each step, including those that were already there. */
  readonly onBytes?: ((bytes: number) => void) | undefined
}

/**
 * Writes a source into an open file at `position`, and hashes it on the way. If `have` bytes are there from an earlier attempt, those are
 * read and hashed instead of the source's, and the copy continues after them; if they turn out wrong, all of it is written again.
 * @returns false when the source's bytes do not match the digest. @throws errors of the file system and the source as they are
 */
export async function copyVerified(
  { sizeBytes, digest, bytesFrom }: CopyInput,
  target: FileHandle,
  position: number,
  have: number,
  { signal, onBytes }: CopyOptions = {}
): Promise<boolean> {
  const hash = createHash('sha256')
  const take = (chunk: Uint8Array): void => {
    signal?.throwIfAborted()
    hash.update(chunk)
  }
  const kept = Math.min(have, sizeBytes)
  for await (const chunk of readChunks(target, position, position + kept)) {
    take(chunk)
    onBytes?.(chunk.length)
  }
  let at = position + kept
  for await (const chunk of bytesFrom(kept)) {
    take(chunk)
    await writeAt(target, chunk, at)
    at += chunk.length
    onBytes?.(chunk.length)
  }
  if (`sha256:${hash.digest('hex')}` === digest) return true
  return kept > 0 && copyVerified({ sizeBytes, digest, bytesFrom }, target, position, 0, { signal })
}
