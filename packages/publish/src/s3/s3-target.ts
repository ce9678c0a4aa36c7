import { digestHex } from '@svc/ref'
import { contentHash, digestOf, readContentRange, wrongBytes } from '../content.ts'
import { attempt, PublishError } from '../errors.ts'
import type { Place } from '../place.ts'
import type { ObjectOptions, PublishedObject, StoredDocument, Target } from '../target.ts'
import { Bucket, type S3Options } from './bucket.ts'
import { PART_BYTES, partBytesFor, sendInParts } from './multipart.ts'

/** S3's limit. */
const MAX_KEY_BYTES = 1024

/**
 * An S3 bucket. Large objects use multipart uploads, which any machine can resume; an object becomes visible only when it
 * is complete. Existing objects are recognized by size and the SHA-256 in their metadata; those of other tools, which
 * lack it, by their MD5.
 */
export class S3Target implements Target {
  readonly #bucket: Bucket
  readonly #partBytes: number

  private constructor(bucket: Bucket, partBytes: number) {
    this.#bucket = bucket
    this.#partBytes = partBytes
  }

  /** @throws PublishError `E_BAD_TARGET` */
  static async open(place: Extract<Place, { kind: 's3' }>, options: S3Options): Promise<S3Target> {
    return new S3Target(await Bucket.open(place, options), options.partBytes ?? PART_BYTES)
  }

  get name(): string {
    return this.#bucket.name
  }

  get url(): string {
    return this.#bucket.url
  }

  /** S3 has no way to ask for free space; this only checks key lengths. */
  async requireRoom(objects: readonly PublishedObject[]): Promise<void> {
    const long = objects.find(({ key }) => this.#bucket.keyBytes(key) > MAX_KEY_BYTES)
    if (long === undefined) return
    throw new PublishError(
      'E_BAD_TARGET',
      `${this.name}${long.key} is longer than the ${MAX_KEY_BYTES} bytes that S3 allows; use a shorter prefix`
    )
  }

  async has(object: PublishedObject, options: ObjectOptions): Promise<boolean> {
    const facts = await this.#bucket.head(object.key, options.signal)
    if (facts === undefined || facts.isEncoded || facts.sizeBytes !== object.sizeBytes) return false
    if (facts.sha256 !== undefined) return facts.sha256 === digestHex(object.digest)
    if (options.trustKey === true) return true
    if (facts.md5 === undefined) return false
    const md5 = await attempt(`read ${object.key}`, () => contentHash(object, 'md5', options), options.signal)
    return md5 === facts.md5
  }

  async put(object: PublishedObject, options: ObjectOptions): Promise<void> {
    const { signal } = options
    const send = async (): Promise<void> => {
      const partBytes = partBytesFor(object.sizeBytes, this.#partBytes)
      if (object.sizeBytes <= partBytes) await this.#putAtOnce(object, options)
      // retry once if the store has dropped the upload, unless another publisher has completed the object
      else if (
        !(await sendInParts(this.#bucket, object, partBytes, options)) &&
        !(await this.has(object, { signal }))
      ) {
        if (!(await sendInParts(this.#bucket, object, partBytes, { signal })))
          throw new PublishError('E_UNAVAILABLE', `${this.name} drops uploads before they are complete: ${object.key}`)
      }
      const facts = await this.#bucket.head(object.key, signal)
      if (facts?.sizeBytes !== object.sizeBytes) {
        const found = facts === undefined ? 'does not list it' : `lists it with ${facts.sizeBytes} bytes`
        throw new PublishError('E_UNAVAILABLE', `${this.name} accepted ${object.key} but ${found}`)
      }
    }
    return attempt(`read ${object.key}`, send, signal)
  }

  async readRange(object: PublishedObject, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    const found = await this.#bucket.get(object.key, { range: [start, end], maxBytes: end - start }, signal)
    if (found === undefined) throw new PublishError('E_CHECK_FAILED', `${this.name} does not have ${object.key}`)
    if (found.contentRange !== `bytes ${start}-${end - 1}/${object.sizeBytes}`) {
      const said = found.contentRange ?? 'none'
      throw new PublishError(
        'E_CHECK_FAILED',
        `${this.name}${object.key}: got a different range than requested: ${said}`
      )
    }
    return found.bytes
  }

  async readDocument(key: string, maxBytes: number, signal?: AbortSignal): Promise<StoredDocument | undefined> {
    const found = await this.#bucket.get(key, { maxBytes }, signal)
    return found && { bytes: found.bytes, version: found.tag }
  }

  replaceDocument(
    object: PublishedObject & { readonly content: Uint8Array },
    before: StoredDocument | undefined,
    signal?: AbortSignal
  ): Promise<boolean> {
    return this.#bucket.put(object, object.content, before?.version ?? '', signal)
  }

  remove(key: string, signal?: AbortSignal): Promise<void> {
    return this.#bucket.remove(key, signal)
  }

  /** Unknown without a listing, which the credentials need not permit. */
  async isEmpty(): Promise<boolean> {
    return true
  }

  async close(): Promise<void> {
    this.#bucket.close()
  }

  async #putAtOnce(object: PublishedObject, { signal, onBytes }: ObjectOptions): Promise<void> {
    const body = await readContentRange(object, 0, object.sizeBytes)
    if (digestOf(body) !== object.digest) throw wrongBytes(object)
    await this.#bucket.put(object, body, undefined, signal)
    onBytes?.(body.length)
  }
}
