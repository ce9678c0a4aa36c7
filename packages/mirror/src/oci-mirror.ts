import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { HARDENING, sendBytes } from '@svc/internal-server'
import { type ArtifactFolder, type Documents, futureQuant, readSmallBlob, storedConfigQuant } from '@svc/library/parts'
import { parseModelConfig } from '@svc/manifest'
import type { PackedImage } from '@svc/oci'
import { isDigest, isQuant, type Sha256Digest, tryParseDigest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { ArtifactFiles, type FilesOf } from './artifact-files.ts'
import type { WaitingClient } from './demand.ts'
import { clientOf } from './send-file.ts'
import type { ServedFile } from './served-files.ts'
import { lacksSpace, notNowOf, type ServedMember, type ServedModels } from './served-models.ts'
import type { Presence, SwarmDemand } from './swarm-demand.ts'
import { NotNowError } from './upstream.ts'

const DOOR = 'oci-mirror'
const MAX_MODEL_CONFIG_BYTES = 1 << 20
const MAX_PACKED = 1_000

export interface OciMirrorDeps extends FilesOf {
  readonly documents: Documents
}

interface Packed {
  readonly artifact: ArtifactFolder
  readonly image: PackedImage
  /** As Ollama reads it; undefined for a model that it does not load. */
  readonly ollama: PackedImage | undefined
  readonly files: ReadonlyMap<Sha256Digest, ServedFile>
}

/** An artifact that is not complete. */
interface Coming extends ArtifactFolder {
  /** Undefined while unknown. */
  readonly quant: string | undefined
  readonly presence: Presence
  /** Whether it has the name already; otherwise it will get it. */
  readonly isNamed: boolean
}

/**
 * The pull API of the OCI distribution specification (spec add.21): `/v2/<ns>/<name>/manifests/<quant or digest>` and
 * `…/blobs/<digest>`, for models that have a name here. Read-only; private and restricted models do not exist here.
 * A client that accepts only manifests in Docker's form is Ollama, and gets its form.
 */
export class OciMirror {
  readonly port = { name: 'OCI mirror', challenge: 'Basic realm="svc"', hasPages: true }
  readonly #deps: OciMirrorDeps
  readonly #served: ServedModels
  readonly #files: ArtifactFiles
  /** By manifest, companions and name, since the OCI manifest contains the name. */
  readonly #packed = new LRUCache<string, { readonly packed: Promise<Packed>; readonly isLacking: boolean }>({
    max: MAX_PACKED
  })

  constructor(deps: OciMirrorDeps) {
    this.#deps = deps
    this.#served = deps.served
    this.#files = new ArtifactFiles({ ...deps, door: DOOR, mayStart: true })
  }

  async route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    try {
      await this.#answer(request, response, url)
    } catch (error) {
      const { status, message, headers: retry } = notNowOf(error)
      // clients of registries retry 429 and 503
      const code = status === 429 ? 'TOOMANYREQUESTS' : status === 503 ? 'UNAVAILABLE' : 'DENIED'
      sendFailure(response, status, code, message, retry)
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
    if (name === undefined || wanted === undefined) return absent(response, 'NAME_UNKNOWN')
    if (what === 'blobs') return this.#blob(request, response, name, wanted)
    const isOllama = isOllamaRequest(request)
    // people type a quant to it in either case
    const tagOrDigest = isOllama ? wanted.toLowerCase() : wanted
    const image = await this.#imageOf(name, tagOrDigest, clientOf(request, response), isOllama)
    if (image === undefined) return absent(response, 'MANIFEST_UNKNOWN')
    const { digest, mediaType, bytes } = image
    const headers = {
      ...version,
      'Content-Type': mediaType,
      'Docker-Content-Digest': digest,
      ETag: `"${digest}"`,
      Vary: 'Accept'
    }
    sendBytes(request, response, bytes, headers)
  }

  /** Asked once more where the answer has changed meanwhile: companions arrive with the last byte of a model. */
  async #imageOf(
    name: string,
    wanted: string,
    client: WaitingClient,
    isOllama: boolean,
    again = true
  ): Promise<PackedImage['manifest'] | undefined> {
    let hasChanged = false
    for await (const { artifact, image, ollama } of this.#walk(name, wanted, client)) {
      const form = isOllama ? ollama : image
      if (form === undefined || (isDigest(wanted) && form.manifest.digest !== wanted)) continue
      if (await this.#mayGive(name, artifact)) return form.manifest
      hasChanged = true
    }
    return hasChanged && again ? this.#imageOf(name, wanted, client, isOllama, false) : undefined
  }

  async #blob(request: IncomingMessage, response: ServerResponse, name: string, wanted: string): Promise<void> {
    const digest = tryParseDigest(wanted)
    if (digest === undefined) return absent(response, 'DIGEST_INVALID')
    // where a blob's first answer says that it is, there Ollama reads its ranges
    const headers = { ...HARDENING, 'Docker-Content-Digest': digest, Location: `/v2/${name}/blobs/${digest}` }
    const send = (): Promise<'sent' | 'gone' | 'absent'> => this.#send(request, response, name, digest, headers)
    // what has changed meanwhile, or lost its view, is no longer remembered: the second attempt finds the current one
    const first = await send()
    if (first === 'sent' || (first === 'gone' && (await send()) === 'sent')) return
    absent(response, 'BLOB_UNKNOWN')
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    digest: Sha256Digest,
    headers: OutgoingHttpHeaders
  ): Promise<'sent' | 'gone' | 'absent'> {
    const client = clientOf(request, response)
    let result: 'gone' | 'absent' = 'absent'
    let notNow: NotNowError | undefined
    for await (const { artifact, image, ollama, files } of this.#walk(name, digest, client, true)) {
      const mayGive = (): Promise<boolean> => this.#mayGive(name, artifact)
      const config = [image, ollama].find((form) => form?.config.digest === digest)?.config
      if (config !== undefined) {
        if (!(await mayGive())) {
          result = 'gone'
          continue
        }
        sendBytes(request, response, config.bytes, { ...headers, 'Content-Type': 'application/octet-stream' })
        return 'sent'
      }
      const file = files.get(digest)
      if (file === undefined) continue
      try {
        const options = { headers, etag: `"${digest}"`, mayGive, inParts: false }
        if (await this.#files.send(request, response, { name, ...artifact, file }, options)) return 'sent'
      } catch (error) {
        if (!(error instanceof NotNowError)) throw error
        // another artifact with the same file may be luckier
        notNow ??= error
        continue
      }
      this.#forget(file.manifest)
      result = 'gone'
    }
    if (notNow !== undefined) throw notNow
    return result
  }

  async #tags(request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
    const members = [...(await this.#served.named(name, DOOR))]
    const demand = this.#deps.ways.swarm
    for (const awaited of demand === undefined ? [] : await this.#served.awaited(name, DOOR))
      if (demand?.offers(awaited) && (await demand.presence(awaited.manifest))?.isDescribed)
        members.push({ ...awaited, quant: await this.#quantOf(awaited.manifest) })
    const named = members.map((member) => ({ ...member, name }))
    const tags = new Set([...(await this.#served.shown(named, DOOR))].map(({ quant }) => quant))
    if (tags.size === 0) return absent(response, 'NAME_UNKNOWN')
    const body = Buffer.from(JSON.stringify({ name, tags: [...tags].sort() }))
    sendBytes(request, response, body, { 'Content-Type': 'application/json' })
  }

  /**
   * The walk of a pull: from a name and a tag or digest to the possible artifacts, packed; stored ones first, then
   * pending ones. A digest starts a fetch only if a single artifact can have it. @throws NotNowError
   */
  async *#walk(name: string, wanted: string, client: WaitingClient, isBlob = false): AsyncGenerator<Packed> {
    const tag = isDigest(wanted) ? undefined : wanted
    const demand = this.#deps.ways.swarm
    const members = await this.#served.named(name, DOOR)
    const coming: Coming[] = []
    for (const { quant, manifest, companions } of members) {
      if (tag !== undefined && quant !== tag) continue
      const ref = `${name}:${quant}`
      const shown = { manifest, companions }
      const isKnown = this.#known(ref, shown, false) !== undefined
      const presence = isKnown ? undefined : await demand?.presence(manifest)
      if (presence !== undefined && presence.missing.length > 0) {
        coming.push({ quant, ...shown, presence, isNamed: true })
        continue
      }
      const found = await this.#packIfPossible(ref, shown, false)
      if (found !== undefined) yield found
    }
    if (demand === undefined) return
    coming.push(...(await this.#awaited(name, tag, members, demand)))
    yield* asTheyCome(
      coming.map(async (each) => {
        const { manifest, companions, presence, isNamed } = each
        const mayStart = isMeant(each, coming, wanted, isBlob)
        // only a client that has seen its descriptor can request a blob that is no file of a manifest
        if (isBlob && !mayStart && !presence.isDescribed) return undefined
        if (!(await demand.described({ name, manifest, companions }, presence, mayStart, client))) return undefined
        const quant = isNamed ? each.quant! : await this.#quantOf(manifest)
        if (tag !== undefined && quant !== tag) return undefined
        if (isTaken(members, { quant, manifest }) && !(tag === undefined && demand.isUnderWay(manifest)))
          return undefined
        return this.#packIfPossible(`${name}:${quant}`, { manifest, companions }, true)
      })
    )
  }

  /** Pending artifacts of a name, except those that would replace one: these are shown once they do, or by digest. */
  async #awaited(
    name: string,
    tag: string | undefined,
    members: readonly ServedMember[],
    demand: SwarmDemand
  ): Promise<Coming[]> {
    const awaited: Coming[] = []
    for (const { manifest, companions } of await this.#served.awaited(name, DOOR)) {
      if (members.some((member) => member.manifest === manifest)) continue
      const presence = await demand.presence(manifest)
      if (presence === undefined) continue
      const quant = await futureQuant(this.#deps.store, presence)
      if (tag !== undefined && (quant === undefined ? !isQuant(tag) : quant !== tag)) continue
      if (isTaken(members, { quant, manifest }) && !demand.isUnderWay(manifest)) continue
      awaited.push({ quant, manifest, companions, presence, isNamed: false })
    }
    return awaited
  }

  /** Undefined for a model that cannot be shown: others of the name are given all the same. */
  #packIfPossible(ref: string, shown: ArtifactFolder, isLacking: boolean): Promise<Packed | undefined> {
    return this.#pack(ref, shown, isLacking).catch((error: unknown) => {
      if (lacksSpace(error)) throw error
      return undefined
    })
  }

  #known(ref: string, shown: ArtifactFolder, mayLack: boolean): Promise<Packed> | undefined {
    const key = keyOf(ref, shown)
    const known = this.#packed.get(key)
    return known === undefined || (known.isLacking && !mayLack) ? undefined : known.packed
  }

  /** With `isLacking`, only from the names and sizes in the manifest: the result is the same, byte for byte. */
  #pack(ref: string, shown: ArtifactFolder, isLacking: boolean): Promise<Packed> {
    const known = this.#known(ref, shown, isLacking)
    if (known !== undefined) return known
    const key = keyOf(ref, shown)
    const packed = this.#packNow(ref, shown, isLacking)
    this.#packed.set(key, { packed, isLacking })
    packed.catch(() => {
      if (this.#packed.peek(key)?.packed === packed) this.#packed.delete(key)
    })
    return packed
  }

  /** Asked right before the head is sent. */
  async #mayGive(name: string, artifact: ArtifactFolder): Promise<boolean> {
    return (await this.#served.shown([{ name, ...artifact }], DOOR)).size === 1
  }

  #forget(manifest: Sha256Digest): void {
    this.#served.files.forget(manifest)
    for (const key of this.#packed.keys()) if (key.startsWith(manifest)) this.#packed.delete(key)
  }

  async #packNow(ref: string, shown: ArtifactFolder, isLacking: boolean): Promise<Packed> {
    const { packArtifact, packOllama } = await import('@svc/oci')
    const { store, documents } = this.#deps
    const { manifest: digest } = shown
    const manifest = await documents.manifest(digest)
    if (manifest === undefined) throw new Error(`the manifest ${digest} is not here`)
    const config = manifest.files.find(({ kind }) => kind === 'config')
    const facts = config === undefined ? undefined : await readSmallBlob(store, config.digest, MAX_MODEL_CONFIG_BYTES)
    const files = await (isLacking ? this.#served.files.lacking(shown) : this.#served.files.of(shown))
    const input = {
      files,
      manifestDigest: digest,
      annotations: manifest.annotations,
      ref,
      model: facts === undefined ? undefined : parseModelConfig(facts)
    }
    const image = packArtifact(input)
    const ollama = packOllama(input)
    return { artifact: shown, image, ollama, files: new Map(files.map((file) => [file.digest, file])) }
  }

  async #quantOf(digest: Sha256Digest): Promise<string> {
    const { store, documents } = this.#deps
    const manifest = await documents.manifest(digest)
    return storedConfigQuant(store, manifest ?? { files: [] })
  }
}

const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json'

/** Other clients of registries accept OCI manifests, or anything. */
const isOllamaRequest = ({ headers: { accept = '' } }: IncomingMessage): boolean =>
  accept.split(',').every((type) => type.split(';', 1)[0]!.trim() === DOCKER_MANIFEST)

const keyOf = (ref: string, { manifest, companions }: ArtifactFolder): string => `${manifest} ${companions} ${ref}`

/** Whether a request for `wanted` may start a fetch: only if it means exactly one pending artifact. */
function isMeant(each: Coming, all: readonly Coming[], wanted: string, isBlob: boolean): boolean {
  if (isBlob) return each.presence.files.some(({ digest }) => digest === wanted)
  if (!isDigest(wanted) && each.quant !== undefined) return true
  // pending artifacts do not compete with those that the name has
  return all.every((other) => other === each || (each.isNamed && !other.isNamed))
}

const isTaken = (members: readonly ServedMember[], { quant, manifest }: Pick<Coming, 'quant' | 'manifest'>): boolean =>
  members.some((member) => member.quant === quant && member.manifest !== manifest)

/** Results in the order of their arrival; an error is thrown only after those of all others. */
async function* asTheyCome<T>(work: readonly Promise<T | undefined>[]): AsyncGenerator<T> {
  const left = new Map(
    work.map((each, i) => [
      i,
      each.then(
        (value) => ({ i, value, error: undefined }),
        (error: unknown) => ({ i, value: undefined, error })
      )
    ])
  )
  let failure: unknown
  while (left.size > 0) {
    const { i, value, error } = await Promise.race(left.values())
    left.delete(i)
    failure ??= error
    if (value !== undefined) yield value
  }
  if (failure !== undefined) throw failure
}

const absent = (response: ServerResponse, code: string): void =>
  sendFailure(response, 404, code, 'there is no such path')

/** Refuses in the form of the distribution specification. */
function sendFailure(
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
  headers: OutgoingHttpHeaders = {}
): void {
  const body = Buffer.from(JSON.stringify({ errors: [{ code, message }] }))
  const type = { 'Content-Type': 'application/json', 'Content-Length': body.length }
  response.writeHead(status, { ...HARDENING, ...headers, ...type })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}
