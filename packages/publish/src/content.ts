import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { PublishError } from './errors.ts'

const CHUNK_BYTES = 1 << 20

/** Bytes at hand, or those of a file. */
export type Content = Uint8Array | { readonly path: string }

/** Content with what is known of it. */
export interface KnownContent {
  readonly content: Content
  readonly sizeBytes: number
  readonly digest: Sha256Digest
}

/** Reads an object's bytes by position. */
export interface ContentReader {
  /** Fills `target` from `start` on. @throws PublishError `E_DIGEST_MISMATCH` where the file has become shorter */
  fill(target: Uint8Array, start: number): Promise<void>
  close(): Promise<void>
}

/** @throws PublishError `E_DIGEST_MISMATCH` for a file that is no regular file of the size stated; errors of the file system as they are */
export async function openContent({ content, sizeBytes }: KnownContent): Promise<ContentReader> {
  if (content instanceof Uint8Array) {
    return {
      fill: async (target, start) => target.set(content.subarray(start, start + target.length)),
      close: async () => undefined
    }
  }
  const { path } = content
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const stats = await handle.stat()
  if (!stats.isFile() || stats.size !== sizeBytes) {
    await handle.close()
    throw new PublishError('E_DIGEST_MISMATCH', `${path} has another size than ${sizeBytes} bytes`)
  }
  return {
    async fill(target, start) {
      if ((await readUpTo(handle, target, start)) < target.length) {
        throw new PublishError('E_DIGEST_MISMATCH', `${path} shrinks while it is read`)
      }
    },
    close: () => handle.close()
  }
}

async function readUpTo(handle: FileHandle, target: Uint8Array, start: number): Promise<number> {
  let done = 0
  while (done < target.length) {
    const { bytesRead } = await handle.read(target, done, target.length - done, start + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done
}

/** The bytes `[start, end)` in one piece. */
export async function readContent(known: KnownContent, start: number, end: number): Promise<Uint8Array> {
  const reader = await openContent(known)
  try {
    const bytes = Buffer.allocUnsafe(end - start)
    await reader.fill(bytes, start)
    return bytes
  } finally {
    await reader.close()
  }
}

/** Pieces of at most 1 MiB from `start` on, each valid until the next one is asked for. */
export async function* chunksOf(known: KnownContent, start = 0): AsyncGenerator<Uint8Array, void, void> {
  const reader = await openContent(known)
  try {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, known.sizeBytes - start))
    for (let at = start; at < known.sizeBytes; at += buffer.length) {
      const chunk = buffer.subarray(0, Math.min(buffer.length, known.sizeBytes - at))
      await reader.fill(chunk, at)
      yield chunk
    }
  } finally {
    await reader.close()
  }
}

/** What to say when bytes are not those of their digest. */
export function wrongBytes({ content, digest }: KnownContent): PublishError {
  const name = content instanceof Uint8Array ? 'a document' : content.path
  return new PublishError(
    'E_DIGEST_MISMATCH',
    `the bytes of ${name} are not those of ${digest}; svc verify finds out more`
  )
}

/** The digest of bytes at hand. */
export const digestOf = (bytes: Uint8Array): Sha256Digest =>
  digestFromBytes(createHash('sha256').update(bytes).digest())
