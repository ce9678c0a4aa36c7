import { statfs } from 'node:fs/promises'
import { type BlobInfo, type BlobReader, type BlobStore, CasError } from '@svc/cas'
import { forEachLimited } from '@svc/internal-concurrency'
import { LibraryError } from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'

export interface CopyProgress {
  readonly blobsDone: number
  readonly blobsTotal: number
  readonly bytesDone: number
  readonly bytesTotal: number
}

/** A blob that is read where it is; `fd` is absent where that is not a file of this machine. */
export type CopyReader = Pick<BlobReader, 'digest' | 'sizeBytes' | 'read' | 'close'> & {
  readonly fd?: number | undefined
}

/** Where blobs are copied from: another store, or a backup. */
export interface CopySource {
  open(digest: Sha256Digest): Promise<CopyReader>
}

export interface StoreCopyOptions {
  readonly signal: AbortSignal
  readonly onProgress: (progress: CopyProgress) => void
  /** Larger blobs keep durable progress for the next attempt. Default 64 MiB. */
  readonly resumableBytes?: number
}

/** Two concurrent copies keep both disks busy; more only cause seeking. */
const PARALLEL_COPIES = 2
/** About a second of writing: repeating less than this is cheaper than a journal. */
const RESUMABLE_BYTES = 64 << 20
const CHUNK_BYTES = 4 << 20
/** Space needed besides blobs: folders, state, names. */
const MARGIN_BYTES = 16 << 20
const DISK_BLOCK_BYTES = 4096

/** The blobs that a target lacks. Removes leftovers of earlier attempts that are no longer wanted. */
export async function missingBlobs(
  target: BlobStore,
  wanted: ReadonlyMap<Sha256Digest, number>
): Promise<readonly BlobInfo[]> {
  const there = new Set<Sha256Digest>()
  for await (const { digest, sizeBytes } of target.list()) {
    if (wanted.get(digest) === sizeBytes) there.add(digest)
    else await target.remove(digest)
  }
  return [...wanted].flatMap(([digest, sizeBytes]) => (there.has(digest) ? [] : [{ digest, sizeBytes }]))
}

/** `thereBytes`: bytes in partial blobs of an earlier attempt. @throws LibraryError `E_NO_SPACE` */
export async function requireCopySpace(root: string, missing: readonly BlobInfo[], thereBytes = 0): Promise<void> {
  const all = missing.reduce(
    (bytes, { sizeBytes }) => bytes + Math.ceil(sizeBytes / DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES,
    0
  )
  const needed = all - Math.min(all, thereBytes) + MARGIN_BYTES
  const { bavail, bsize } = await statfs(root)
  const free = bavail * bsize
  if (free < needed)
    throw new LibraryError(
      'E_NO_SPACE',
      `${root} needs ${needed} bytes of free space and has ${free}; nothing was copied`
    )
}

/**
 * Copies blobs through the target's own ingest, which verifies them. An interrupted copy resumes within a large blob.
 * @returns the digests of blobs damaged in the source, which are not copied. @throws CasError `E_ABORTED`,
 * `E_NO_SPACE`, `E_IO`
 */
export async function copyBlobs(
  source: CopySource,
  target: BlobStore,
  blobs: readonly BlobInfo[],
  { signal, onProgress, resumableBytes = RESUMABLE_BYTES }: StoreCopyOptions
): Promise<readonly Sha256Digest[]> {
  const bytesTotal = blobs.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0)
  const corrupt: Sha256Digest[] = []
  const underWay = new Map<string, number>()
  let [blobsDone, bytesDone] = [0, 0]
  const tell = (): void => {
    const open = [...underWay.values()].reduce((bytes, each) => bytes + each, 0)
    onProgress({ blobsDone, blobsTotal: blobs.length, bytesDone: bytesDone + open, bytesTotal })
  }
  await forEachLimited(blobs, PARALLEL_COPIES, signal, async (blob, own) => {
    const { digest, sizeBytes } = blob
    const onBytes = (bytes: number): void => {
      underWay.set(digest, bytes)
      tell()
    }
    try {
      const reader = await source.open(digest)
      try {
        if (sizeBytes < resumableBytes)
          await target.ingest(reader.fd === undefined ? chunksOf(reader) : { fd: reader.fd }, {
            digest,
            sizeBytes,
            signal: own,
            onProgress: onBytes
          })
        else await copyResumably(reader, target, own, onBytes)
      } finally {
        await reader.close()
      }
    } catch (error) {
      if (!isSourceDamage(error)) throw error
      corrupt.push(digest)
    }
    underWay.delete(digest)
    blobsDone++
    bytesDone += sizeBytes
    tell()
  })
  return corrupt
}

async function* chunksOf(reader: CopyReader): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < reader.sizeBytes; at += CHUNK_BYTES) {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, reader.sizeBytes - at))
    await reader.read(chunk, at)
    yield chunk
  }
}

async function copyResumably(
  reader: CopyReader,
  target: BlobStore,
  signal: AbortSignal,
  onBytes: (bytes: number) => void
): Promise<void> {
  const { digest, sizeBytes } = reader
  for (;;) {
    const partial = await target.partial({ key: `move:${digest}`, digest, sizeBytes }, { signal })
    let resumed = 0
    try {
      // written in order, so there is at most one range
      const [first] = partial.ranges()
      resumed = first !== undefined && first[0] === 0 ? first[1] : 0
      onBytes(resumed)
      let writing: Promise<void> = Promise.resolve()
      try {
        for (let at = resumed; at < sizeBytes; ) {
          signal.throwIfAborted()
          // the next chunk is read while this one is written
          const chunk = new Uint8Array(Math.min(CHUNK_BYTES, sizeBytes - at))
          await reader.read(chunk, at)
          await writing
          writing = partial.write(at, chunk)
          writing.catch(() => undefined)
          at += chunk.length
          onBytes(at)
        }
        await writing
      } catch (error) {
        await writing.catch(() => undefined)
        // records progress that is not in the journal yet
        await partial.checkpoint().catch(() => undefined)
        throw error
      }
      await partial.commit()
      return
    } catch (error) {
      // bytes from an earlier attempt may be the wrong ones: all ranges are forgotten, so the next round reads the
      // whole blob.
      if (resumed === 0 || !(error instanceof CasError) || error.code !== 'E_DIGEST_MISMATCH') throw error
    } finally {
      await partial.release()
    }
  }
}

/** True when the old store's bytes do not match their digest, or cannot be read. */
const isSourceDamage = (error: unknown): boolean =>
  error instanceof CasError &&
  (['E_DIGEST_MISMATCH', 'E_SIZE_MISMATCH', 'E_CORRUPT'].includes(error.code) ||
    (error.code === 'E_IO' && ['read source', 'read blob'].includes(error.details.operation ?? '')))
