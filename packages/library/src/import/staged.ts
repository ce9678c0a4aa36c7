import { read } from 'node:fs'
import { promisify } from 'node:util'
import { CasError, type HashAttachment, type HashResult, type PartialBlob, type PartialKey } from '@svc/cas'
import { type Library, LibraryError } from '@svc/internal-state'
import type { ImportProgress } from './progress.ts'
import type { Proof } from './proof.ts'
import { type FileHere, type OpenedFile, type RemoteFile, type Reuse, readAs, type SourceFile } from './source.ts'

const CHUNK_BYTES = 256 << 10
const readAt = promisify(read)

/** The `sizeBytes` bytes of an open local file; checks that it did not change, and closes it. */
export async function* localBytes(file: Pick<FileHere, 'sizeBytes'>, opened: OpenedFile): AsyncGenerator<Uint8Array> {
  try {
    for (let offset = 0; offset < file.sizeBytes; ) {
      // a fresh buffer each time, since the chunk is passed to another thread
      const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, file.sizeBytes - offset))
      const { bytesRead } = await readAt(opened.fd, chunk, 0, chunk.length, offset)
      if (bytesRead === 0) break
      offset += bytesRead
      yield chunk.subarray(0, bytesRead)
    }
    await opened.unchanged()
  } finally {
    await opened.close()
  }
}

function partialKeyOf(file: RemoteFile): PartialKey {
  const key = file.digest ?? file.partialKey
  if (key === undefined) throw new Error(`the source gives no digest and no key for ${file.name}`)
  return { key, sizeBytes: file.sizeBytes, ...(file.digest !== undefined && { digest: file.digest }) }
}

export interface StagedFetchContext extends Pick<Library, 'store' | 'wanted'> {
  readonly progress: ImportProgress
  readonly proof: Proof
  readonly signal: AbortSignal
}

interface StagedFetchOptions<T> {
  readonly attachments?: readonly HashAttachment[]
  /** Called once the partial is held: another import may have brought the bytes meanwhile. */
  readonly present?: () => Promise<T | undefined>
  /** Verifies the partial, and commits, keeps or discards it. */
  readonly settle: (partial: PartialBlob) => Promise<T>
}

/**
 * Fetches a remote file into its partial blob. Wrong bytes are fetched once more from the start; other failures keep
 * verified bytes for the next attempt.
 * @throws LibraryError `E_NOT_IMPORTABLE` naming the file when the bytes were wrong twice; errors of the source
 */
export async function fetchRemote<T>(
  file: RemoteFile,
  { store, wanted, progress, proof, signal }: StagedFetchContext,
  { attachments = [], present, settle }: StagedFetchOptions<T>
): Promise<T> {
  const onProgress = (bytesDone: number): void => progress.advance(file.name, bytesDone)
  const rank = (): number | undefined => wanted.rankOf(readAs(file))
  for (let again = false; ; again = true) {
    const partial = await store.partial(partialKeyOf(file), {
      attachments: [...attachments, ...(file.attachments ?? [])],
      signal
    })
    let settled = false
    try {
      const already = await present?.()
      if (already !== undefined) {
        await partial.discard()
        return already
      }
      if (file.stored === undefined) await proof.begin(file, { isEmpty: partial.ranges().length === 0 })
      const missing = partial.ranges().reduce((left, [start, end]) => left - (end - start), file.sizeBytes)
      let reused = 0
      // a partial whose key is not its digest comes from its source alone, and so does a file that was wrong
      const mayReuse = file.digest !== undefined && !again
      const reuse: Reuse | undefined = mayReuse
        ? {
            begin: (of, source) => proof.reuse(file, of, source),
            took: (bytes) => {
              reused += bytes
            }
          }
        : undefined
      await file.fetch(partial, { signal, onProgress, onWaiting: progress.wait, reuse, rank })
      settled = true
      progress.fetchedBytes += missing - reused
      const outcome = await settle(partial)
      progress.reusedBytes += reused
      return outcome
    } catch (error) {
      if (!settled || !isWrongBytes(error)) {
        // this error is the reason; bytes that cannot be recorded either, on a full disk for example, are fetched again
        await partial.release().catch(() => undefined)
        throw error
      }
      await partial.discard()
      if (again) {
        const cause = error instanceof WrongBytesError ? error.cause : error
        throw new LibraryError(
          'E_NOT_IMPORTABLE',
          `${JSON.stringify(file.name)} was fetched twice, and its bytes did not match the listing: they were changed at the source, or are damaged there or on the way; try again later`,
          { cause }
        )
      }
      onProgress(0)
    }
  }
}

/** The source's own check refused the bytes. */
class WrongBytesError extends Error {
  override readonly name = 'WrongBytesError'
}

const isWrongBytes = (error: unknown): boolean =>
  error instanceof WrongBytesError ||
  (error instanceof CasError && (error.code === 'E_DIGEST_MISMATCH' || error.code === 'E_SIZE_MISMATCH'))

/** The source's own check, with its refusals marked. */
export const acceptOf =
  (file: SourceFile) =>
  async (result: HashResult): Promise<void> => {
    try {
      await file.accept?.(result)
    } catch (cause) {
      throw new WrongBytesError(`${file.name}: refused by its source`, { cause })
    }
  }

/**
 * The bytes of a remote file that was staged before; its partial is discarded after reading. Staged bytes have one
 * reader: if another file or import with the same content was faster, they are fetched again.
 */
export async function* stagedBytes(file: RemoteFile, context: StagedFetchContext): AsyncGenerator<Uint8Array> {
  const settle = async (fetched: PartialBlob): Promise<PartialBlob> => {
    await acceptOf(file)(await fetched.verify())
    return fetched
  }
  const partial = await fetchRemote(file, context, { settle })
  let complete = false
  try {
    for (let offset = 0; offset < file.sizeBytes; ) {
      const chunk = new Uint8Array(Math.min(CHUNK_BYTES, file.sizeBytes - offset))
      const count = await partial.read(chunk, offset)
      if (count === 0) break
      offset += count
      yield chunk.subarray(0, count)
    }
    complete = true
  } finally {
    await (complete ? partial.discard() : partial.release())
  }
}
