import { digestHex, type Sha256Digest, tryParseDigest } from '@svc/ref'
import { digestOf } from '../content.ts'
import { PublishError } from '../errors.ts'

/** The document that names the last complete backup; written last. */
export const BACKUP_KEY = 'svc-backup.json'
export const README_KEY = 'README.txt'
const README_MARK = 'This is a backup of an svc store'
/** A snapshot is held in memory; this is enough for some 100,000 models. */
export const MAX_SNAPSHOT_BYTES = 512 << 20
export const MAX_BACKUP_BYTES = 4 << 20
const UTC_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** One complete state of a store: its files below `state/`, and the blobs that these need and that were there. */
export interface StoreSnapshot {
  readonly storeId: string
  /** UTC, RFC 3339. */
  readonly createdAt: string
  /** By path below `state/`. */
  readonly state: ReadonlyMap<string, Uint8Array>
  readonly blobs: ReadonlyMap<Sha256Digest, number>
}

/** A snapshot's entry in `svc-backup.json`. */
export interface StoredSnapshot {
  readonly key: string
  readonly sha256: string
  readonly sizeBytes: number
  readonly createdAt: string
  readonly blobs: number
  readonly bytes: number
}

/** The content of `svc-backup.json`. */
export interface BackupDocument {
  readonly storeId: string
  readonly latest: StoredSnapshot
  /** Newest first. */
  readonly previous: readonly StoredSnapshot[]
}

export function blobKey(digest: Sha256Digest): string {
  const hex = digestHex(digest)
  return `blobs/sha256/${hex.slice(0, 2)}/${hex.slice(2)}`
}

export const readmeBytes = (storeId: string): Uint8Array =>
  Buffer.from(`${README_MARK} (${storeId}).

It holds everything in that store, private and gated models among them: keep it as private as the store itself.
${BACKUP_KEY} names the last complete snapshot; blobs are named after their SHA-256.
To bring the store back: svc restore <this place> --root <an empty folder>
`)

export const isReadme = (bytes: Uint8Array): boolean => Buffer.from(bytes).includes(README_MARK)

/** A key of a target, for messages. */
export const at = ({ name }: { readonly name: string }, key: string): string =>
  name.endsWith('/') ? `${name}${key}` : `${name}/${key}`

/** @throws PublishError `E_CHECK_FAILED` naming the line */
export function parseSnapshot(bytes: Uint8Array, name: string): StoreSnapshot {
  const wrong = (what: string): PublishError => new PublishError('E_CHECK_FAILED', `${name}: ${what}`)
  const [first, ...lines] = linesOf(bytes, wrong)
  const { svcSnapshot, storeId, createdAt } = first ?? {}
  if (svcSnapshot !== 1) throw wrong('is not a snapshot of a version that this svc can read')
  if (typeof storeId !== 'string' || !UUID.test(storeId) || !isTime(createdAt))
    throw wrong('does not name its store and its time')
  const end = lines.pop()?.end
  const state = new Map<string, Uint8Array>()
  const blobs = new Map<Sha256Digest, number>()
  for (const line of lines) {
    const { state: path, base64, blob, sizeBytes } = line
    const digest = typeof blob === 'string' ? tryParseDigest(blob) : undefined
    if (typeof path === 'string' && typeof base64 === 'string' && isStatePath(path))
      state.set(path, Buffer.from(base64, 'base64'))
    else if (digest !== undefined && Number.isSafeInteger(sizeBytes) && (sizeBytes as number) >= 0)
      blobs.set(digest, sizeBytes as number)
    else throw wrong(`has a malformed line: ${JSON.stringify(line).slice(0, 120)}`)
  }
  if (end !== lines.length) throw wrong('is not complete')
  return { storeId, createdAt, state, blobs }
}

function* linesOf(bytes: Uint8Array, wrong: (what: string) => PublishError): Generator<Record<string, unknown>> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < buffer.length; ) {
    const end = buffer.indexOf(10, at)
    let value: unknown
    try {
      value = JSON.parse(buffer.toString('utf8', at, end < 0 ? buffer.length : end))
    } catch {
      throw wrong('is not a sequence of JSON lines')
    }
    if (typeof value !== 'object' || value === null || end < 0) throw wrong('is not complete')
    yield value as Record<string, unknown>
    at = end + 1
  }
}

const isTime = (value: unknown): value is string => typeof value === 'string' && UTC_TIME.test(value)

/** Two or more plain segments: nothing that leads elsewhere, and no temporary file. */
const isStatePath = (path: string): boolean =>
  path.length <= 1024 && /^\w[\w.-]*(?:\/\w[\w.:-]*)+$/.test(path) && !path.startsWith('tmp/')

export function storedSnapshot(bytes: Uint8Array, { createdAt, blobs }: StoreSnapshot): StoredSnapshot {
  const hex = digestHex(digestOf(bytes))
  return {
    key: `snapshots/${createdAt.replaceAll(/[^0-9TZ]/g, '')}-${hex.slice(0, 16)}.jsonl`,
    sha256: hex,
    sizeBytes: bytes.length,
    createdAt,
    blobs: blobs.size,
    bytes: [...blobs.values()].reduce((sum, size) => sum + size, 0)
  }
}

export const backupBytes = ({ storeId, latest, previous }: BackupDocument): Uint8Array =>
  Buffer.from(
    `${JSON.stringify({ svcBackup: 1, holdsPrivateModels: true, storeId, latest, previous }, undefined, 2)}\n`
  )

/** @throws PublishError `E_CHECK_FAILED` */
export function parseBackup(bytes: Uint8Array, target: { readonly name: string }): BackupDocument {
  const wrong = new PublishError(
    'E_CHECK_FAILED',
    `${at(target, BACKUP_KEY)} does not name a backup that this svc can read`
  )
  try {
    const { svcBackup, storeId, latest, previous } = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
      readonly [key: string]: unknown
    }
    if (svcBackup !== 1 || typeof storeId !== 'string' || !UUID.test(storeId) || !Array.isArray(previous)) throw wrong
    return { storeId, latest: snapshotIn(latest, wrong), previous: previous.map((each) => snapshotIn(each, wrong)) }
  } catch {
    throw wrong
  }
}

function snapshotIn(value: unknown, wrong: Error): StoredSnapshot {
  const { key, sha256, sizeBytes, createdAt, blobs, bytes } = (value ?? {}) as Record<string, unknown>
  const isKey = typeof key === 'string' && /^snapshots\/[\w-]{1,100}\.jsonl$/.test(key)
  const counts = [sizeBytes, blobs, bytes].every((each) => Number.isSafeInteger(each) && (each as number) >= 0)
  const isHex = typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256)
  if (!isKey || !isHex || !counts || !isTime(createdAt)) throw wrong
  return { key, sha256, createdAt, sizeBytes: sizeBytes as number, blobs: blobs as number, bytes: bytes as number }
}
