import { createHash } from 'node:crypto'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand
} from '@aws-sdk/client-s3'
import { encodePath } from '@svc/internal-http'
import { digestHex } from '@svc/ref'
import { PublishError } from '../errors.ts'
import type { Place } from '../place.ts'
import type { PublishedObject } from '../target.ts'
import { boundAnswers } from './answers.ts'
import { errorNameOf, errorStatusOf, s3Error } from './failure.ts'

/** S3's limit per upload. */
export const MAX_PARTS = 10_000
/** Attempts per request; the backoff grows to 20 s, or follows the store's Retry-After. */
const MAX_ATTEMPTS = 8
const CONNECT_TIMEOUT_MS = 10_000
/** A connection without traffic for this long has failed. */
const STALL_MS = 60_000
/** Pages of a list of parts: usually ten, with a thousand parts each. */
const MAX_PAGES = 200

/** How to reach a bucket. Defaults come from the standard AWS sources: environment, shared files, instance roles. */
export interface S3Options {
  /** URL of an S3-compatible store, addressed path-style. Default `AWS_ENDPOINT_URL_S3`, then `AWS_ENDPOINT_URL`. */
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Larger objects are uploaded in parts of this size, or larger ones if it would take more than 10,000. Default 16 MiB. */
  readonly partBytes?: number | undefined
}

/** Metadata of an object, from a HEAD request. */
export interface ObjectFacts {
  readonly sizeBytes: number
  /** SHA-256 in hex, from the object's user metadata. */
  readonly sha256: string | undefined
  /** MD5 in hex, if the ETag is one. */
  readonly md5: string | undefined
  readonly isEncoded: boolean
}

export interface StoredPart {
  readonly sizeBytes: number
  /** The ETag, verbatim: completing the upload requires it. */
  readonly tag: string
}

/**
 * A prefix of a bucket (decision 0060): the requests that a publication needs, with errors mapped to
 * {@link PublishError}. Bodies are signed, so the store rejects damaged ones; trailing checksums are off because not all
 * stores support them.
 */
export class Bucket {
  readonly name: string
  readonly url: string
  readonly #client: S3Client
  readonly #bucket: string
  readonly #prefix: string
  #canCondition = true

  private constructor(client: S3Client, { bucket, prefix }: Extract<Place, { kind: 's3' }>, url: string) {
    this.#client = client
    this.#bucket = bucket
    this.#prefix = prefix
    this.name = `s3://${bucket}/${prefix}`
    this.url = url
  }

  /** @throws PublishError `E_BAD_TARGET`, `E_CREDENTIALS` */
  static async open(place: Extract<Place, { kind: 's3' }>, options: S3Options): Promise<Bucket> {
    const env = options.env ?? process.env
    const endpoint = options.endpoint ?? set(env.AWS_ENDPOINT_URL_S3) ?? set(env.AWS_ENDPOINT_URL)
    if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
      throw new PublishError('E_BAD_TARGET', `the endpoint ${endpoint} is not an http or https URL`)
    const region = options.region ?? set(env.AWS_REGION) ?? set(env.AWS_DEFAULT_REGION)
    const config: S3ClientConfig = {
      ...credentialsOf(env),
      ...(region !== undefined && { region }),
      ...(endpoint !== undefined && {
        endpoint,
        forcePathStyle: true,
        ...(region === undefined && { region: 'us-east-1' })
      }),
      maxAttempts: MAX_ATTEMPTS,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: STALL_MS, ...proxyAgents(env) }
    }
    const client = new S3Client(config)
    boundAnswers(client)
    try {
      const path = place.prefix === '' ? '' : encodePath(place.prefix)
      const known = endpoint ?? (await configuredEndpoint(client))
      if (known !== undefined) return new Bucket(client, place, `${known.replace(/\/+$/, '')}/${place.bucket}/${path}`)
      const host = `s3.${await client.config.region()}.amazonaws.com`
      // a wildcard certificate does not cover bucket names with dots: use a path-style URL
      const base = place.bucket.includes('.') ? `${host}/${place.bucket}` : `${place.bucket}.${host}`
      return new Bucket(client, place, `https://${base}/${path}`)
    } catch (error) {
      client.destroy()
      if (error instanceof PublishError) throw error
      throw new PublishError(
        'E_BAD_TARGET',
        `${place.bucket}: ${(error as Error).message}; name the region with --region`,
        error
      )
    }
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined> {
    const ask = async (): Promise<ObjectFacts> => {
      const answer = await this.#client.send(new HeadObjectCommand(this.#at(key)), during(signal))
      const tag = answer.ETag?.replaceAll('"', '')
      const isMd5 = answer.ServerSideEncryption !== 'aws:kms' && answer.SSECustomerAlgorithm === undefined
      return {
        sizeBytes: answer.ContentLength ?? 0,
        sha256: answer.Metadata?.sha256,
        md5: isMd5 && tag !== undefined && /^[0-9a-f]{32}$/.test(tag) ? tag : undefined,
        isEncoded: !['', 'identity'].includes(answer.ContentEncoding ?? '')
      }
    }
    return this.#attempt(`inspect ${this.name}${key}`, ask, signal, isAbsent)
  }

  /** Reads an object or a range of it, at most `maxBytes`; undefined if there is no such object. */
  async get(
    key: string,
    { range, maxBytes }: { readonly range?: readonly [number, number]; readonly maxBytes: number },
    signal?: AbortSignal
  ): Promise<
    { readonly bytes: Uint8Array; readonly tag: string; readonly contentRange: string | undefined } | undefined
  > {
    const read = async () => {
      const Range = range && `bytes=${range[0]}-${range[1] - 1}`
      const answer = await this.#client.send(new GetObjectCommand({ ...this.#at(key), Range }), during(signal))
      const chunks: Uint8Array[] = []
      let length = 0
      for await (const chunk of answer.Body as AsyncIterable<Uint8Array>) {
        length += chunk.length
        if (length > maxBytes)
          throw new PublishError('E_BAD_TARGET', `${this.name}${key} has more than ${maxBytes} bytes`)
        chunks.push(chunk)
      }
      return { bytes: Buffer.concat(chunks), tag: answer.ETag ?? '', contentRange: answer.ContentRange }
    }
    return this.#attempt(`read ${this.name}${key}`, read, signal, isAbsent)
  }

  /**
   * @param before replace only the version with this ETag; `''`: only create. Ignored by stores without conditional writes
   * @returns false if the condition did not hold
   */
  async put(object: PublishedObject, body: Uint8Array, before?: string, signal?: AbortSignal): Promise<boolean> {
    const input = { ...this.#at(object.key), ...headersOf(object), Body: body, ContentMD5: md5Of(body, 'base64') }
    const condition =
      before === undefined || !this.#canCondition ? {} : before === '' ? { IfNoneMatch: '*' } : { IfMatch: before }
    try {
      await this.#client.send(new PutObjectCommand({ ...input, ...condition }), during(signal))
      return true
    } catch (error) {
      const status = errorStatusOf(error)
      if (status === 412 || (status === 409 && errorNameOf(error) === 'ConditionalRequestConflict')) return false
      if (status === 501 && Object.keys(condition).length > 0) {
        this.#canCondition = false
        return this.put(object, body, before, signal)
      }
      throw s3Error(error, `write ${this.name}${object.key}`, signal)
    }
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    const command = new DeleteObjectCommand(this.#at(key))
    await this.#attempt(`remove ${this.name}${key}`, () => this.#client.send(command, during(signal)), signal)
  }

  /** @returns the id of a new multipart upload */
  async begin(object: PublishedObject, signal?: AbortSignal): Promise<string> {
    const command = new CreateMultipartUploadCommand({ ...this.#at(object.key), ...headersOf(object) })
    const send = () => this.#client.send(command, during(signal))
    const answer = await this.#attempt(`start uploading ${this.name}${object.key}`, send, signal)
    if (answer?.UploadId !== undefined) return answer.UploadId
    throw new PublishError('E_UNAVAILABLE', `${this.name} returned no upload id`)
  }

  /** Lists the parts of an upload, by number; undefined if the store knows no such upload. */
  parts(key: string, uploadId: string, signal?: AbortSignal): Promise<Map<number, StoredPart> | undefined> {
    const parts = new Map<number, StoredPart>()
    const list = async (): Promise<Map<number, StoredPart>> => {
      let pages = 0
      for (let marker: string | undefined; ; ) {
        const input = { ...this.#at(key), UploadId: uploadId, PartNumberMarker: marker }
        const page = await this.#client.send(new ListPartsCommand(input), during(signal))
        for (const { PartNumber, Size, ETag } of page.Parts ?? []) {
          if (PartNumber !== undefined && ETag !== undefined) parts.set(PartNumber, { sizeBytes: Size ?? 0, tag: ETag })
        }
        const next = page.NextPartNumberMarker
        // a marker that does not advance, or goes beyond all parts, would make this loop forever
        const last = Number(next)
        if (page.IsTruncated !== true || !(last > Number(marker ?? 0)) || last >= MAX_PARTS) return parts
        pages += 1
        if (pages > MAX_PAGES) throw new PublishError('E_UNAVAILABLE', `${this.name} lists parts without end`)
        marker = next
      }
    }
    return this.#attempt(`list the uploaded parts of ${this.name}${key}`, list, signal, isGone)
  }

  /** @returns the part's ETag; undefined if the store no longer knows the upload */
  async part(
    key: string,
    uploadId: string,
    number: number,
    body: Uint8Array,
    signal?: AbortSignal
  ): Promise<string | undefined> {
    const input = {
      ...this.#at(key),
      UploadId: uploadId,
      PartNumber: number,
      Body: body,
      ContentMD5: md5Of(body, 'base64')
    }
    const send = async (): Promise<string> =>
      (await this.#client.send(new UploadPartCommand(input), during(signal))).ETag ?? ''
    return this.#attempt(`write ${this.name}${key}`, send, signal, isGone)
  }

  /** Completes a multipart upload. @returns false if the store no longer knows the upload */
  async complete(key: string, uploadId: string, tags: readonly string[], signal?: AbortSignal): Promise<boolean> {
    const Parts = tags.map((ETag, i) => ({ ETag, PartNumber: i + 1 }))
    const input = { ...this.#at(key), UploadId: uploadId, MultipartUpload: { Parts } }
    const send = () => this.#client.send(new CompleteMultipartUploadCommand(input), during(signal))
    return (await this.#attempt(`finish ${this.name}${key}`, send, signal, isGone)) !== undefined
  }

  async abort(key: string, uploadId: string): Promise<void> {
    // best effort: the caller is already failing for another reason
    await this.#client
      .send(new AbortMultipartUploadCommand({ ...this.#at(key), UploadId: uploadId }))
      .catch(() => undefined)
  }

  /** Length of the full key, prefix included. */
  keyBytes(key: string): number {
    return Buffer.byteLength(`${this.#prefix}${key}`)
  }

  close(): void {
    this.#client.destroy()
  }

  /** @returns undefined after an error that means nothing is there (`isNothing`). @throws as {@link s3Error} */
  async #attempt<T>(
    doing: string,
    work: () => Promise<T>,
    signal: AbortSignal | undefined,
    isNothing: (error: unknown) => boolean = () => false
  ): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (isNothing(error)) return undefined
      throw s3Error(error, doing, signal)
    }
  }

  #at(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${key}` }
  }
}

/** MD5, for Content-MD5 and ETags only: never proof of a model's integrity. */
export const md5Of = (bytes: Uint8Array, encoding: 'hex' | 'base64'): string =>
  createHash('md5').update(bytes).digest(encoding)

const isAbsent = (error: unknown): boolean => errorStatusOf(error) === 404 && errorNameOf(error) !== 'NoSuchBucket'

const isGone = (error: unknown): boolean => errorNameOf(error) === 'NoSuchUpload'

const PROXY_NAMES = ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy']

/** Agents that use the proxy in the environment, as Node's do from version 24.5 on. */
function proxyAgents(env: Readonly<Record<string, string | undefined>>): Record<string, unknown> {
  if (PROXY_NAMES.every((name) => set(env[name]) === undefined)) return {}
  const options = { keepAlive: true, maxSockets: 50, proxyEnv: env }
  try {
    return { httpAgent: new HttpAgent(options), httpsAgent: new HttpsAgent(options) }
  } catch {
    // Node's error repeats the address, which may hold a password
    throw new PublishError('E_BAD_TARGET', 'the proxy in the environment is not a valid http:// or https:// address')
  }
}

const set = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value)

const headersOf = ({ contentType, cacheControl, digest }: PublishedObject) => ({
  ContentType: contentType,
  CacheControl: cacheControl,
  Metadata: { sha256: digestHex(digest) }
})

/** Keys in the environment win, as in the AWS CLI; the client's default chain finds everything else. */
function credentialsOf(env: NonNullable<S3Options['env']>): Pick<S3ClientConfig, 'credentials'> {
  const [accessKeyId, secretAccessKey] = [set(env.AWS_ACCESS_KEY_ID), set(env.AWS_SECRET_ACCESS_KEY)]
  if (accessKeyId === undefined || secretAccessKey === undefined) return {}
  const sessionToken = set(env.AWS_SESSION_TOKEN)
  return { credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) } }
}

/** `endpoint_url` from the shared AWS configuration. */
async function configuredEndpoint(client: S3Client): Promise<string | undefined> {
  const found = await client.config.endpoint?.()
  return found === undefined
    ? undefined
    : `${found.protocol}//${found.hostname}${found.port ? `:${found.port}` : ''}${found.path}`
}

const during = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { abortSignal: signal })
