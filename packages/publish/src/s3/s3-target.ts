import { createHash } from 'node:crypto'
import { digestHex } from '@svc/ref'
import { chunksOf, digestOf, readContent, wrongBytes } from '../content.ts'
import { ioError, PublishError } from '../errors.ts'
import type { Place } from '../place.ts'
import type { ObjectOptions, PublishedObject, StoredDocument, Target } from '../target.ts'
import { Bucket } from './bucket.ts'
import { sendInParts } from './multipart.ts'
import type { S3Options } from './options.ts'
import { PART_BYTES, partBytesFor } from './part-size.ts'

/** S3's bound for the key of an object. */
const MAX_KEY_BYTES = 1024

/**
 * A bucket that readers reach over HTTP. An object is visible whole or not at all; large ones go up in parts, and an upload that was
 * interrupted is taken up by the next call, from wherever that comes. What is there is told by its size and the SHA-256 that this noted
 * with it; where other tools have put it there, by the store's MD5.
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

  /** Buckets do not say how much room they have; but keys have a bound. */
  async requireRoom(objects: readonly PublishedObject[]): Promise<void> {
    const long = objects.find(({ key }) => this.#bucket.keyBytes(key) > MAX_KEY_BYTES)
    if (long === undefined) return
    throw new PublishError(
      'E_BAD_TARGET',
      `${this.name}${long.key} has more than the ${MAX_KEY_BYTES} bytes that S3 allows; take a shorter prefix`
    )
  }

  async has(object: PublishedObject, { signal, onBytes }: ObjectOptions): Promise<boolean> {
    const facts = await this.#bucket.head(object.key, signal)
    if (facts === undefined || facts.isEncoded || facts.sizeBytes !== object.sizeBytes) return false
    if (facts.sha256 !== undefined) return facts.sha256 === digestHex(object.digest)
    if (facts.md5 === undefined) return false
    const hash = createHash('md5')
    try {
      for await (const chunk of chunksOf(object)) {
        signal?.throwIfAborted()
        hash.update(chunk)
        onBytes?.(chunk.length)
      }
    } catch (error) {
      throw ioError(error, `read ${object.key}`, signal)
    }
    return hash.digest('hex') === facts.md5
  }

  async put(object: PublishedObject, options: ObjectOptions): Promise<void> {
    const { signal } = options
    try {
      const partBytes = partBytesFor(object.sizeBytes, this.#partBytes)
      if (object.sizeBytes <= partBytes) await this.#putAtOnce(object, options)
      // once more where the store had forgotten the upload, and nobody else has finished it
      else if (
        !(await sendInParts(this.#bucket, object, partBytes, options)) &&
        !(await this.has(object, { signal }))
      ) {
        if (!(await sendInParts(this.#bucket, object, partBytes, { signal }))) {
          throw new PublishError('E_UNAVAILABLE', `${this.name} forgets uploads while they are sent: ${object.key}`)
        }
      }
      const facts = await this.#bucket.head(object.key, signal)
      if (facts?.sizeBytes !== object.sizeBytes) {
        const found = facts === undefined ? 'does not have it' : `has ${facts.sizeBytes} bytes of it`
        throw new PublishError('E_UNAVAILABLE', `${this.name} took ${object.key} and ${found}`)
      }
    } catch (error) {
      throw ioError(error, `read ${object.key}`, signal)
    }
  }

  async readRange(object: PublishedObject, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    const found = await this.#bucket.get(object.key, { range: [start, end], maxBytes: end - start }, signal)
    if (found === undefined) throw new PublishError('E_CHECK_FAILED', `${this.name} does not have ${object.key}`)
    if (found.contentRange !== `bytes ${start}-${end - 1}/${object.sizeBytes}`) {
      const said = found.contentRange ?? 'none'
      throw new PublishError(
        'E_CHECK_FAILED',
        `${this.name}${object.key} answers another range than the one asked for: ${said}`
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

  async close(): Promise<void> {
    this.#bucket.close()
  }

  async #putAtOnce(object: PublishedObject, { signal, onBytes }: ObjectOptions): Promise<void> {
    const body = await readContent(object, 0, object.sizeBytes)
    if (digestOf(body) !== object.digest) throw wrongBytes(object)
    await this.#bucket.put(object, body, undefined, signal)
    onBytes?.(body.length)
  }
}
