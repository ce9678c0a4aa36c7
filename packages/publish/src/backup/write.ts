import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { forEachLimited } from '@svc/internal-concurrency'
import { errnoOf } from '@svc/internal-errors'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { documentObject, openContent } from '../content.ts'
import { ioError, PublishError } from '../errors.ts'
import type { ObjectOptions, PublishedObject, StoredDocument, Target } from '../target.ts'
import {
  BACKUP_KEY,
  type BackupDocument,
  backupBytes,
  blobKey,
  isReadme,
  MAX_BACKUP_BYTES,
  parseBackup,
  parseSnapshot,
  README_KEY,
  readmeBytes,
  type StoredSnapshot,
  type StoreSnapshot,
  storedSnapshot
} from './format.ts'
import { snapshotIn } from './read.ts'

/** The progress of a backup or a restore. */
export interface BackupProgress {
  readonly filesDone: number
  readonly filesTotal: number
  readonly bytesDone: number
  readonly bytesTotal: number
}

/** What a backup is made from, and how. */
export interface BackupOptions {
  /** The file with the snapshot, as the daemon wrote it. */
  readonly snapshotPath: string
  readonly blobPath: (digest: Sha256Digest) => string
  /** Reads back blobs that are there already, and writes those again that are damaged. */
  readonly verify?: boolean
  /** Afterwards removes older snapshots, and the blobs that only they need. */
  readonly prune?: boolean
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: BackupProgress) => void
}

/** The outcome of a backup. */
export interface BackedUp {
  readonly storeId: string
  readonly createdAt: string
  readonly blobs: number
  readonly bytes: number
  readonly sentBlobs: number
  readonly sentBytes: number
  /** Removed by `prune`. */
  readonly prunedBlobs: number
}

const AT_ONCE = 4
const CHUNK_BYTES = 8 << 20

/**
 * Writes a snapshot of a store to a target: first the blobs that are not there, each hashed on the way, then the
 * snapshot, and last the document that makes it the current one. A failure before that leaves the previous backup
 * complete, and the next call resumes (spec add.43).
 * @throws PublishError `E_DIGEST_MISMATCH` naming the damaged blobs of the store; on abort the signal's reason
 */
export async function backUp(target: Target, options: BackupOptions): Promise<BackedUp> {
  const bytes = await readFile(options.snapshotPath)
  const snapshot = parseSnapshot(bytes, options.snapshotPath)
  const stored = storedSnapshot(bytes, snapshot)
  const { document, before } = await currentBackup(target, snapshot.storeId, options.signal)
  await put(target, README_KEY, readmeBytes(snapshot.storeId), 'text/plain', options.signal)
  const sent = await sendBlobs(target, snapshot, options)
  await put(target, stored.key, bytes, 'application/jsonl', options.signal)
  const others = document === undefined ? [] : [document.latest, ...document.previous]
  const previous = others.filter(({ key }) => key !== stored.key)
  const next = { storeId: snapshot.storeId, latest: stored, previous }
  await replaceBackup(target, next, before, options.signal)
  const prunedBlobs = options.prune === true ? await prune(target, next, snapshot, options.signal) : 0
  const { createdAt, blobs, bytes: blobBytes } = stored
  return { storeId: snapshot.storeId, createdAt, blobs, bytes: blobBytes, ...sent, prunedBlobs }
}

/** @throws PublishError `E_BAD_TARGET` for a place with other content, or the backup of another store */
async function currentBackup(
  target: Target,
  storeId: string,
  signal: AbortSignal | undefined
): Promise<{ readonly document: BackupDocument | undefined; readonly before: StoredDocument | undefined }> {
  const before = await target.readDocument(BACKUP_KEY, MAX_BACKUP_BYTES, signal)
  const document = before && parseBackup(before.bytes, target)
  if (document !== undefined && document.storeId !== storeId)
    throw new PublishError('E_BAD_TARGET', `${target.name} holds the backup of another store (${document.storeId})`)
  if (document === undefined) {
    const readme = await target.readDocument(README_KEY, MAX_BACKUP_BYTES, signal)
    const isOurs = readme !== undefined && isReadme(readme.bytes)
    if (!isOurs && (readme !== undefined || !(await target.isEmpty(signal))))
      throw new PublishError('E_BAD_TARGET', `${target.name} is not empty and contains no backup; choose another place`)
  }
  return { document, before }
}

async function sendBlobs(
  target: Target,
  { blobs }: StoreSnapshot,
  { blobPath, verify, signal, onProgress }: BackupOptions
): Promise<Pick<BackedUp, 'sentBlobs' | 'sentBytes'>> {
  const queue = [...blobs].map(
    ([digest, sizeBytes]): PublishedObject => ({
      key: blobKey(digest),
      sizeBytes,
      digest,
      content: { path: blobPath(digest) },
      contentType: 'application/octet-stream',
      cacheControl: 'no-store'
    })
  )
  const bytesTotal = queue.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const filesTotal = queue.length
  let [filesDone, bytesDone, sentBlobs, sentBytes] = [0, 0, 0, 0]
  const damaged: Sha256Digest[] = []
  const add = (bytes: number): void => {
    bytesDone += bytes
    onProgress?.({ filesDone, filesTotal, bytesDone: Math.min(bytesDone, bytesTotal), bytesTotal })
  }
  const one = async (object: PublishedObject, signal: AbortSignal): Promise<void> => {
    let counted = 0
    const onBytes = (bytes: number): void => {
      counted += bytes
      add(bytes)
    }
    const isThere = await target.has(object, { signal, trustKey: true })
    if (!isThere || (verify === true && !(await readsBack(target, object, signal)))) {
      if (await sendBlob(target, object, { signal, onBytes })) {
        sentBlobs += 1
        sentBytes += object.sizeBytes
      } else damaged.push(object.digest)
    }
    filesDone += 1
    add(Math.max(0, object.sizeBytes - counted))
  }
  await target.requireRoom(queue)
  await forEachLimited(queue, AT_ONCE, signal, one)
  if (damaged.length === 0) return { sentBlobs, sentBytes }
  throw new PublishError(
    'E_DIGEST_MISMATCH',
    `${damaged.length} of ${filesTotal} blobs of the store are missing or damaged, so this backup is not complete; the one before it is kept. See "svc fsck": ${damaged.join(', ')}`
  )
}

/** @returns false if the store's own blob is gone, or does not match its digest */
async function sendBlob(target: Target, object: PublishedObject, options: ObjectOptions): Promise<boolean> {
  try {
    // before the target is involved, so that only the store can lack a file
    await (await openContent(object)).close()
  } catch (error) {
    if (error instanceof PublishError || errnoOf(error) === 'ENOENT') return false
    throw ioError(error, `read ${object.key}`)
  }
  try {
    await target.put(object, options)
    return true
  } catch (error) {
    if (error instanceof PublishError && error.code === 'E_DIGEST_MISMATCH') return false
    throw error
  }
}

async function readsBack(target: Target, object: PublishedObject, signal: AbortSignal | undefined): Promise<boolean> {
  const hash = createHash('sha256')
  for (let at = 0; at < object.sizeBytes; at += CHUNK_BYTES) {
    signal?.throwIfAborted()
    hash.update(await target.readRange(object, at, Math.min(object.sizeBytes, at + CHUNK_BYTES), signal))
  }
  return hash.digest('hex') === digestHex(object.digest)
}

const documentOf = (key: string, content: Uint8Array, contentType: string) =>
  documentObject(key, content, contentType, 'no-store')

async function put(
  target: Target,
  key: string,
  content: Uint8Array,
  contentType: string,
  signal: AbortSignal | undefined
): Promise<void> {
  const object = documentOf(key, content, contentType)
  if (!(await target.has(object, { signal }))) await target.put(object, { signal })
}

async function replaceBackup(
  target: Target,
  next: BackupDocument,
  before: StoredDocument | undefined,
  signal: AbortSignal | undefined
): Promise<void> {
  if (await target.replaceDocument(documentOf(BACKUP_KEY, backupBytes(next), 'application/json'), before, signal))
    return
  throw new PublishError('E_UNAVAILABLE', `another backup to ${target.name} was completed meanwhile; try again`)
}

/** Blobs first, then their snapshot, its entry last: the next call repeats an interrupted one. */
async function prune(
  target: Target,
  { storeId, latest, previous }: BackupDocument,
  { blobs }: StoreSnapshot,
  signal: AbortSignal | undefined
): Promise<number> {
  const removed = new Set<Sha256Digest>()
  for (const old of previous) {
    const snapshot = await oldSnapshot(target, old, signal)
    for (const digest of snapshot?.blobs.keys() ?? []) {
      if (blobs.has(digest) || removed.has(digest)) continue
      signal?.throwIfAborted()
      await target.remove(blobKey(digest), signal)
      removed.add(digest)
    }
    await target.remove(old.key, signal)
  }
  if (previous.length === 0) return 0
  const now = await target.readDocument(BACKUP_KEY, MAX_BACKUP_BYTES, signal)
  await replaceBackup(target, { storeId, latest, previous: [] }, now, signal)
  return removed.size
}

/** Undefined for one that is gone or damaged: nobody knows then which blobs only it needed. */
async function oldSnapshot(
  target: Target,
  stored: StoredSnapshot,
  signal: AbortSignal | undefined
): Promise<StoreSnapshot | undefined> {
  try {
    return await snapshotIn(target, stored, signal)
  } catch (error) {
    if (error instanceof PublishError && error.code === 'E_CHECK_FAILED') return undefined
    throw error
  }
}
