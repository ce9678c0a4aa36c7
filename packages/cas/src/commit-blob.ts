import type { Sha256Digest } from '@svc/ref'
import { readTwice } from './blob-pass.ts'
import { CasError, decodeError, throwIfAborted } from './errors.ts'
import type { HashResult, IngestOptions, IngestResult } from './store.ts'
import { checkExpected, type StoreContext } from './store-context.ts'
import type { CommitItem } from './thread-protocol.ts'

/** Parts from this size on are synced before their turn to be committed comes: a disk may take long. */
const SYNC_FIRST_BYTES = 4 << 20
/** Free space is checked in advance from this size on; smaller blobs simply fail. */
const ROOM_BYTES = 16 << 20

/**
 * The bytes of a future blob: a part file with its open descriptor, or bytes in memory with the path of the part file
 * to write them to.
 */
export type Part =
  | { readonly part: string; readonly partFd: number | undefined }
  | { readonly part: string; readonly bytes: Uint8Array }

/**
 * Turns hashed bytes into a blob: every blob gets its name here. The part file is consumed, also on failure.
 * @throws CasError `E_SIZE_MISMATCH`, `E_DIGEST_MISMATCH`, `E_ABORTED`, `E_NO_SPACE`, `E_IO`; `E_STORE_GONE`; what `accept`
 *   throws
 */
export async function commitBlob(
  context: StoreContext,
  result: HashResult,
  from: Part,
  options: Pick<IngestOptions, 'accept' | 'digest' | 'sizeBytes'>,
  signal: AbortSignal
): Promise<IngestResult> {
  const { threads, digestLocks, notDurable } = context
  const { digest, sizeBytes } = result
  // whoever holds the part file has to delete it: this function, or the thread that it was handed to.
  let holdsPart = 'partFd' in from
  try {
    checkExpected(result, options)
    context.leases.touch(digest)
    await options.accept?.(result)
    if ('partFd' in from && from.partFd !== undefined && sizeBytes >= SYNC_FIRST_BYTES)
      await context.datasync(from.partFd, from.part)

    // while this lock is held, nobody else creates, moves or looks up the blob's name.
    const release = await digestLocks.acquire(digest, signal)
    try {
      throwIfAborted(signal)
      // another store may be mounted over this one: nothing of ours goes there
      context.guard.requireRoot()

      // a thread syncs the file, links the name and syncs the folder: commit.ts.
      const existing = notDurable.has(digest) ? await successor(context, digest, signal) : 'keep'
      const item: CommitItem = { ...from, digest, sizeBytes, existing }
      holdsPart = false
      let outcome = await threads.commit(item)

      // a file of that name exists. If it is sound it stays; a corrupt one goes to quarantine, and these bytes replace it.
      if (outcome.state === 'exists' && !outcome.same) {
        holdsPart = 'partFd' in from
        if (!(await isSound(context, digest, signal))) {
          holdsPart = false
          const bytes = outcome.bytes
          outcome = await threads.commit({ ...item, ...(bytes && { bytes }), existing: 'set-aside' })
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
    if (holdsPart && 'partFd' in from) await context.discardPart(from.partFd, from.part)
  }
}

/** What to do with a file whose name may not be durable. @throws CasError as {@link isSound} */
async function successor(
  context: StoreContext,
  digest: Sha256Digest,
  signal: AbortSignal
): Promise<CommitItem['existing']> {
  try {
    return (await isSound(context, digest, signal)) ? 'replace' : 'set-aside'
  } catch (error) {
    if (error instanceof CasError && error.code === 'E_NOT_FOUND') return 'keep'
    throw error
  }
}

/**
 * Whether the existing blob's file still matches its digest. The digest's lock must be held.
 * @throws CasError `E_ABORTED`; `E_IO` where the disk does not tell: then the file stays
 */
async function isSound(context: StoreContext, digest: Sha256Digest, signal: AbortSignal): Promise<boolean> {
  try {
    return (await readTwice(context, digest, {}, signal)).digest === digest
  } catch (error) {
    throwIfAborted(signal)
    if (error instanceof CasError && error.code === 'E_CORRUPT') return false
    throw error
  }
}

/** @throws CasError `E_NO_SPACE` before the first byte is written, if the size is known. */
export async function requireFreeSpace(context: StoreContext, sizeBytes: number | undefined): Promise<void> {
  if (sizeBytes === undefined || sizeBytes < ROOM_BYTES) return
  const free = await context.freeBytes()
  if (free >= sizeBytes) return
  throw new CasError(
    'E_NO_SPACE',
    `${sizeBytes} bytes are needed, ${free} are free at ${context.layout.root}: free some space and try again`,
    { sizeBytes }
  )
}
