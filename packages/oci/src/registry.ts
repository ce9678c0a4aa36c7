import { isDigest, type Sha256Digest } from '@svc/ref'
import { type Credentials, findCredentials } from './credentials.ts'
import { digestOf, MAX_DOCUMENT_BYTES, type OciDocument } from './document.ts'
import { OciError } from './errors.ts'
import { type Answer, Exchange, headerOf, readBody } from './exchange.ts'
import { INDEX_TYPE, MANIFEST_TYPE } from './media-types.ts'
import { isLoopbackRegistry, type RegistryReference } from './reference.ts'
import { RegistryLogin, type Scope } from './registry-login.ts'

/** How to access a registry. All optional. */
export interface RegistryOptions {
  /** Access it without TLS. Default: only for a registry on this machine. */
  readonly plainHttp?: boolean | undefined
  /** Default: from the Docker configuration. */
  readonly credentials?: (registry: string, repository: string) => Promise<Credentials | undefined>
  /** Default `svc`. */
  readonly userAgent?: string
}

/** Options common to all requests. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined
}

/** A request below `/v2/<repository>/`. */
export interface RegistryCall extends CallOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT'
  /** A path below the repository, or a URL that the registry sent. */
  readonly target: string | URL
  readonly headers?: Readonly<Record<string, string>>
  /** Called for every attempt: a request may be repeated after a login. */
  readonly body?: () => Uint8Array | AsyncIterable<Uint8Array>
  readonly scope: Scope
}

/** Media types of Docker images from before OCI. */
const DOCKER_TYPES: readonly string[] = ['v2', 'list.v2'].map(
  (kind) => `application/vnd.docker.distribution.manifest.${kind}+json`
)
const MAX_REDIRECTS = 5
const MAX_ERROR_BYTES = 65_536
const REDIRECTS = new Set([301, 302, 303, 307, 308])

const findForRepository = (registry: string, repository: string): Promise<Credentials | undefined> =>
  findCredentials(registry, { repository })

/** Docker Hub's API has another host name, and its names without a namespace are in `library`. */
const apiOf = (registry: string, repository: string): { readonly host: string; readonly path: string } =>
  registry === 'docker.io' || registry === 'index.docker.io'
    ? { host: 'registry-1.docker.io', path: repository.includes('/') ? repository : `library/${repository}` }
    : { host: registry, path: repository }

/** A client of one repository. Credentials go to the registry and its login server, never to where it redirects. */
export class Repository {
  readonly base: URL
  readonly #name: string
  readonly #exchange: Exchange
  readonly #login: RegistryLogin

  constructor(
    { registry, repository }: Pick<RegistryReference, 'registry' | 'repository'>,
    options: RegistryOptions = {}
  ) {
    const { plainHttp = isLoopbackRegistry(registry), credentials = findForRepository } = options
    const { host, path } = apiOf(registry, repository)
    this.base = new URL(`${plainHttp ? 'http' : 'https'}://${host}/v2/${path}/`)
    this.#name = `${registry}/${repository}`
    this.#exchange = new Exchange(options.userAgent ?? 'svc')
    this.#login = new RegistryLogin(this.base, path, this.#exchange, () => credentials(registry, path))
  }

  /**
   * The manifest or index of a tag or digest, checked against the digest if one is given.
   * @throws OciError `E_NOT_FOUND`, `E_DENIED`, `E_RATE_LIMITED`, `E_UNAVAILABLE`, `E_DIGEST_MISMATCH`, `E_UNSUPPORTED`
   *   for Docker's own manifests
   */
  async manifest(tagOrDigest: string, { signal }: CallOptions = {}): Promise<OciDocument> {
    // unless Docker's own types are accepted, registries convert such manifests, which changes their digests
    const headers = { accept: [MANIFEST_TYPE, INDEX_TYPE, ...DOCKER_TYPES].join(', ') }
    const answer = await this.call({
      method: 'GET',
      target: `manifests/${tagOrDigest}`,
      headers,
      scope: 'pull',
      signal
    })
    if (answer.statusCode !== 200) throw await this.failure(answer, `the manifest ${tagOrDigest}`)
    const bytes = await readBody(answer, MAX_DOCUMENT_BYTES)
    const digest = digestOf(bytes)
    if (isDigest(tagOrDigest) && digest !== tagOrDigest) {
      throw new OciError('E_DIGEST_MISMATCH', `${this.#name} answers ${tagOrDigest} with other bytes`, { digest })
    }
    const mediaType = headerOf(answer, 'content-type')?.replace(/;.*$/, '').trim() ?? MANIFEST_TYPE
    if (DOCKER_TYPES.includes(mediaType)) {
      throw new OciError(
        'E_UNSUPPORTED',
        `${this.#name} has an image in Docker's own format there, and no OCI artifact`
      )
    }
    return { mediaType, bytes, digest }
  }

  /**
   * A small blob, read whole and checked. @throws OciError as {@link manifest}, and `E_FORMAT` for one that is too
   * large
   */
  async document(
    { digest, size }: { readonly digest: Sha256Digest; readonly size: number },
    options: CallOptions = {}
  ): Promise<Uint8Array> {
    if (size > MAX_DOCUMENT_BYTES) throw new OciError('E_FORMAT', `${digest} is too large for a document`, { digest })
    const answer = await this.blob(digest, 0, options)
    const bytes = await readBody(answer, size)
    if (digestOf(bytes) === digest) return bytes
    throw new OciError('E_DIGEST_MISMATCH', `${this.#name} answers ${digest} with other bytes`, { digest })
  }

  /**
   * The bytes of a blob from `start` on: 206, or 200 and the whole blob if the registry does not support ranges. The
   * caller must read or dump the body. @throws OciError as {@link manifest}
   */
  async blob(digest: Sha256Digest, start: number, { signal }: CallOptions = {}): Promise<Answer> {
    const headers: Record<string, string> = start === 0 ? {} : { range: `bytes=${start}-` }
    const answer = await this.call({ method: 'GET', target: `blobs/${digest}`, headers, scope: 'pull', signal })
    if (answer.statusCode === 200 || answer.statusCode === 206) return answer
    throw await this.failure(answer, `the blob ${digest}`)
  }

  /**
   * Sends a request, logs in when the registry asks for it, and follows redirects of reads.
   * @throws OciError `E_UNAVAILABLE`, `E_DENIED`, `E_CREDENTIALS`; on abort the signal's reason
   */
  async call({ method, target, headers, body, scope, signal }: RegistryCall): Promise<Answer> {
    const url = typeof target === 'string' ? new URL(target, this.base) : target
    for (let logins = 0; ; logins++) {
      const atRegistry = url.origin === this.base.origin
      const authorization = atRegistry ? this.#login.header(scope) : undefined
      const answer = await this.#exchange.send(
        {
          method,
          url,
          headers: { ...headers, ...(authorization !== undefined && { authorization }) },
          body: body?.(),
          signal
        },
        await this.#exchange.policyOf(url, this.base.host)
      )
      if (answer.statusCode === 401 && atRegistry && logins < 2) {
        await answer.body.dump().catch(() => undefined)
        const challenge = headerOf(answer, 'www-authenticate') ?? ''
        if (await this.#login.answer(challenge, scope, signal, authorization)) continue
        throw new OciError('E_DENIED', `${this.#name} wants a login; log in with docker, podman or oras first`, {
          status: 401
        })
      }
      if (method === 'GET' && REDIRECTS.has(answer.statusCode))
        return this.#follow(answer, url, { ...(headers !== undefined && { headers }), scope, signal })
      return answer
    }
  }

  /** Whether credentials were sent to the registry; if so, what it returned may not be public. */
  get usedCredentials(): boolean {
    return this.#login.usedCredentials
  }

  async #follow(
    first: Answer,
    from: URL,
    { headers = {}, scope, signal }: Pick<RegistryCall, 'headers' | 'scope' | 'signal'>
  ): Promise<Answer> {
    let answer = first
    let url = from
    for (let hops = 0; REDIRECTS.has(answer.statusCode); hops++) {
      await answer.body.dump().catch(() => undefined)
      const next = URL.parse(headerOf(answer, 'location') ?? '', url.href)
      const isPlain =
        next !== null && ['http:', 'https:'].includes(next.protocol) && next.username + next.password === ''
      if (!isPlain || (url.protocol === 'https:' && next.protocol === 'http:') || hops === MAX_REDIRECTS) {
        throw new OciError('E_UNAVAILABLE', `${this.#name} redirects to somewhere that is not followed`)
      }
      url = next
      // still the registry, though at another path
      const authorization = url.origin === this.base.origin ? this.#login.header(scope) : undefined
      answer = await this.#exchange.send(
        { method: 'GET', url, headers: { ...headers, ...(authorization !== undefined && { authorization }) }, signal },
        await this.#exchange.policyOf(url, this.base.host)
      )
    }
    return answer
  }

  /** The error for a status. Reads the body. */
  async failure(answer: Answer, what: string): Promise<OciError> {
    const { statusCode: status } = answer
    const said = await readBody(answer, MAX_ERROR_BYTES).catch(() => new Uint8Array())
    const reason = reasonIn(said)
    const message = `${this.#name}: ${what}: status ${status}${reason === undefined ? '' : ` (${reason})`}`
    if (status === 401 || status === 403) return new OciError('E_DENIED', message, { status })
    if (status === 404) return new OciError('E_NOT_FOUND', `${this.#name} does not have ${what}`, { status })
    if (status === 429) {
      const seconds = Number(headerOf(answer, 'retry-after'))
      const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined
      return new OciError('E_RATE_LIMITED', message, { status, ...(retryAfterMs !== undefined && { retryAfterMs }) })
    }
    return new OciError('E_UNAVAILABLE', message, { status })
  }

  async close(): Promise<void> {
    await this.#exchange.close()
  }
}

/** The first message of a registry's error document, truncated. */
function reasonIn(bytes: Uint8Array): string | undefined {
  try {
    const { errors } = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
      errors?: { code?: unknown; message?: unknown }[]
    }
    const [first] = errors ?? []
    const text = [first?.code, first?.message].filter((each) => typeof each === 'string').join(': ')
    return text === '' ? undefined : text.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 200)
  } catch {
    return undefined
  }
}
