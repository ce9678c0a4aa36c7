import { errnoOf } from '@svc/internal-errors'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { digestOf } from '../content.ts'
import { PublishError } from '../errors.ts'
import type { PublishedObject, Target } from '../target.ts'
import {
  at,
  BACKUP_KEY,
  blobKey,
  MAX_BACKUP_BYTES,
  MAX_SNAPSHOT_BYTES,
  parseBackup,
  parseSnapshot,
  type StoredSnapshot,
  type StoreSnapshot
} from './format.ts'

/** A backup, opened for reading. */
export interface Backup {
  /** The last complete one. */
  readonly snapshot: StoreSnapshot
  /** The key of a blob, for messages. */
  keyOf(digest: Sha256Digest): string
  /**
   * The bytes `[start, end)` of a blob, unverified; undefined if it is not there, or shorter than the snapshot says.
   * @throws PublishError
   */
  read(digest: Sha256Digest, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array | undefined>
}

/** Opens the last complete backup at a target. @throws PublishError `E_NOT_FOUND`, `E_CHECK_FAILED` for a damaged one */
export async function openBackup(target: Target, signal?: AbortSignal): Promise<Backup> {
  const found = await target.readDocument(BACKUP_KEY, MAX_BACKUP_BYTES, signal)
  if (found === undefined) throw new PublishError('E_NOT_FOUND', `there is no complete backup at ${target.name}`)
  const { latest, storeId } = parseBackup(found.bytes, target)
  const snapshot = await snapshotIn(target, latest, signal)
  if (snapshot.storeId !== storeId)
    throw new PublishError(
      'E_CHECK_FAILED',
      `${at(target, latest.key)} is of another store than the one in ${BACKUP_KEY}`
    )
  return {
    snapshot,
    keyOf: blobKey,
    async read(digest, start, end, reading) {
      const sizeBytes = snapshot.blobs.get(digest) ?? 0
      const object = { key: blobKey(digest), sizeBytes, digest } as PublishedObject
      try {
        const bytes = await target.readRange(object, start, end, reading)
        return bytes.length === end - start ? bytes : undefined
      } catch (error) {
        if (error instanceof PublishError && isMissing(error)) return undefined
        throw error
      }
    }
  }
}

const isMissing = ({ code, cause }: PublishError): boolean =>
  code === 'E_CHECK_FAILED' || (code === 'E_IO' && errnoOf(cause) === 'ENOENT')

/** @throws PublishError `E_CHECK_FAILED` for a snapshot that is missing or not what was written */
export async function snapshotIn(target: Target, stored: StoredSnapshot, signal?: AbortSignal): Promise<StoreSnapshot> {
  const found = await target.readDocument(stored.key, MAX_SNAPSHOT_BYTES, signal)
  const name = at(target, stored.key)
  if (found === undefined) throw new PublishError('E_CHECK_FAILED', `${name} is missing`)
  if (digestHex(digestOf(found.bytes)) !== stored.sha256) throw new PublishError('E_CHECK_FAILED', `${name} is damaged`)
  return parseSnapshot(found.bytes, name)
}
