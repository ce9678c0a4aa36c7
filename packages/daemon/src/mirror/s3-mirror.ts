import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DiskBlobStore } from '@svc/cas'
import type { Clock } from '@svc/internal-clock'
import { Gate } from '@svc/internal-concurrency'
import { digestBytes, digestHex } from '@svc/ref'
import { S3_KEYS, type S3Keys } from '../config/s3-keys.ts'
import { blobAnswerTo } from '../http/blob-response.ts'
import { BufferPool } from '../http/buffer-pool.ts'
import { GuardedListener, HARDENING, type ListenerOptions } from '../http/guarded-listener.ts'
import type { Listeners } from '../http/traffic.ts'
import type { SecretFile } from '../secret-file.ts'
import type { MirrorOptions } from './hub-mirror.ts'
import { BUCKET, document, element, REGION, refuseAsS3, refuseS3, S3Error, sendXml } from './s3-answers.ts'
import { requireSignature } from './s3-auth.ts'
import { formatPage, type ListedObject, type ListPage, type ListQuery, listPage, parseListQuery } from './s3-listing.ts'
import { sendFile } from './send-file.ts'
import { lacksSpace, type NamedMember, type ServedFile, type ServedModels } from './served-models.ts'
import { NotNowError } from './upstream.ts'

const CHUNK_BYTES = 256 << 10
const LISTED_AT_ONCE = 2
/** How often a page is made anew that names what was withheld meanwhile. */
const MAX_TRIES = 4
const DOOR = 's3-mirror'

/** What an address asks for besides reading: none of it is here. */
const SUBRESOURCES =
  'accelerate acl analytics attributes cors encryption intelligent-tiering inventory legal-hold lifecycle logging metrics notification object-lock ownershipControls partNumber policy policyStatus publicAccessBlock replication requestPayment restore retention select tagging torrent uploadId uploads versionId versioning versions website'.split(
    ' '
  )

/** The daemon's objects that the S3 mirror uses. */
export interface S3MirrorDeps {
  readonly clock: Clock
  readonly store: DiskBlobStore
  readonly served: ServedModels
  /** Counts the listener's traffic. */
  readonly listeners?: Listeners
  /** Absent: nobody needs a key. */
  readonly s3Keys?: SecretFile<S3Keys> | undefined
}

/**
 * Responds like an object store that has one bucket, `models`, with the files of all models that have a name here, as
 * `ns/name/quant/path` (spec add.58). Read-only, path style; private and restricted models do not exist here.
 */
export class S3Mirror {
  readonly #deps: S3MirrorDeps
  readonly #served: ServedModels
  readonly #pool = new BufferPool(CHUNK_BYTES)
  readonly #lists = new Gate(LISTED_AT_ONCE)
  #listener!: GuardedListener

  private constructor(deps: S3MirrorDeps) {
    this.#deps = deps
    this.#served = deps.served
  }

  /** Clients have keys in place of the mirrors' token. @throws the error of `listen` */
  static async listen(deps: S3MirrorDeps, { address, names = [], log }: MirrorOptions): Promise<S3Mirror> {
    const mirror = new S3Mirror(deps)
    await deps.s3Keys?.read(S3_KEYS)
    const answer: ListenerOptions['answer'] = (request, response, url) => mirror.#route(request, response, url)
    const traffic = deps.listeners?.add('s3')
    const requireStore = (): void => deps.store.requireRoot()
    const options = { name: 'S3 mirror', address, names, log, requireStore, answer, traffic, refuse: refuseAsS3 }
    mirror.#listener = await GuardedListener.listen(options)
    return mirror
  }

  get address(): { readonly host: string; readonly port: number } {
    return this.#listener.address
  }

  close(): Promise<void> {
    return this.#listener.close()
  }

  async #route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    try {
      const keys = await this.#deps.s3Keys?.read(S3_KEYS)
      if (keys !== undefined) requireSignature(request, url, keys, this.#deps.clock.now())
      await this.#answer(request, response, url)
    } catch (error) {
      if (error instanceof S3Error) return refuseS3(request, response, error)
      if (lacksSpace(error))
        return refuseS3(request, response, { code: 'ServiceUnavailable', message: 'no room to lay the model out' })
      if (!(error instanceof NotNowError)) throw error
      const { status, code, message, retryAfterSeconds: wait } = error
      refuseAsS3(request, response, status, code, message, wait === undefined ? {} : { 'Retry-After': wait })
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const mark = url.indexOf('?')
    const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
    for (const name of query.keys())
      if (SUBRESOURCES.includes(name)) throw new S3Error('NotImplemented', 'models are only listed and read here')
    const [, bucket = '', key = ''] = /^\/([^/]*)\/?(.*)$/s.exec(decoded(mark < 0 ? url : url.slice(0, mark))) ?? []
    if (bucket === '') return sendXml(request, response, BUCKETS)
    if (bucket !== BUCKET) throw new S3Error('NoSuchBucket', `the one bucket here is "${BUCKET}"`)
    if (key !== '') return this.#object(request, response, key)
    if (request.method === 'HEAD') return sendXml(request, response, '', 200, { 'x-amz-bucket-region': REGION })
    // of the first region there is, its name is not told
    if (query.has('location')) return sendXml(request, response, document('LocationConstraint', ''))
    const asked = parseListQuery(query)
    const page = await this.#lists.run(undefined, () => this.#page(asked))
    sendXml(request, response, formatPage(asked, page))
  }

  async #page(query: ListQuery): Promise<ListPage> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const page = await listPage(query, await this.#served.allNamed(DOOR), (member) => this.#objectsOf(member))
      // asked last: the owner may have changed their mind meanwhile
      if ((await this.#served.given(page.manifests, DOOR)).size === page.manifests.size) return page
    }
    throw new S3Error('SlowDown', 'the models here change faster than they are listed')
  }

  async #objectsOf({ prefix, manifest, importedAt }: NamedMember): Promise<readonly ListedObject[]> {
    const files = await this.#filesOf(manifest)
    const modifiedAt = timeOf(importedAt)
    return files.map((file) => ({ key: prefix + file.name, sizeBytes: file.sizeBytes, etag: etagOf(file), modifiedAt }))
  }

  /** What cannot be laid out has no files. */
  #filesOf(manifest: NamedMember['manifest']): Promise<readonly ServedFile[]> {
    return this.#served.files(manifest).catch((error: unknown) => {
      if (lacksSpace(error)) throw error
      return []
    })
  }

  async #object(request: IncomingMessage, response: ServerResponse, key: string): Promise<void> {
    // if the view is gone, its cached facts are discarded: the second attempt finds the current ones
    if ((await this.#send(request, response, key)) || (await this.#send(request, response, key))) return
    throw new S3Error('NoSuchKey', 'there is no such key')
  }

  async #send(request: IncomingMessage, response: ServerResponse, key: string): Promise<boolean> {
    const [, name, quant, path] = /^([^/]+\/[^/]+)\/([^/]+)\/(.+)$/s.exec(key) ?? []
    const members = name === undefined ? [] : await this.#served.named(name, DOOR)
    const member = members.find((each) => each.quant === quant)
    const file = member && (await this.#filesOf(member.manifest)).find((each) => each.name === path)
    if (member === undefined || file === undefined) return false
    const { manifest } = member
    const version = { etag: etagOf(file), modifiedAt: timeOf(member.importedAt) }
    const isWhole = blobAnswerTo(request, version, file.sizeBytes).status === 200
    const asksForSum = `${request.headers['x-amz-checksum-mode']}`.toUpperCase() === 'ENABLED'
    const headers = { ...HARDENING, ...(isWhole && asksForSum && checksumOf(file)) }
    const mayGive = (): Promise<boolean> => this.#mayGive(name!, manifest)
    const options = { store: this.#deps.store, pool: this.#pool, headers, mayGive, refuse: refuseAsS3, ...version }
    const send = (): Promise<boolean> => sendFile(request, response, file, options)
    const isSent = await this.#served.whileGiven(response, manifest, DOOR, send)
    if (!isSent) this.#served.forget(manifest)
    return isSent
  }

  /** Right before the head is sent. */
  async #mayGive(name: string, manifest: NamedMember['manifest']): Promise<boolean> {
    return (await this.#served.shown(name, [manifest], DOOR)).has(manifest)
  }
}

const BUCKETS = document(
  'ListAllMyBucketsResult',
  `<Owner>${element('ID', 'svc')}${element('DisplayName', 'svc')}</Owner><Buckets><Bucket>${element('Name', BUCKET)}${element('CreationDate', new Date(0).toISOString())}</Bucket></Buckets>`
)

/** No client takes it for an MD5: these have no suffix. */
const etagOf = ({ digest }: ServedFile): string => `"${digestHex(digest)}-1"`

const checksumOf = ({ digest }: ServedFile) => ({
  'x-amz-checksum-sha256': Buffer.from(digestBytes(digest)).toString('base64'),
  'x-amz-checksum-type': 'FULL_OBJECT'
})

/** Of artifacts of earlier versions nobody knows. */
const timeOf = (importedAt: string | undefined): Date => new Date(importedAt ?? 0)

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw new S3Error('InvalidURI', 'the address is not percent-encoded UTF-8')
  }
}
