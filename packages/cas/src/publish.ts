import type { Sha256Digest } from '@svc/ref'
import { CasError, decodeError, errnoOf, ioError, throwIfAborted } from './errors.ts'
import type { HashResult, IngestOptions, IngestResult } from './store.ts'
import { checkExpected, type StoreContext } from './store-context.ts'
import type { CommitItem } from './thread-protocol.ts'

/** Files below this go to a thread several at a time. */
export const SMALL_BYTES = 4 << 20
/** Room on the disk is asked for from here on; smaller blobs find out. */
const ROOM_BYTES = 16 << 20

/** Bytes that are to become a blob: a part file with its open descriptor, or bytes in memory and the path of the part to write them to. */
export type Part =
  | { readonly part: string; readonly partFd: number | undefined }
  | { readonly part: string; readonly bytes: Uint8Array }

/**
 * Turns hashed bytes into a blob. Every blob gets its name here. The part file is consumed, also on failure.
 *
 * 1. The digest and the size must be the expected ones. 2. The caller accepts the result. 3. The digest's lock is taken, so that nobody
 * else moves this name. 4. A sync thread syncs the file, links the name and syncs the folder (commit.ts). 5. If a blob of that name exists,
 * its file is compared or re-hashed first; a corrupt one goes to quarantine and the new bytes replace it.
 * @throws CasError `E_SIZE_MISMATCH`, `E_DIGEST_MISMATCH`, `E_ABORTED`, `E_NO_SPACE`, `E_IO`; what `accept` throws
 */
export async function publish(
  context: StoreContext,
  result: HashResult,
  from: Part,
  options: Pick<IngestOptions, 'accept' | 'digest' | 'sizeBytes'>,
  signal: AbortSignal
): Promise<IngestResult> {
  const { layout, threads, digestLocks, notDurable } = context
  const { digest, sizeBytes } = result
  let partIsOurs = !('bytes' in from)
  const discard = async (): Promise<void> => {
    if (partIsOurs && 'partFd' in from) await context.discardPart(from.partFd, from.part)
  }
  try {
    checkExpected(result, options)
    await options.accept?.(result)
    const release = await digestLocks.acquire(digest, signal)
    try {
      throwIfAborted(signal)
      const item: CommitItem = {
        ...from,
        blob: layout.blob(digest),
        shard: layout.shard(digest),
        sizeBytes,
        replace: notDurable.has(digest),
        aside: layout.aside(digest),
        asideFolder: layout.quarantine
      }
      partIsOurs = false
      let outcome = await threads.commit(item)
      if (outcome.state === 'exists' && !outcome.same) {
        partIsOurs = true
        if (!(await isSound(context, digest, sizeBytes, signal))) {
          partIsOurs = false
          outcome = await threads.commit({ ...item, replace: true })
        }
      }
      if (outcome.state === 'failed') {
        if (outcome.nameStays) notDurable.add(digest)
        throw decodeError(outcome.error)
      }
      notDurable.delete(digest)
      return { ...result, existed: outcome.state === 'exists' }
    } finally {
      release()
    }
  } finally {
    await discard()
  }
}

/** Whether the blob's file still is what its digest says. The digest's lock is held. @throws CasError `E_ABORTED` */
async function isSound(
  { port, layout, threads }: StoreContext,
  digest: Sha256Digest,
  sizeBytes: number,
  signal: AbortSignal
): Promise<boolean> {
  const path = layout.blob(digest)
  // `false` is no more than a reason to look closely.
  if (sizeBytes < SMALL_BYTES && (await threads.check({ path, digest }))) return true
  return threads.hashFile(port, { digest, path }, signal).then(
    (found) => found === digest,
    (error: unknown) => {
      throwIfAborted(signal)
      // The disk cannot read the old file, and we hold the same bytes: replacing it loses nothing.
      if (error instanceof CasError && (error.code === 'E_CORRUPT' || errnoOf(error.cause) === 'EIO')) return false
      throw error
    }
  )
}

/** @throws CasError `E_NO_SPACE` before the first byte, where the size is known. */
export async function requireRoom({ port, layout }: StoreContext, sizeBytes: number | undefined): Promise<void> {
  if (sizeBytes === undefined || sizeBytes < ROOM_BYTES) return
  let free: number
  try {
    const { bavail, bsize } = await port.statfs(layout.root)
    free = bavail * bsize
  } catch (error) {
    throw ioError(error, 'ask for free space', layout.root)
  }
  if (free >= sizeBytes) return
  throw new CasError(
    'E_NO_SPACE',
    `${sizeBytes} bytes are needed, ${free} are free at ${layout.root}: free some space and try again`,
    { sizeBytes }
  )
}
