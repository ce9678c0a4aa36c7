import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Sha256Digest } from '@svc/ref'
import { OciError } from './errors.ts'

const CHUNK_BYTES = 1 << 20

/** A part of a blob: bytes at hand, or those of a file. */
export type ContentPart = Uint8Array | { readonly path: string; readonly sizeBytes: number }

/** A blob and where its bytes come from, one part behind the other. */
export interface BlobContent {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  readonly parts: readonly ContentPart[]
}

/**
 * The bytes of a blob from `start` on, in pieces of at most 1 MiB. A piece is valid until the next one is asked for.
 * @throws OciError `E_DIGEST_MISMATCH` for a file that is no regular file of the size stated; errors of the file system as they are
 */
export async function* readContent(content: BlobContent, start = 0): AsyncGenerator<Uint8Array, void, void> {
  let skip = start
  for (const part of content.parts) {
    const sizeBytes = part instanceof Uint8Array ? part.length : part.sizeBytes
    if (skip >= sizeBytes && sizeBytes > 0) {
      skip -= sizeBytes
      continue
    }
    if (part instanceof Uint8Array) yield part.subarray(skip)
    else yield* readFile(part.path, skip, sizeBytes, content.digest)
    skip = 0
  }
}

async function* readFile(path: string, start: number, end: number, digest: string): AsyncGenerator<Uint8Array> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile() || stats.size !== end) {
      throw new OciError('E_DIGEST_MISMATCH', `${path} has another size than ${end} bytes`, { path, digest })
    }
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - start))
    for (let at = start; at < end; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), at)
      if (bytesRead === 0) throw new OciError('E_DIGEST_MISMATCH', `${path} shrinks while it is read`, { path, digest })
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
    }
  } finally {
    await handle.close()
  }
}

/** How a copy is watched and stopped. */
export interface CopyOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes of each step, those that were there already included. */
  readonly onBytes?: ((bytes: number) => void) | undefined
}

/**
 * Writes a blob into an open file at `position`, hashed on the way. `have` bytes of it may lie there from an earlier try: they are read
 * and hashed in place of the source's, and the copy goes on behind them; where they turn out wrong, all is written anew.
 * @throws OciError `E_DIGEST_MISMATCH` when the source has other bytes; errors of the file system as they are
 */
export async function copyContent(
  content: BlobContent,
  target: FileHandle,
  position: number,
  have: number,
  { signal, onBytes }: CopyOptions = {}
): Promise<void> {
  const hash = createHash('sha256')
  const kept = Math.min(have, content.sizeBytes)
  if (kept > 0) await hashBack(target, position, kept, hash, { signal, onBytes })
  let at = kept
  for await (const chunk of readContent(content, kept)) {
    signal?.throwIfAborted()
    hash.update(chunk)
    for (let done = 0; done < chunk.length; ) {
      done += (await target.write(chunk, done, chunk.length - done, position + at + done)).bytesWritten
    }
    at += chunk.length
    onBytes?.(chunk.length)
  }
  if (`sha256:${hash.digest('hex')}` === content.digest) return
  if (kept > 0) return copyContent(content, target, position, 0, { signal })
  throw wrongBytes(content)
}

/** Reads a blob to its end. @throws OciError `E_DIGEST_MISMATCH`; errors of the file system as they are; on abort the signal's reason */
export async function checkContent(content: BlobContent, signal?: AbortSignal): Promise<void> {
  const hash = createHash('sha256')
  for await (const chunk of readContent(content)) {
    signal?.throwIfAborted()
    hash.update(chunk)
  }
  if (`sha256:${hash.digest('hex')}` !== content.digest) throw wrongBytes(content)
}

function wrongBytes(content: BlobContent): OciError {
  const [first] = content.parts
  const path = first === undefined || first instanceof Uint8Array ? undefined : first.path
  return new OciError(
    'E_DIGEST_MISMATCH',
    `the bytes of ${path ?? content.digest} are not those of ${content.digest}`,
    {
      digest: content.digest,
      ...(path !== undefined && { path })
    }
  )
}

async function hashBack(
  target: FileHandle,
  position: number,
  length: number,
  hash: Hash,
  { signal, onBytes }: CopyOptions
): Promise<void> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, length))
  for (let at = 0; at < length; ) {
    signal?.throwIfAborted()
    const { bytesRead } = await target.read(buffer, 0, Math.min(buffer.length, length - at), position + at)
    // a file that ends early is found out by its digest
    if (bytesRead === 0) return
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
    onBytes?.(bytesRead)
  }
}
