import { createHash } from 'node:crypto'
import { type CopyOptions, openSized, readFully } from '@svc/internal-files'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { PublishError } from './errors.ts'

const CHUNK_BYTES = 1 << 20

/** Bytes in memory, or the path of a file. */
export type Content = Uint8Array | { readonly path: string }

/** Content with its expected size and digest. */
export interface KnownContent {
  readonly content: Content
  readonly sizeBytes: number
  readonly digest: Sha256Digest
}

export interface ContentReader {
  /** Fills `target` with the bytes from offset `start`. @throws PublishError `E_DIGEST_MISMATCH` if the file ends early */
  fill(target: Uint8Array, start: number): Promise<void>
  close(): Promise<void>
}

/** @throws PublishError `E_DIGEST_MISMATCH` unless it is a regular file of the expected size; file system errors unchanged */
export async function openContent({ content, sizeBytes }: KnownContent): Promise<ContentReader> {
  if (content instanceof Uint8Array) {
    return {
      fill: async (target, start) => target.set(content.subarray(start, start + target.length)),
      close: async () => undefined
    }
  }
  const { path } = content
  const handle = await openSized(path, sizeBytes)
  if (handle === undefined) throw new PublishError('E_DIGEST_MISMATCH', `${path} is not a file of ${sizeBytes} bytes`)
  return {
    async fill(target, start) {
      if ((await readFully(handle, target, start)) < target.length)
        throw new PublishError('E_DIGEST_MISMATCH', `${path} was truncated while it was read`)
    },
    close: () => handle.close()
  }
}

export async function readContentRange(known: KnownContent, start: number, end: number): Promise<Uint8Array> {
  const reader = await openContent(known)
  try {
    const bytes = Buffer.allocUnsafe(end - start)
    await reader.fill(bytes, start)
    return bytes
  } finally {
    await reader.close()
  }
}

/** Streams chunks of at most 1 MiB from offset `start`. A chunk is valid until the next one is requested. */
export async function* contentChunks(known: KnownContent, start = 0): AsyncGenerator<Uint8Array, void, void> {
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

/** The hash of all its bytes, in hex. */
export async function contentHash(
  known: KnownContent,
  algorithm: 'sha256' | 'md5',
  { signal, onBytes }: CopyOptions
): Promise<string> {
  const hash = createHash(algorithm)
  for await (const chunk of contentChunks(known)) {
    signal?.throwIfAborted()
    hash.update(chunk)
    onBytes?.(chunk.length)
  }
  return hash.digest('hex')
}

export function wrongBytes({ content, digest }: KnownContent): PublishError {
  const name = content instanceof Uint8Array ? 'a generated document' : content.path
  return new PublishError('E_DIGEST_MISMATCH', `${name} does not match its digest ${digest}; run svc verify`)
}

export const documentObject = (key: string, content: Uint8Array, contentType: string, cacheControl: string) => ({
  key,
  content,
  sizeBytes: content.length,
  digest: digestOf(content),
  contentType,
  cacheControl
})

export const digestOf = (bytes: Uint8Array): Sha256Digest =>
  digestFromBytes(createHash('sha256').update(bytes).digest())
