import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { type CopyInput, type CopyOptions, copyVerified, openSized, readChunks } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { digestOf } from './document.ts'
import { OciError } from './errors.ts'

export type { CopyOptions }

/** A segment of a blob: bytes in memory, or a file. */
export type ContentSegment = Uint8Array | { readonly path: string; readonly sizeBytes: number }

/** A blob and the segments that its bytes come from, in order. */
export interface BlobContent {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  readonly segments: readonly ContentSegment[]
}

export const contentOfBytes = (bytes: Uint8Array, digest = digestOf(bytes)): BlobContent => ({
  digest,
  sizeBytes: bytes.length,
  segments: [bytes]
})

/**
 * The bytes of a blob from `start` on, in chunks of at most 1 MiB. A chunk is valid until the next one is requested.
 * @throws OciError `E_DIGEST_MISMATCH` for a path that is not a regular file of the stated size; errors of the file
 *   system as they are
 */
export async function* readContent(content: BlobContent, start = 0): AsyncGenerator<Uint8Array, void, void> {
  let skip = start
  for (const segment of content.segments) {
    const sizeBytes = segment instanceof Uint8Array ? segment.length : segment.sizeBytes
    if (skip >= sizeBytes && sizeBytes > 0) {
      skip -= sizeBytes
      continue
    }
    if (segment instanceof Uint8Array) yield segment.subarray(skip)
    else yield* readFile(segment.path, skip, sizeBytes, content.digest)
    skip = 0
  }
}

async function* readFile(path: string, start: number, end: number, digest: string): AsyncGenerator<Uint8Array> {
  await using handle = await openSized(path, end)
  if (handle === undefined)
    throw new OciError('E_DIGEST_MISMATCH', `${path} is not a file of ${end} bytes`, { path, digest })
  let at = start
  for await (const chunk of readChunks(handle, start, end)) {
    yield chunk
    at += chunk.length
  }
  if (at < end) throw new OciError('E_DIGEST_MISMATCH', `${path} was truncated while it was read`, { path, digest })
}

/** A blob as {@link copyVerified} takes it. */
export const inputOf = (content: BlobContent): CopyInput => ({
  ...content,
  bytesFrom: (start) => readContent(content, start)
})

/**
 * Writes a blob into an open file, as {@link copyVerified} does.
 * @throws OciError `E_DIGEST_MISMATCH` when the source's bytes do not match the digest; errors of the file system as
 *   they are
 */
export async function copyContent(
  content: BlobContent,
  target: FileHandle,
  position: number,
  have: number,
  options: CopyOptions
): Promise<void> {
  if (!(await copyVerified(inputOf(content), target, position, have, options))) throw wrongBytes(content)
}

/**
 * Reads a blob to its end and checks its digest.
 * @throws OciError `E_DIGEST_MISMATCH`; errors of the file system as they are; on abort the signal's reason
 */
export async function checkContent(content: BlobContent, signal?: AbortSignal): Promise<void> {
  const hash = createHash('sha256')
  for await (const chunk of readContent(content)) {
    signal?.throwIfAborted()
    hash.update(chunk)
  }
  if (`sha256:${hash.digest('hex')}` !== content.digest) throw wrongBytes(content)
}

export function wrongBytes(content: BlobContent): OciError {
  const [first] = content.segments
  const path = first === undefined || first instanceof Uint8Array ? undefined : first.path
  return new OciError('E_DIGEST_MISMATCH', `${path ?? 'the content'} does not match its digest ${content.digest}`, {
    digest: content.digest,
    ...(path !== undefined && { path })
  })
}
