import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { DiskBlobStore } from '@svc/cas'
import { parseModelConfig } from '@svc/manifest'
import type { PackedImage } from '@svc/oci'
import { isDigest, parseDigest, type Sha256Digest, tryParseDigest } from '@svc/ref'
import { BufferPool } from '../http/buffer-pool.ts'
import { GuardedListener, HARDENING, type ListenerOptions, refuse, sendBytes } from '../http/guarded-listener.ts'
import type { Listeners } from '../http/traffic.ts'
import { configQuant } from '../library/config-quant.ts'
import type { Documents } from '../library/documents.ts'
import { readSmallBlob } from '../library/small-blob.ts'
import type { MirrorOptions } from './hub-mirror.ts'
import { isOutOfRoom, type Published, type PublishedFile, type PublishedMember } from './published.ts'
import { sendFile } from './send-file.ts'
import { sendGrowing } from './send-growing.ts'
import type { SwarmDemand } from './swarm-demand.ts'
import { NotNowError } from './upstream.ts'

const CHUNK_BYTES = 256 << 10
const MAX_MODEL_CONFIG_BYTES = 1 << 20
const MAX_PACKED = 1_000

/** The daemon's objects that the mirror of OCI artifacts uses. */
export interface OciMirrorDeps {
  readonly store: DiskBlobStore
  readonly documents: Documents
  readonly published: Published
  /** Counts the listener's traffic. */
  readonly listeners?: Listeners
  /** Absent: of artifacts that are not complete nothing is shown. */
  readonly demand?: () => SwarmDemand | undefined
}

interface Packed {
  readonly image: PackedImage
  readonly files: ReadonlyMap<Sha256Digest, PublishedFile>
  /** The configuration, and the licence texts from a manifest. */
  readonly small: ReadonlyMap<Sha256Digest, Uint8Array>
}

/**
 * The pull API of the OCI distribution specification (spec add.21): `/v2/<ns>/<name>/manifests/<quant or digest>` and
 * `…/blobs/<digest>`, for models that have a name here. Read-only; private and restricted models do not exist here.
 */
export class OciMirror {
  readonly #deps: OciMirrorDeps
  readonly #published: Published
  readonly #pool = new BufferPool(CHUNK_BYTES)
  /** By manifest digest and name, since the OCI manifest contains the name. */
  readonly #packed = new Map<string, Promise<Packed>>()
  #listener!: GuardedListener

  private constructor(deps: OciMirrorDeps) {
    this.#deps = deps
    this.#published = deps.published
  }

  /** @throws the error of `listen` */
  static async listen(deps: OciMirrorDeps, { address, token, names = [], log }: MirrorOptions): Promise<OciMirror> {
    const mirror = new OciMirror(deps)
    const answer: ListenerOptions['answer'] = (request, response, url) => mirror.#route(request, response, url)
    const challenge = 'Basic realm="svc"'
    const traffic = deps.listeners?.add('oci')
    const name = 'OCI mirror'
    mirror.#listener = await GuardedListener.listen({ name, address, token, names, challenge, log, answer, traffic })
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
      await this.#answer(request, response, url)
    } catch (error) {
      if (error instanceof NotNowError) return notNow(request, response, error)
      if (!isOutOfRoom(error)) throw error
      refuse(request, response, 507, 'E_NO_SPACE', 'no room to lay the model out')
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const path = url.split('?', 1)[0]!
    const version = { 'Docker-Distribution-Api-Version': 'registry/2.0' }
    if (path === '/v2/' || path === '/v2')
      return sendBytes(request, response, Buffer.from('{}'), { ...version, 'Content-Type': 'application/json' })
    const list = /^\/v2\/([^/]+\/[^/]+)\/tags\/list$/.exec(path)
    if (list !== null) return this.#tags(request, response, list[1]!)
    const [, name, what, wanted] = /^\/v2\/([^/]+\/[^/]+)\/(manifests|blobs)\/([A-Za-z0-9_.:+-]+)$/.exec(path) ?? []
    if (name === undefined || wanted === undefined) return absent(request, response, 'NAME_UNKNOWN')
    if (what === 'blobs') return this.#blob(request, response, name, wanted)
    for await (const { image } of this.#candidates(name, wanted)) {
      if (isDigest(wanted) && image.manifest.digest !== wanted) continue
      const { digest, mediaType, bytes } = image.manifest
      const headers = { ...version, 'Content-Type': mediaType, 'Docker-Content-Digest': digest, ETag: `"${digest}"` }
      return sendBytes(request, response, bytes, headers)
    }
    absent(request, response, 'MANIFEST_UNKNOWN')
  }

  async #blob(request: IncomingMessage, response: ServerResponse, name: string, wanted: string): Promise<void> {
    const digest = isDigest(wanted) ? parseDigest(wanted) : undefined
    if (digest === undefined) return absent(request, response, 'DIGEST_INVALID')
    const headers = { ...HARDENING, 'Docker-Content-Digest': digest }
    const send = (): Promise<'sent' | 'gone' | 'absent'> => this.#send(request, response, name, digest, headers)
    // if the view is gone, its cached facts are discarded: the second attempt finds the current ones
    const first = await send()
    if (first === 'sent' || (first === 'gone' && (await send()) === 'sent')) return
    absent(request, response, 'BLOB_UNKNOWN')
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    digest: Sha256Digest,
    headers: OutgoingHttpHeaders
  ): Promise<'sent' | 'gone' | 'absent'> {
    const options = { store: this.#deps.store, pool: this.#pool, headers, etag: `"${digest}"` }
    const demand = this.#deps.demand?.()
    let result: 'gone' | 'absent' = 'absent'
    for await (const { files, small } of this.#candidates(name, digest, true)) {
      const bytes = small.get(digest)
      if (bytes !== undefined) {
        sendBytes(request, response, bytes, { ...headers, 'Content-Type': 'application/octet-stream' })
        return 'sent'
      }
      const file = files.get(digest)
      if (file === undefined) continue
      if (await sendFile(request, response, file, options)) return 'sent'
      if (file.isBlob && demand !== undefined) {
        const awaited = { name, manifest: file.manifest }
        const open = (start: number) => demand.open(awaited, file, start)
        if (demand.offers(awaited) && (await sendGrowing(request, response, file, open, options))) return 'sent'
      }
      this.#published.forget(file.manifest)
      this.#packed.clear()
      result = 'gone'
    }
    return result
  }

  async #tags(request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
    const tags = new Set((await this.#published.named(name)).map(({ quant }) => quant))
    const demand = this.#deps.demand?.()
    for (const manifest of demand === undefined ? [] : await this.#published.awaited(name))
      if (demand?.offers({ name, manifest }) && (await demand.isDescribed(manifest)))
        tags.add(await this.#quantOf(manifest))
    if (tags.size === 0) return absent(request, response, 'NAME_UNKNOWN')
    const body = Buffer.from(JSON.stringify({ name, tags: [...tags].sort() }))
    sendBytes(request, response, body, { 'Content-Type': 'application/json' })
  }

  /**
   * The artifacts of a name: the one with a quant, or all of them for a digest; those that are complete come first. Asking for a digest
   * causes no fetch but of the artifact that must be meant. @throws NotNowError
   */
  async *#candidates(name: string, wanted: string, isBlob = false): AsyncGenerator<Packed> {
    const digest = tryParseDigest(wanted)
    const demand = this.#deps.demand?.()
    const lacking: PublishedMember[] = []
    const seen = new Set<Sha256Digest>()
    for (const member of await this.#published.named(name)) {
      seen.add(member.manifest)
      if (digest === undefined && member.quant !== wanted) continue
      const packed = this.#known(`${name}:${member.quant}`, member.manifest)
      if (packed === undefined && (await demand?.lacks(member.manifest)) === true) {
        lacking.push(member)
        continue
      }
      const found = await this.#pack(`${name}:${member.quant}`, member.manifest, false).catch((error: unknown) => {
        if (isOutOfRoom(error)) throw error
        return undefined
      })
      if (found !== undefined) yield found
    }
    if (demand === undefined) return
    const isMeant = async (manifest: Sha256Digest, others: number): Promise<boolean> =>
      digest === undefined ||
      (isBlob ? (await demand.sizeOf(manifest, digest)) !== undefined : others === 0 && lacking.length < 2)
    for (const { quant, manifest } of lacking) {
      if (!(await demand.described({ name, manifest }, await isMeant(manifest, 0)))) continue
      yield await this.#pack(`${name}:${quant}`, manifest, true)
    }
    const awaited = (await this.#published.awaited(name)).filter((manifest) => !seen.has(manifest))
    for (const manifest of awaited) {
      const mayStart = await isMeant(manifest, lacking.length + awaited.length - 1)
      if (!(await demand.described({ name, manifest }, mayStart))) continue
      const quant = await this.#quantOf(manifest)
      if (digest === undefined && quant !== wanted) continue
      yield await this.#pack(`${name}:${quant}`, manifest, true)
    }
  }
  #known(ref: string, manifest: Sha256Digest): Promise<Packed> | undefined {
    const key = `${manifest} ${ref}`
    const known = this.#packed.get(key)
    if (known === undefined) return undefined
    this.#packed.delete(key)
    this.#packed.set(key, known)
    return known
  }

  /** With `isLacking` of the names and sizes in the manifest: it is the same in the end, byte for byte. */
  #pack(ref: string, manifest: Sha256Digest, isLacking: boolean): Promise<Packed> {
    const known = this.#known(ref, manifest)
    if (known !== undefined) return known
    const key = `${manifest} ${ref}`
    const packed = this.#packNow(ref, manifest, isLacking)
    if (this.#packed.size >= MAX_PACKED) this.#packed.delete(this.#packed.keys().next().value!)
    this.#packed.set(key, packed)
    packed.catch(() => {
      if (this.#packed.get(key) === packed) this.#packed.delete(key)
    })
    return packed
  }

  async #packNow(ref: string, digest: Sha256Digest, isLacking: boolean): Promise<Packed> {
    const { packArtifact } = await import('@svc/oci')
    const { store, documents } = this.#deps
    const manifest = await documents.manifest(digest)
    if (manifest === undefined) throw new Error(`the manifest ${digest} is not here`)
    const config = manifest.files.find(({ kind }) => kind === 'config')
    const facts = config === undefined ? undefined : await readSmallBlob(store, config.digest, MAX_MODEL_CONFIG_BYTES)
    // packing adds the licence texts from the annotations itself
    const found = await (isLacking ? this.#published.lackingFiles(digest) : this.#published.files(digest))
    const files = found.filter(({ bytes }) => bytes === undefined)
    const image = packArtifact({
      files,
      manifestDigest: digest,
      annotations: manifest.annotations,
      ref,
      model: facts === undefined ? undefined : parseModelConfig(facts)
    })
    const small = new Map<Sha256Digest, Uint8Array>([[image.config.digest, image.config.bytes]])
    for (const { content } of image.layers) {
      const [first] = content.segments
      if (first instanceof Uint8Array) small.set(content.digest, first)
    }
    return { image, small, files: new Map(files.map((file) => [file.digest, file])) }
  }

  async #quantOf(digest: Sha256Digest): Promise<string> {
    const { store, documents } = this.#deps
    const manifest = await documents.manifest(digest)
    return configQuant(store, manifest ?? { files: [] })
  }
}

/** In the form of the distribution specification; 429 and 503 are what clients of registries try again. */
function notNow(request: IncomingMessage, response: ServerResponse, error: NotNowError): void {
  const { status, message, retryAfterSeconds: wait } = error
  const code = status === 429 ? 'TOOMANYREQUESTS' : status === 503 ? 'UNAVAILABLE' : 'DENIED'
  const body = Buffer.from(JSON.stringify({ errors: [{ code, message }] }))
  const retry = wait === undefined ? {} : { 'Retry-After': wait }
  const type = { 'Content-Type': 'application/json', 'Content-Length': body.length }
  response.writeHead(status, { ...HARDENING, ...retry, ...type })
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** In the form of the distribution specification. */
function absent(request: IncomingMessage, response: ServerResponse, code: string): void {
  const body = Buffer.from(JSON.stringify({ errors: [{ code, message: 'there is nothing of that name' }] }))
  response.writeHead(404, { ...HARDENING, 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(request.method === 'HEAD' ? undefined : body)
}
