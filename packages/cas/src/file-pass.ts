import { constants } from 'node:fs'
import type { Clone, Cloner } from './clone.ts'
import { requireFreeSpace } from './commit-blob.ts'
import { ioError, throwIfAborted } from './errors.ts'
import type { HashThread } from './hash-threads.ts'
import { PrefixHash } from './prefix-hash.ts'
import type { HashResult, IngestOptions } from './store.ts'
import type { StoreContext } from './store-context.ts'
import type { SessionSpec } from './thread-protocol.ts'

/** Files from this size on may use two threads. */
const PAIR_BYTES = 8 << 20

interface PassSource {
  /** Stays open until the pass is over; the caller closes it. */
  readonly fd: number
  readonly sizeBytes: number
  /** Where its bytes go. */
  readonly part: string
}

export interface FilePassResult extends HashResult {
  /** The part's open descriptor; the receiver of the result closes it. */
  readonly partFd: number | undefined
}

/**
 * Hashes a file of any size into a part. If the part can share its blocks with the file, nothing is written; what is
 * read then is the part, or the file itself as long as it provably holds the same bytes (see {@link Clone}).
 * @throws CasError `E_NO_SPACE` before the first byte, `E_IO`, `E_SIZE_MISMATCH`, `E_ABORTED`; no part is left then
 */
export async function filePass(
  context: StoreContext,
  cloner: Cloner,
  file: PassSource,
  options: IngestOptions,
  signal: AbortSignal
): Promise<FilePassResult> {
  const { fd, part } = file
  const first = await context.threads.takeBusy(signal)
  let clone: Clone | undefined
  try {
    clone = await cloner.clone(fd, part)
    if (clone === undefined) {
      await requireFreeSpace(context, file.sizeBytes)
      return await pass(context, first.thread, { ...file, isWritten: true }, options, signal)
    }
    const { partFd, snapshot } = clone
    if (snapshot !== undefined) {
      const source = { ...file, isWritten: false }
      // A source that shrank or grew while it was read is no error: its clone did not.
      const result = await pass(context, first.thread, source, options, signal).catch((error: unknown) => {
        if (snapshot.holds()) throw error
      })
      throwIfAborted(signal)
      if (result !== undefined && snapshot.holds()) return { ...result, partFd }
    }
    const result = await pass(context, first.thread, { ...file, fd: partFd, isWritten: false }, options, signal)
    return { ...result, partFd }
  } catch (error) {
    if (clone !== undefined) await context.discardPart(clone.partFd, part)
    throw error
  } finally {
    first.release()
  }
}

/**
 * One thread reads, hashes and, if `isWritten`, writes; for a large file a second thread, if idle, follows it with the further
 * hashes. Once this throws, both have stopped using the descriptor, and what was written is deleted.
 */
async function pass(
  context: StoreContext,
  first: HashThread,
  { fd, part, sizeBytes, isWritten }: PassSource & { readonly isWritten: boolean },
  { attachments = [], onProgress }: IngestOptions,
  signal: AbortSignal
): Promise<FilePassResult> {
  const { threads, port } = context
  const second = attachments.length > 0 && sizeBytes >= PAIR_BYTES ? threads.takeIdle() : undefined
  const session = threads.nextSession()
  const drop = (): Promise<void> => first.call('drop', { session })
  const stop = (): void => void drop().catch(() => undefined)
  let writtenFd: number | undefined
  let follower: PrefixHash | undefined
  signal.addEventListener('abort', stop)
  try {
    const spec: SessionSpec = {
      flat: true,
      attachments: second === undefined ? attachments : [],
      sizeBytes,
      maxBytes: sizeBytes,
      part: isWritten ? part : undefined
    }
    await first.call('begin', { session, spec })
    throwIfAborted(signal)
    if (second !== undefined) {
      if (isWritten) writtenFd = await openWritten(context, part)
      follower = new PrefixHash(threads, second.thread, writtenFd ?? fd, { flat: false, attachments, sizeBytes })
      throwIfAborted(signal)
    }
    const onBytes = (bytes: number): void => {
      follower?.advance(bytes)
      onProgress?.(bytes)
    }
    const { bytes } = await first.call('pump', { session, fd, progress: true }, { onProgress: onBytes })
    const further = await follower?.finish(bytes, signal)
    // With `drop` on its way the thread would know no such session.
    throwIfAborted(signal)
    const result = await first.call('finish', { session })
    return { ...result, digest: result.digest!, attachments: further?.attachments ?? result.attachments }
  } catch (error) {
    // Once this throws the caller may close the descriptor: both threads must have stopped using it.
    await Promise.allSettled([drop(), follower?.stop()])
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
    second?.release()
    if (writtenFd !== undefined) await port.close(writtenFd).catch(() => undefined)
  }
}

async function openWritten({ port }: StoreContext, part: string): Promise<number> {
  try {
    return await port.open(part, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    throw ioError(error, 'read part', part)
  }
}
