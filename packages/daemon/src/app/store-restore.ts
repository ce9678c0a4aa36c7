import { readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { CasError, type DiskBlobStore, openDiskStore } from '@svc/cas'
import { DurableFolders, nodeFilePort, replaceFile, syncFolder } from '@svc/internal-files'
import type { Backup, Snapshot } from '@svc/publish'
import type { Sha256Digest } from '@svc/ref'
import { StartError } from '../errors.ts'
import { STATE_FOLDERS } from '../library/replace.ts'
import { endMarker, readMoveMarker, writeMoveMarker } from './move-marker.ts'
import { freeBytes, makeRoot } from './move-places.ts'
import { type CopyReader, copyBlobs } from './store-copy.ts'

/** The restore ended without a store. The message is for a person. */
export class RestoreError extends Error {
  override readonly name = 'RestoreError'

  /** The backup is damaged. */
  readonly isDamage: boolean

  constructor(message: string, isDamage: boolean, options?: ErrorOptions) {
    super(message, options)
    this.isDamage = isDamage
  }
}

export interface RestoreOptions {
  readonly backup: Backup
  /** Of the backup, for messages. */
  readonly from: string
  readonly root: string
  /** Goes on without blobs that are damaged in the backup. */
  readonly incomplete: boolean
  readonly signal: AbortSignal
  readonly onProgress: (progress: {
    readonly blobsDone: number
    readonly blobsTotal: number
    readonly bytesDone: number
    readonly bytesTotal: number
  }) => void
}

/** The result of a restore. */
export interface Restored {
  readonly root: string
  readonly storeId: string
  readonly createdAt: string
  readonly blobs: number
  readonly bytes: number
  /** Files of the backup that are missing or damaged. */
  readonly damaged: readonly string[]
}

const MARGIN_BYTES = 16 << 20
const DISK_BLOCK_BYTES = 4096

/**
 * Fills an absent or empty root from a backup: every blob through the store's own ingest, which verifies it, and the
 * state last. Until that is complete a marker prevents the root's use, and another call goes on. The store has the id that
 * it had: it is the same one (spec add.44).
 * @throws StartError when it cannot begin; RestoreError naming damaged files; CasError `E_ABORTED`, `E_NO_SPACE`, `E_IO`
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { backup, from, incomplete } = options
  const { snapshot } = backup
  const root = resolve(options.root)
  await requireEmpty(root, from)
  await makeRoot(root)
  await writeMoveMarker(root, { from, state: 'copying', isRestore: true })
  const store = await openRoot(root, snapshot.storeId)
  try {
    const corrupt = await copyMissing(store, options)
    const damaged = corrupt.map((digest) => backup.keyOf(digest)).sort()
    if (damaged.length > 0 && !incomplete) throw damageError(damaged, snapshot, options)
    await writeState(root, snapshot.state)
    await endMarker(root)
    const lost = new Set(corrupt)
    const whole = [...snapshot.blobs].filter(([digest]) => !lost.has(digest))
    const bytes = whole.reduce((sum, [, sizeBytes]) => sum + sizeBytes, 0)
    return { root, storeId: snapshot.storeId, createdAt: snapshot.createdAt, blobs: whole.length, bytes, damaged }
  } finally {
    await store.close()
  }
}

/** @throws StartError for a root that holds anything but an earlier attempt with the same backup */
async function requireEmpty(root: string, from: string): Promise<void> {
  const marker = await readMoveMarker(root)
  if (marker?.isRestore === true && marker.from === from) return
  if (marker !== undefined) throw new StartError(`${root} is being filled from ${marker.from}; choose another folder`)
  let names: string[]
  try {
    names = await readdir(root)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return
    throw new StartError(`cannot look at ${root} (${code})`, { cause })
  }
  const first = names.find((name) => name !== 'lost+found')
  if (first !== undefined)
    throw new StartError(`${root} is not empty: it holds "${first}"; a store is restored into an empty folder`)
}

async function openRoot(root: string, storeId: string): Promise<DiskBlobStore> {
  try {
    const store = await openDiskStore({ root, newId: storeId })
    if (store.id === storeId) return store
    await store.close()
    throw new StartError(`${root} was begun with another store (${store.id}); choose another folder`)
  } catch (cause) {
    if (!(cause instanceof CasError)) throw cause
    throw new StartError(`the store ${root} cannot be opened: ${cause.message}`, { cause })
  }
}

/** @returns the digests of blobs that are damaged in the backup, or missing from it */
async function copyMissing(
  store: DiskBlobStore,
  { backup, signal, onProgress }: RestoreOptions
): Promise<readonly Sha256Digest[]> {
  const { blobs } = backup.snapshot
  const there = new Set<Sha256Digest>()
  for await (const { digest, sizeBytes } of store.list()) {
    if (blobs.get(digest) === sizeBytes) there.add(digest)
    // of an earlier attempt with an older snapshot
    else await store.remove(digest)
  }
  const missing = [...blobs].flatMap(([digest, sizeBytes]) => (there.has(digest) ? [] : [{ digest, sizeBytes }]))
  const needed = missing.reduce(
    (sum, { sizeBytes }) => sum + Math.ceil(sizeBytes / DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES,
    MARGIN_BYTES
  )
  const free = await freeBytes(store.root)
  if (free < needed)
    throw new RestoreError(
      `${needed} bytes are needed at ${store.root}, and ${free} are free; nothing was restored`,
      false
    )
  const source = { open: async (digest: Sha256Digest) => readerOf(backup, digest, signal) }
  return copyBlobs(source, store, missing, { signal, onProgress })
}

function readerOf(backup: Backup, digest: Sha256Digest, signal: AbortSignal): CopyReader {
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
  { blobs }: Snapshot,
  { from, root }: Pick<RestoreOptions, 'from' | 'root'>
): RestoreError {
  const whole = blobs.size - damaged.length
  return new RestoreError(
    `${damaged.length} of ${blobs.size} files of the backup are missing or damaged:\n` +
      `${damaged.map((key) => `  ${key}\n`).join('')}` +
      `the other ${whole} are whole, and at ${root}, which is no store yet. Repair the backup, and run the same again; or do without these files: svc restore ${from} --root ${root} --incomplete, then svc fsck`,
    true
  )
}

async function writeState(root: string, state: ReadonlyMap<string, Uint8Array>): Promise<void> {
  const folders = new DurableFolders(nodeFilePort, root)
  for (const folder of STATE_FOLDERS) await folders.make(join(root, folder))
  for (const [path, bytes] of state) {
    const file = join(root, 'state', path)
    await folders.make(dirname(file))
    await replaceFile(nodeFilePort, file, Buffer.from(bytes))
  }
  await syncFolder(nodeFilePort, root)
}
