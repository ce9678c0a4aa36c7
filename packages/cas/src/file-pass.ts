import { MessageChannel } from 'node:worker_threads'
import { type BlockPipe, newPipeMemory } from './block-pipe.ts'
import type { Clone, Cloner } from './clone.ts'
import { requireFreeSpace } from './commit-blob.ts'
import { CasError, throwIfAborted } from './errors.ts'
import type { HashThread } from './hash-threads.ts'
import type { HashResult, IngestOptions } from './store.ts'
import type { StoreContext } from './store-context.ts'
import type { SessionResult, SessionSpec } from './thread-protocol.ts'

/** Files from this size on may use two threads. */
const PAIR_BYTES = 8 << 20

interface PassSource {
  /** Stays open until the pass is over; the caller closes it. */
  readonly fd: number
  readonly sizeBytes: number
  readonly part: string
}

export interface FilePassResult extends HashResult {
  /** The part's open descriptor; the receiver of the result closes it. */
  readonly partFd: number | undefined
}

/**
 * Hashes a file of any size into a part. If the part can share its blocks with the file, nothing is written: the part is
 * read, or the file itself as long as it provably holds the same bytes (see {@link Clone}).
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
  const first = await context.threads.acquireBusy(signal)
  let clone: Clone | undefined
  try {
    clone = await cloner.clone(fd, part)
    if (clone === undefined) {
      await requireFreeSpace(context, file.sizeBytes)
      return await pass(context, first.thread, { ...file, isWritten: true }, options, signal)
    }
    const { partFd, snapshot } = clone
    if (snapshot !== undefined) {
      const ofSource = pass(context, first.thread, { ...file, isWritten: false }, options, signal)
      const result = await ofSource.catch(unlessResized)
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

/** For a `catch`: undefined if the source shrank or grew while it was read. Its clone did not. @throws any other error */
function unlessResized(error: unknown): undefined {
  if (!(error instanceof CasError && error.code === 'E_SIZE_MISMATCH')) throw error
}

/**
 * One thread reads, hashes and, if `isWritten`, writes; for a large file a second thread, if idle, computes the further
 * hashes and writes. Once this throws, both have stopped using the descriptor, and what was written is deleted.
 */
async function pass(
  context: StoreContext,
  first: HashThread,
  { fd, part, sizeBytes, isWritten }: PassSource & { readonly isWritten: boolean },
  options: IngestOptions,
  signal: AbortSignal
): Promise<FilePassResult> {
  const { threads } = context
  const attachments = options.attachments ?? []
  const second = sizeBytes >= PAIR_BYTES ? threads.acquireIdle() : undefined
  const session = threads.nextSession()
  const whole: SessionSpec = {
    attachments,
    sizeBytes,
    maxBytes: sizeBytes,
    part: isWritten ? part : undefined
  }
  const busy: HashThread[] = [first]
  let done: SessionResult | undefined
  const stop = (): void => busy.forEach((thread) => void thread.call('drop', { session }).catch(() => undefined))
  signal.addEventListener('abort', stop)
  try {
    let forward: BlockPipe | undefined
    if (second !== undefined) {
      const { port1, port2 } = new MessageChannel()
      const memory = newPipeMemory()
      busy.push(second.thread)
      await second.thread.call(
        'begin',
        { session, spec: { ...whole, sha256: false }, from: { ...memory, port: port1 } },
        { transfer: [port1] }
      )
      throwIfAborted(signal)
      forward = { ...memory, port: port2 }
    }
    const spec = forward === undefined ? whole : { ...whole, attachments: [], part: undefined }
    const one = await first.call(
      'run',
      { session, spec, fd, forward, progress: true },
      { transfer: forward === undefined ? [] : [forward.port], onProgress: options.onProgress }
    )
    if (second === undefined) done = one
    else {
      // `drop` may be on its way to the second thread, which would then know no such session. With one thread, the part
      // has been handed over by now.
      throwIfAborted(signal)
      done = await second.thread.call('finish', { session })
    }
    const { attachments: attached, partFd } = done
    return { digest: one.digest!, sizeBytes: one.sizeBytes, attachments: attached, partFd }
  } catch (error) {
    // once this throws the caller may close the descriptor: both threads must have stopped using it.
    await Promise.allSettled(busy.map((thread) => thread.call('drop', { session })))
    if (done?.partFd !== undefined) await context.discardPart(done.partFd, part)
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
    second?.release()
  }
}
