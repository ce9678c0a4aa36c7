import { createHash } from 'node:crypto'
import { digestHex } from '@svc/ref'
import { digestOf, documentObject, openContent, wrongBytes } from '../content.ts'
import { PublishError } from '../errors.ts'
import type { ObjectOptions, PublishedObject } from '../target.ts'
import { type Bucket, MAX_PARTS, md5Of, type StoredPart } from './bucket.ts'

const MIB = 1 << 20
/** Bound for the parts in memory at once. */
const MEMORY_BYTES = 128 * MIB
const MAX_AT_ONCE = 4

export const PART_BYTES = 16 * MIB

/** The part size: the preferred one, or what 10,000 parts need. Depends on the size only, so that uploads can be resumed. */
export function partBytesFor(sizeBytes: number, preferredBytes: number): number {
  const least = Math.ceil(sizeBytes / MAX_PARTS)
  return least <= preferredBytes ? preferredBytes : Math.ceil(least / MIB) * MIB
}

export const partsAtOnce = (partBytes: number): number =>
  Math.max(1, Math.min(MAX_AT_ONCE, Math.floor(MEMORY_BYTES / partBytes)))

const MAX_NOTE_BYTES = 64 << 10

/** The upload in progress for an object. Stored in the bucket, so that any machine can resume it. */
interface Note {
  readonly key: string
  readonly uploadId: string
  readonly partBytes: number
}

const noteKey = ({ key, digest }: PublishedObject): string =>
  `.svc-publish/${digestHex(digest)}-${digestHex(digestOf(Buffer.from(key))).slice(0, 16)}.json`

/**
 * Uploads an object in parts. Skips parts of an earlier attempt whose ETags match; still reads and hashes all of the
 * object before completing the upload makes it visible.
 * @returns false if the store no longer knows the upload: another publisher completed it, or it was cleaned up
 * @throws PublishError; on abort the signal's reason, and the uploaded parts are kept
 */
export async function sendInParts(
  bucket: Bucket,
  object: PublishedObject,
  partBytes: number,
  options: ObjectOptions
): Promise<boolean> {
  const { signal } = options
  const note = await readNote(bucket, object, partBytes, signal)
  let known = note && (await bucket.parts(object.key, note.uploadId, signal))
  let uploadId = note?.uploadId
  if (uploadId === undefined || known === undefined) {
    known = new Map()
    uploadId = await bucket.begin(object, signal)
    await writeNote(bucket, object, { key: object.key, uploadId, partBytes }, signal)
  }
  const tags = await sendParts(bucket, object, { uploadId, partBytes, known }, options)
  if (tags === 'wrong') {
    await bucket.abort(object.key, uploadId)
    await forget(bucket, object, signal)
    throw wrongBytes(object)
  }
  const isDone = tags !== 'gone' && (await bucket.complete(object.key, uploadId, tags, signal))
  await forget(bucket, object, signal)
  return isDone
}

interface MultipartUpload {
  readonly uploadId: string
  readonly partBytes: number
  readonly known: ReadonlyMap<number, StoredPart>
}

/** @returns the ETags in order; `gone` if the store has lost the upload, `wrong` if the content does not match the digest */
async function sendParts(
  bucket: Bucket,
  object: PublishedObject,
  { uploadId, partBytes, known }: MultipartUpload,
  { signal, onBytes }: ObjectOptions
): Promise<readonly string[] | 'gone' | 'wrong'> {
  const hash = createHash('sha256')
  const tags: string[] = []
  const stop = new AbortController()
  const either = AbortSignal.any([stop.signal, ...(signal === undefined ? [] : [signal])])
  const free = Array.from({ length: partsAtOnce(partBytes) }, () =>
    Buffer.allocUnsafeSlow(Math.min(partBytes, object.sizeBytes))
  )
  const busy = new Set<Promise<void>>()
  let failure: { readonly error: unknown } | undefined
  let isGone = false
  const reader = await openContent(object)
  try {
    for (let number = 1, at = 0; at < object.sizeBytes && failure === undefined && !isGone; number += 1) {
      while (free.length === 0) await Promise.race(busy)
      if (failure !== undefined || isGone) break
      either.throwIfAborted()
      const buffer = free.pop()!
      const body = buffer.subarray(0, Math.min(partBytes, object.sizeBytes - at))
      await reader.fill(body, at)
      at += body.length
      hash.update(body)
      const there = known.get(number)
      if (there?.sizeBytes === body.length && there.tag.replaceAll('"', '') === md5Of(body, 'hex')) {
        tags[number - 1] = there.tag
        free.push(buffer)
        onBytes?.(body.length)
        continue
      }
      const sending = bucket.part(object.key, uploadId, number, body, either).then(
        (tag) => {
          if (tag === undefined) isGone = true
          else tags[number - 1] = tag
          onBytes?.(body.length)
        },
        (error: unknown) => {
          failure ??= { error }
          stop.abort(error)
        }
      )
      const done: Promise<void> = sending.then(() => {
        free.push(buffer)
        busy.delete(done)
      })
      busy.add(done)
    }
  } finally {
    await Promise.all(busy)
    await reader.close()
  }
  signal?.throwIfAborted()
  if (failure !== undefined) throw (failure as { readonly error: unknown }).error
  if (isGone) return 'gone'
  return `sha256:${hash.digest('hex')}` === object.digest ? tags : 'wrong'
}

async function readNote(
  bucket: Bucket,
  object: PublishedObject,
  partBytes: number,
  signal: AbortSignal | undefined
): Promise<Note | undefined> {
  const stored = await bucket.get(noteKey(object), { maxBytes: MAX_NOTE_BYTES }, signal)
  if (stored === undefined) return undefined
  try {
    const note = JSON.parse(Buffer.from(stored.bytes).toString('utf8')) as Partial<Note> | null
    const fits = note?.key === object.key && note.partBytes === partBytes && typeof note.uploadId === 'string'
    return fits ? (note as Note) : undefined
  } catch {
    // unreadable: start a new upload, whose note replaces this one
    return undefined
  }
}

async function writeNote(
  bucket: Bucket,
  object: PublishedObject,
  note: Note,
  signal: AbortSignal | undefined
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(note))
  const document = documentObject(noteKey(object), bytes, 'application/json', 'no-store')
  await bucket.put(document, bytes, undefined, signal)
}

/** Removes the note. Failures are ignored: a stale note refers to an upload that no longer exists. */
async function forget(bucket: Bucket, object: PublishedObject, signal: AbortSignal | undefined): Promise<void> {
  await bucket.remove(noteKey(object), signal).catch((error: unknown) => {
    if (signal?.aborted === true || !(error instanceof PublishError)) throw error
  })
}
