import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobInfo, DiskBlobStore } from '@svc/cas'
import { makeFolders, nodeFilePort, replaceFile, syncFolder } from '@svc/internal-files'
import {
  LibraryError,
  lookAtStore,
  openStore,
  ReplacedFiles,
  type StorePlace,
  ViewRecords,
  writeMoveMarker
} from '@svc/internal-state'
import { type CopyProgress, copyBlobs, missingBlobs, requireCopySpace } from './copy-blobs.ts'
import { checkPlaces, type MovePlaces, makeRoot, occupiedBytes, sharesBlocks } from './places.ts'

/** The progress of a move, and its current step. */
export interface MoveProgress extends CopyProgress {
  readonly phase: 'copying' | 'checking'
}

export interface MoveOptions {
  readonly from: StorePlace
  readonly to: string
  readonly signal: AbortSignal
  readonly onProgress: (progress: MoveProgress) => void
  /** Called with both roots locked and the new one complete; when it resolves, the new one is in use. */
  readonly takeCharge: (places: MovePlaces) => Promise<void>
}

export interface MoveResult extends MovePlaces {
  readonly blobs: number
  readonly bytes: number
  /** How many of these were there from an earlier attempt. */
  readonly resumedBlobs: number
  /** The two roots share blocks on disk. */
  readonly shared: boolean
  /** Bytes that deleting the old root frees; nearly none if blocks are shared. */
  readonly occupiedBytes: number
  /** Views at named places, which have links into the old root. */
  readonly views: readonly string[]
  /** Number of unfinished downloads, which are not moved. */
  readonly unfinished: number
}

/**
 * Moves a store under the locks of both roots: the new store's own ingest copies and verifies the blobs, every blob is
 * read back, then the state is copied. Until then a marker prevents the use of the new root. The old one is only read.
 * A later call resumes. @throws LibraryError `E_ROOT`, `E_NO_STORE`, `E_LOCKED` and the like when the move cannot begin;
 * `E_NO_SPACE`, `E_CORRUPTION`; CasError `E_ABORTED`, `E_NO_SPACE`, `E_IO`
 */
export async function moveStore(options: MoveOptions): Promise<MoveResult> {
  const places = await checkPlaces(options.from, options.to)
  const source = await openStore(options.from, { mayMake: false })
  try {
    const newId = source.id
    const { memory, isNew } = options.from
    const filled = { root: places.to, memory, isNew }
    await lookAtStore(filled, { newId })
    await makeRoot(places.to)
    await writeMoveMarker(places.to, { from: places.from, state: 'copying' })
    // the store stays the same one at its new place; the folders of its state come with the state
    const target = await openStore(filled, { newId })
    try {
      return await move(source, target, places, options)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function move(
  source: DiskBlobStore,
  target: DiskBlobStore,
  places: MovePlaces,
  { signal, onProgress, takeCharge }: MoveOptions
): Promise<MoveResult> {
  const blobs: BlobInfo[] = []
  for await (const blob of source.list()) blobs.push(blob)
  const missing = await missingBlobs(target, new Map(blobs.map(({ digest, sizeBytes }) => [digest, sizeBytes])))
  const shared = await sharesBlocks(places.from, target)
  // partial blobs of an interrupted attempt will be completed
  if (!shared) await requireCopySpace(places.to, missing, await occupiedBytes(join(places.to, 'incoming')))
  await copyMissing(source, target, missing, shared, { signal, onProgress })
  await checkBlobs(target, blobs.length, signal, onProgress)
  await copyState(places)
  signal.throwIfAborted()
  const views = await linkedViews(places.from)
  const unfinished = (await readdir(join(places.from, 'incoming'))).filter((name) => name.endsWith('.json')).length
  const occupied = await occupiedBytes(places.from)
  await writeMoveMarker(places.to, { from: places.from, state: 'complete' })
  await takeCharge(places)
  return {
    ...places,
    blobs: blobs.length,
    bytes: blobs.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0),
    resumedBlobs: blobs.length - missing.length,
    shared,
    occupiedBytes: occupied,
    views,
    unfinished
  }
}

/** @throws LibraryError `E_CORRUPTION` naming the damaged blobs */
async function copyMissing(
  source: DiskBlobStore,
  target: DiskBlobStore,
  missing: readonly BlobInfo[],
  isShared: boolean,
  { signal, onProgress }: Pick<MoveOptions, 'signal' | 'onProgress'>
): Promise<void> {
  const corrupt = await copyBlobs(source, target, missing, {
    signal,
    onProgress: (progress) => onProgress({ phase: 'copying', ...progress }),
    // with shared blocks a blob of any size is copied at once
    ...(isShared && { resumableBytes: Number.POSITIVE_INFINITY })
  })
  if (corrupt.length === 0) return
  const count = corrupt.length === 1 ? 'a corrupt blob' : `${corrupt.length} corrupt blobs`
  throw new LibraryError('E_CORRUPTION', `the old store has ${count}, so it stays in use: ${corrupt.join(', ')}`, {
    advice: { to: 'repair-models' }
  })
}

/** Reads everything back. Damaged blobs go to quarantine, and the next attempt copies them again. */
async function checkBlobs(
  target: DiskBlobStore,
  count: number,
  signal: AbortSignal,
  onProgress: MoveOptions['onProgress']
): Promise<void> {
  const { checked, mismatched } = await target.scrub({
    signal,
    onProgress: ({ blobs, bytes, blobsTotal, bytesTotal }) =>
      onProgress({ phase: 'checking', blobsDone: blobs, blobsTotal, bytesDone: bytes, bytesTotal })
  })
  if (mismatched.length > 0)
    throw new LibraryError(
      'E_CORRUPTION',
      `${mismatched.length} blobs read back from ${target.root} with different bytes: do not trust that disk; the old store stays in use`
    )
  if (checked !== count)
    throw new LibraryError(
      'E_CORRUPTION',
      `${checked} of ${count} blobs are at ${target.root}; the old store stays in use`
    )
}

/** Copies the current state and each model's last use; removes the remains of an earlier attempt. */
async function copyState({ from, to }: MovePlaces): Promise<void> {
  await rm(join(to, 'state'), { recursive: true, force: true })
  await copyFolder(join(from, 'state'), join(to, 'state'), (name) => name !== 'tmp')
  await copyFolder(join(from, 'cache'), join(to, 'cache'), (name) => name === 'last-used.json')
  await syncFolder(nodeFilePort, to)
}

/** Copies small files, durably. @param isWanted whether to copy an entry of this folder; default: all */
async function copyFolder(from: string, to: string, isWanted = (_name: string) => true): Promise<void> {
  const entries = await readdir(from, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  await makeFolders(to, 0o700)
  for (const entry of entries) {
    const { name } = entry
    if (!isWanted(name)) continue
    if (entry.isDirectory()) await copyFolder(join(from, name), join(to, name))
    else if (entry.isFile()) await replaceFile(nodeFilePort, join(to, name), await readFile(join(from, name)))
  }
  await syncFolder(nodeFilePort, to)
}

async function linkedViews(root: string): Promise<string[]> {
  const paths: string[] = []
  const records = new ViewRecords(root, ReplacedFiles.forReading(join(root, 'state')))
  for await (const { path, mode } of records.list(() => undefined)) if (mode === 'symlink') paths.push(path)
  return paths
}
