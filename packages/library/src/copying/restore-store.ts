import { readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { CasError, type DiskBlobStore } from '@svc/cas'
import { DurableFolders, nodeFilePort, replaceFile, syncFolder } from '@svc/internal-files'
import {
  endMarker,
  type FilledPlace,
  LibraryError,
  lookAtStore,
  openStore,
  RestoredRecords,
  readMoveMarker,
  STATE_FOLDERS,
  writeMoveMarker
} from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'
import { type CopyProgress, type CopyReader, copyBlobs, missingBlobs, requireCopySpace } from './copy-blobs.ts'
import { makeRoot } from './places.ts'

/** A backup of a store, wherever it is: that of `@svc/publish`. */
interface StoreBackup {
  readonly snapshot: {
    readonly storeId: string
    /** UTC, RFC 3339. */
    readonly createdAt: string
    /** Sizes of all blobs. */
    readonly blobs: ReadonlyMap<Sha256Digest, number>
    /** Files below `state/`. */
    readonly state: ReadonlyMap<string, Uint8Array>
  }
  /** Undefined for a file that is missing or too short. */
  read(digest: Sha256Digest, start: number, end: number, signal: AbortSignal): Promise<Uint8Array | undefined>
  /** Where a blob is in the backup, for messages. */
  keyOf(digest: Sha256Digest): string
}

export interface RestoreOptions extends FilledPlace {
  readonly backup: StoreBackup
  /** Of the backup, for messages. */
  readonly from: string
  /** Goes on without blobs that are damaged in the backup. */
  readonly incomplete: boolean
  readonly signal: AbortSignal
  readonly onProgress: (progress: CopyProgress) => void
}

export interface Restored {
  readonly root: string
  readonly storeId: string
  readonly createdAt: string
  readonly blobs: number
  readonly bytes: number
  /** Files of the backup that are missing or damaged. */
  readonly damaged: readonly string[]
}

/**
 * Fills an absent or empty root from a backup: blobs through the store's own ingest, the state last. Until then a
 * marker prevents the root's use, and another call continues. The store keeps its id (spec add.44). @throws LibraryError
 * `E_ROOT` and the like when it cannot begin; `E_NO_SPACE`; `E_CORRUPTION` naming damaged files; CasError `E_ABORTED`,
 * `E_NO_SPACE`, `E_IO`
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { backup, from, incomplete } = options
  const { snapshot } = backup
  const root = resolve(options.root)
  const to = { root, memory: options.memory, isNew: options.isNew }
  const newId = snapshot.storeId
  await requireEmpty(root, from)
  await lookAtStore(to, { newId })
  await makeRoot(root)
  await writeMoveMarker(root, { from, state: 'copying', isRestore: true })
  const store = await openStore(to, { newId })
  try {
    if (store.id !== snapshot.storeId)
      throw new LibraryError('E_ROOT', `${root} holds part of another store (${store.id}); choose another folder`)
    const corrupt = await copyMissing(store, options)
    const damaged = corrupt.map((digest) => backup.keyOf(digest)).sort()
    if (damaged.length > 0 && !incomplete) throw damageError(damaged, snapshot, options)
    const lost = new Set(corrupt)
    const records = new RestoredRecords(store, (digest) => snapshot.blobs.has(digest) && !lost.has(digest))
    await writeState(root, snapshot.state, records)
    await endMarker(root)
    const whole = [...snapshot.blobs].filter(([digest]) => !lost.has(digest))
    const bytes = whole.reduce((sum, [, sizeBytes]) => sum + sizeBytes, 0)
    return { root, storeId: snapshot.storeId, createdAt: snapshot.createdAt, blobs: whole.length, bytes, damaged }
  } finally {
    await store.close()
  }
}

/** @throws LibraryError `E_ROOT` for a root that holds anything but an earlier attempt with the same backup */
async function requireEmpty(root: string, from: string): Promise<void> {
  const marker = await readMoveMarker(root)
  if (marker?.isRestore === true && marker.from === from) return
  if (marker !== undefined)
    throw new LibraryError(
      'E_ROOT',
      `${root} belongs to an unfinished restore of ${marker.from}; choose another folder`
    )
  let names: string[]
  try {
    names = await readdir(root)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return
    throw new LibraryError('E_ROOT', `cannot look at ${root} (${code})`, { cause })
  }
  const first = names.find((name) => name !== 'lost+found')
  if (first !== undefined)
    throw new LibraryError(
      'E_ROOT',
      `${root} is not empty: it holds "${first}"; a store is restored into an empty folder`
    )
}

/** @returns the digests of blobs that are damaged in the backup, or missing from it */
async function copyMissing(
  store: DiskBlobStore,
  { backup, signal, onProgress }: RestoreOptions
): Promise<readonly Sha256Digest[]> {
  const missing = await missingBlobs(store, backup.snapshot.blobs)
  await requireCopySpace(store.root, missing)
  const source = { open: async (digest: Sha256Digest) => readerOf(backup, digest, signal) }
  return copyBlobs(source, store, missing, { signal, onProgress })
}

function readerOf(backup: StoreBackup, digest: Sha256Digest, signal: AbortSignal): CopyReader {
  return {
    digest,
    sizeBytes: backup.snapshot.blobs.get(digest)!,
    async read(target, offset) {
      const bytes = await backup.read(digest, offset, offset + target.length, signal)
      if (bytes === undefined)
        throw new CasError('E_SIZE_MISMATCH', `${backup.keyOf(digest)} is missing or too short in the backup`, {
          digest
        })
      target.set(bytes)
      return bytes.length
    },
    close: async () => undefined
  }
}

function damageError(
  damaged: readonly string[],
  { blobs }: StoreBackup['snapshot'],
  { from, root }: Pick<RestoreOptions, 'from' | 'root'>
): LibraryError {
  const whole = blobs.size - damaged.length
  return new LibraryError(
    'E_CORRUPTION',
    `${damaged.length} of ${blobs.size} files of the backup are missing or damaged: ${damaged.join(', ')}; the other ${whole} are intact and at ${root}, which is not a store yet`,
    { advice: { to: 'repair-backup', from, root } }
  )
}

async function writeState(
  root: string,
  state: ReadonlyMap<string, Uint8Array>,
  records: RestoredRecords
): Promise<void> {
  const folders = new DurableFolders(nodeFilePort, root)
  for (const folder of STATE_FOLDERS) await folders.make(join(root, folder))
  for (const [path, bytes] of state) {
    const restored = await records.of(path, bytes)
    if (restored === undefined) continue
    const file = join(root, 'state', path)
    await folders.make(dirname(file))
    await replaceFile(nodeFilePort, file, Buffer.from(restored))
  }
  await syncFolder(nodeFilePort, root)
}
