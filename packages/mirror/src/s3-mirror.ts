import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '@svc/internal-clock'
import { Gate } from '@svc/internal-concurrency'
import { blobAnswer, HARDENING } from '@svc/internal-server'
import { futureQuant } from '@svc/library/parts'
import { digestBytes, digestHex } from '@svc/ref'
import { ArtifactFiles, type FilesOf } from './artifact-files.ts'
import type { WaitingClient } from './demand.ts'
import { BUCKET, document, element, REGION, refuseAsS3, refuseS3, S3Error, sendXml } from './s3-answers.ts'
import { requireSignature, type S3Keys } from './s3-auth.ts'
import { formatPage, type ListedObject, type ListPage, type ListQuery, listPage, parseListQuery } from './s3-listing.ts'
import { clientOf } from './send-file.ts'
import type { ServedFile } from './served-files.ts'
import { type NamedMember, notNowOf, type ServedModels, sorted } from './served-models.ts'
import { type Awaited, HOLD_MS } from './swarm-demand.ts'

const LISTED_AT_ONCE = 2
/** How often a page is rebuilt because a model in it was withheld meanwhile. */
const MAX_TRIES = 4
const DOOR = 's3-mirror'

/** Query parameters of operations that this bucket does not have. */
const SUBRESOURCES =
  'accelerate acl analytics attributes cors encryption intelligent-tiering inventory legal-hold lifecycle logging metrics notification object-lock ownershipControls partNumber policy policyStatus publicAccessBlock replication requestPayment restore retention select tagging torrent uploadId uploads versionId versioning versions website'.split(
    ' '
  )

export interface S3MirrorDeps extends FilesOf {
  readonly clock: Clock
  /** Asked for each request, since keys are renewed. Absent: no key is needed. */
  readonly s3Keys?: (() => Promise<S3Keys>) | undefined
}

/**
 * Responds like an object store that has one bucket, `models`, with the files of all models that have a name here, as
 * `ns/name/quant/path` (spec add.58). Read-only, path style; private and restricted models do not exist here.
 */
export class S3Mirror {
  /** Clients have keys in place of the mirrors' token. */
  readonly port = { name: 'S3 mirror', token: undefined, refuse: refuseAsS3 }
  readonly #deps: S3MirrorDeps
  readonly #served: ServedModels
  readonly #files: ArtifactFiles
  readonly #lists = new Gate(LISTED_AT_ONCE)

  constructor(deps: S3MirrorDeps) {
    this.#deps = deps
    this.#served = deps.served
    this.#files = new ArtifactFiles({ ...deps, door: DOOR, mayStart: true })
  }

  /** @throws the error of `s3Keys` */
  async open(): Promise<void> {
    await this.#deps.s3Keys?.()
  }

  async route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    try {
      const keys = await this.#deps.s3Keys?.()
      if (keys !== undefined) requireSignature(request, url, keys, this.#deps.clock.now())
      await this.#answer(request, response, url)
    } catch (error) {
      if (error instanceof S3Error) return refuseS3(response, error)
      const { status, code, message, headers } = notNowOf(error)
      refuseAsS3(response, status, code, message, headers)
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const mark = url.indexOf('?')
    const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
    for (const name of query.keys())
      if (SUBRESOURCES.includes(name)) throw new S3Error('NotImplemented', 'this bucket is read-only')
    const [, bucket = '', key = ''] = /^\/([^/]*)\/?(.*)$/s.exec(decoded(mark < 0 ? url : url.slice(0, mark))) ?? []
    if (bucket === '') return sendXml(response, BUCKETS)
    if (bucket !== BUCKET) throw new S3Error('NoSuchBucket', `the only bucket here is "${BUCKET}"`)
    if (key !== '') return this.#object(request, response, key)
    if (request.method === 'HEAD') return sendXml(response, '', 200, { 'x-amz-bucket-region': REGION })
    // S3 does not name its first region
    if (query.has('location')) return sendXml(response, document('LocationConstraint', ''))
    const asked = parseListQuery(query)
    const [, name] = /^([^/]+\/[^/]+)\//.exec(asked.prefix) ?? []
    // a listing is no reason to fetch anything
    if (name !== undefined) await this.#described(name, false, clientOf(request, response))
    const page = await this.#lists.run(undefined, () => this.#page(asked))
    sendXml(response, formatPage(asked, page))
  }

  async #page(query: ListQuery): Promise<ListPage<NamedMember>> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const named = await this.#served.allNamed(DOOR)
      const coming: NamedMember[] = []
      for (const awaited of await this.#served.allAwaited(DOOR)) {
        const member = await this.#comingMember(awaited)
        if (member !== undefined) coming.push(member)
      }
      const page = await listPage(query, sorted(named, coming), (member) => this.#objectsOf(member))
      // asked last: the owner may have changed their mind meanwhile
      if ((await this.#served.shown(page.of, DOOR)).size === page.of.size) return page
    }
    throw new S3Error('SlowDown', 'the models kept changing while they were listed')
  }

  /** An artifact that will get a name; undefined while its quant is unknown. */
  async #comingMember({ name, manifest, companions }: Awaited): Promise<NamedMember | undefined> {
    const presence = await this.#deps.ways.swarm?.presence(manifest)
    const quant = presence && (await futureQuant(this.#deps.store, presence))
    if (quant === undefined) return undefined
    const modifiedAt = await this.#served.modifiedAt(manifest)
    return { name, manifest, companions, quant, modifiedAt, prefix: `${name}/${quant}/` }
  }

  /** The artifact that has a name, else one that will get it. */
  async #member(name: string, quant: string): Promise<NamedMember | undefined> {
    const named = (await this.#served.named(name, DOOR)).find((each) => each.quant === quant)
    if (named !== undefined) return { ...named, name, prefix: `${name}/${quant}/` }
    for (const awaited of await this.#served.awaited(name, DOOR)) {
      const member = await this.#comingMember(awaited)
      if (member?.quant === quant) return member
    }
    return undefined
  }

  /** Waits until the files of everything that arrives under a name are known. @throws NotNowError */
  async #described(name: string, mayStart: boolean, client: WaitingClient): Promise<void> {
    await this.#files.described(client, HOLD_MS, (by) => by.name === name)
    const demand = this.#deps.ways.swarm
    if (demand === undefined) return
    const named = await this.#served.named(name, DOOR)
    for (const shown of [...named, ...(await this.#served.awaited(name, DOOR))]) {
      const presence = this.#served.files.isKnown(shown) ? undefined : await demand.presence(shown.manifest)
      if (presence?.isDescribed === false) await demand.described({ ...shown, name }, presence, mayStart, client)
    }
  }

  async #objectsOf(member: NamedMember): Promise<readonly ListedObject[]> {
    const files = (await this.#files.of(member)) ?? []
    const modifiedAt = timeOf(member.modifiedAt)
    return files.map((file) => {
      const { name, sizeBytes } = file
      return { key: member.prefix + name, sizeBytes, etag: etagOf(file), modifiedAt }
    })
  }

  async #object(request: IncomingMessage, response: ServerResponse, key: string): Promise<void> {
    const [, name, quant, path] = /^([^/]+\/[^/]+)\/([^/]+)\/(.+)$/s.exec(key) ?? []
    // if the view is gone, its cached facts are discarded: the second attempt finds the current ones
    for (let tries = 0; name !== undefined && tries < 2; tries++) {
      let member = await this.#member(name, quant!)
      let files = member && (await this.#files.of(member))
      if (files === undefined) {
        await this.#described(name, request.method === 'GET', clientOf(request, response))
        member = await this.#member(name, quant!)
        files = member && (await this.#files.of(member))
      }
      const file = files?.find((each) => each.name === path)
      if (file === undefined) break
      if (await this.#send(request, response, member!, file)) return
      this.#served.files.forget(member!.manifest)
    }
    throw new S3Error('NoSuchKey', 'there is no such key')
  }

  #send(
    request: IncomingMessage,
    response: ServerResponse,
    { name, manifest, companions, modifiedAt }: NamedMember,
    file: ServedFile
  ): Promise<boolean> {
    const version = { etag: etagOf(file), modifiedAt: timeOf(modifiedAt) }
    const isWhole = blobAnswer(request, version, file.sizeBytes).status === 200
    const asksForSum = `${request.headers['x-amz-checksum-mode']}`.toUpperCase() === 'ENABLED'
    const headers = { ...HARDENING, ...(isWhole && asksForSum && checksumOf(file)) }
    const shown = { name, manifest, companions }
    const mayGive = async (): Promise<boolean> => (await this.#served.shown([shown], DOOR)).size === 1
    const options = { headers, mayGive, refuse: refuseAsS3, inParts: !isWhole, ...version }
    return this.#files.send(request, response, { ...shown, file }, options)
  }
}

const BUCKETS = document(
  'ListAllMyBucketsResult',
  `<Owner>${element('ID', 'svc')}${element('DisplayName', 'svc')}</Owner><Buckets><Bucket>${element('Name', BUCKET)}${element('CreationDate', new Date(0).toISOString())}</Bucket></Buckets>`
)

/** With a suffix, so that no client takes it for an MD5. */
const etagOf = ({ digest }: ServedFile): string => `"${digestHex(digest)}-1"`

const checksumOf = ({ digest }: ServedFile) => ({
  'x-amz-checksum-sha256': Buffer.from(digestBytes(digest)).toString('base64'),
  'x-amz-checksum-type': 'FULL_OBJECT'
})

/** Unknown for artifacts of earlier versions. */
const timeOf = (modifiedAt: string | undefined): Date => new Date(modifiedAt ?? 0)

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw new S3Error('InvalidURI', 'the address is not percent-encoded UTF-8')
  }
}
