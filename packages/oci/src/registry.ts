import { type Clock, systemClock } from '@svc/internal-clock'
import { type ByteSpan, type HttpClientOptions, parseJson, parseRetryAfter, type Response } from '@svc/internal-http'
import { isDigest, type Sha256Digest } from '@svc/ref'
import { type Credentials, findCredentials } from './credentials.ts'
import { digestOf, MAX_DOCUMENT_BYTES, type OciDocument } from './document.ts'
import { OciError } from './errors.ts'
import { DOCKER_MANIFEST_TYPE, INDEX_TYPE, MANIFEST_TYPE } from './media-types.ts'
import { type ReadOciDocument, readOciDocumentHere } from './read-document.ts'
import { isLoopbackRegistry, type RegistryReference } from './reference.ts'
import { RegistryClient, readBody } from './registry-client.ts'
import { RegistryLogin, type Scope } from './registry-login.ts'

/** How to access a registry. All optional. */
export interface RegistryOptions {
  /** Access it without TLS. Default: only for a registry on this machine. */
  readonly plainHttp?: boolean | undefined
  /** Default: from the Docker configuration. */
  readonly credentials?: (registry: string, repository: string) => Promise<Credentials | undefined>
  /** Default `svc`. */
  readonly userAgent?: string
  /** Longest time without a byte of an answer, in milliseconds. Default 30,000. */
  readonly stallMs?: number
  /**
   * In each span of so many milliseconds a registry must send 1 KiB per second, or the attempt fails; the progress of a
   * failed attempt counts only at that rate. Default 60,000.
   */
  readonly slowMs?: number
  /** A limit that other receivers of the program share. Default: none. */
  readonly downloads?: HttpClientOptions['downloads']
  /** Reads what a login server answers, e.g. in a thread. Default: on the thread of the caller. */
  readonly readDocument?: ReadOciDocument
}

/** Options common to all requests. */
export interface RegistryCallOptions {
  readonly signal?: AbortSignal | undefined
}

/** A request below `/v2/<repository>/`. */
export interface RegistryCall extends RegistryCallOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT'
  /** A path below the repository, or a URL that the registry sent. */
  readonly target: string | URL
  readonly headers?: Readonly<Record<string, string>>
  /** Called for every attempt: a request may be repeated after a login. */
  readonly body?: () => Uint8Array | AsyncIterable<Uint8Array>
  readonly scope: Scope
}

/** Docker's form of an index, from before OCI. */
const DOCKER_LIST_TYPE = 'application/vnd.docker.distribution.manifest.list.v2+json'
const MAX_ERROR_BYTES = 65_536

/** Docker Hub's API has another host name, and its names without a namespace are in `library`. */
const apiOf = (registry: string, repository: string): { readonly host: string; readonly path: string } =>
  registry === 'docker.io' || registry === 'index.docker.io'
    ? { host: 'registry-1.docker.io', path: repository.includes('/') ? repository : `library/${repository}` }
    : { host: registry, path: repository }

/** A client of one repository. Credentials go to the registry and its login server, never to where it redirects. */
export class Repository {
  readonly base: URL
  readonly #name: string
  readonly #client: RegistryClient
  readonly #login: RegistryLogin
  readonly #clock: Pick<Clock, 'now'>

  constructor(
    { registry, repository }: Pick<RegistryReference, 'registry' | 'repository'>,
    options: RegistryOptions = {},
    clock: Pick<Clock, 'now'> = systemClock
  ) {
    const { plainHttp = isLoopbackRegistry(registry), readDocument = readOciDocumentHere } = options
    const credentials = options.credentials ?? ((host, repository) => findCredentials(host, { repository }))
    this.#clock = clock
    const { host, path } = apiOf(registry, repository)
    this.base = new URL(`${plainHttp ? 'http' : 'https'}://${host}/v2/${path}/`)
    this.#name = `${registry}/${repository}`
    this.#client = new RegistryClient(this.base, options)
    this.#login = new RegistryLogin(this.base, path, this.#client, () => credentials(registry, path), readDocument)
  }

  /**
   * The manifest or index of a tag or digest, checked against the digest if one is given.
   * @throws OciError `E_NOT_FOUND`, `E_DENIED`, `E_RATE_LIMITED`, `E_UNAVAILABLE`, `E_DIGEST_MISMATCH`, `E_UNSUPPORTED`
   *   for an index in Docker's own form
   */
  async manifest(tagOrDigest: string, { signal }: RegistryCallOptions = {}): Promise<OciDocument> {
    // unless Docker's own types are accepted, registries convert such manifests, which changes their digests
    const headers = { accept: [MANIFEST_TYPE, INDEX_TYPE, DOCKER_MANIFEST_TYPE, DOCKER_LIST_TYPE].join(', ') }
    const target = `manifests/${tagOrDigest}`
    const what = `the manifest ${tagOrDigest}`
    const answer = await this.expect({ method: 'GET', target, headers, scope: 'pull', signal }, what, 200)
    const bytes = await readBody(answer, MAX_DOCUMENT_BYTES)
    const digest = digestOf(bytes)
    if (isDigest(tagOrDigest) && digest !== tagOrDigest)
      throw new OciError('E_DIGEST_MISMATCH', `${this.#name} answers ${tagOrDigest} with other bytes`, { digest })
    const mediaType = answer.header('content-type')?.replace(/;.*$/, '').trim() ?? MANIFEST_TYPE
    if (mediaType === DOCKER_LIST_TYPE)
      throw new OciError('E_UNSUPPORTED', `${this.#name} has images for several platforms there, not a model`)
    return { mediaType, bytes, digest }
  }

  /**
   * A small blob, read whole and checked. @throws OciError as {@link manifest}, and `E_FORMAT` for one that is too
   * large
   */
  async document(
    { digest, size }: { readonly digest: Sha256Digest; readonly size: number },
    options: RegistryCallOptions = {}
  ): Promise<Uint8Array> {
    if (size > MAX_DOCUMENT_BYTES) throw new OciError('E_FORMAT', `${digest} is too large for a document`, { digest })
    const answer = await this.blob(digest, undefined, options)
    const bytes = await readBody(answer, size)
    if (digestOf(bytes) === digest) return bytes
    throw new OciError('E_DIGEST_MISMATCH', `${this.#name} answers ${digest} with other bytes`, { digest })
  }

  /**
   * A span of a blob, or all of it: 206, or 200 and the whole blob if the registry does not support ranges. The
   * caller must read or discard the body. @throws OciError as {@link manifest}
   */
  async blob(digest: Sha256Digest, span?: ByteSpan, { signal }: RegistryCallOptions = {}): Promise<Response> {
    const headers: Record<string, string> = span === undefined ? {} : { range: `bytes=${span.start}-${span.end - 1}` }
    const target = `blobs/${digest}`
    return this.expect({ method: 'GET', target, headers, scope: 'pull', signal }, `the blob ${digest}`, 200, 206)
  }

  /**
   * Sends a request, logs in when the registry asks for it, and follows redirects of reads.
   * @throws OciError `E_UNAVAILABLE`, `E_DENIED`, `E_CREDENTIALS`; on abort the signal's reason
   */
  async call({ method, target, headers, body, scope, signal }: RegistryCall): Promise<Response> {
    const url = typeof target === 'string' ? new URL(target, this.base) : target
    for (let logins = 0; ; logins++) {
      const authorization = this.#login.header(scope)
      const answer = await this.#client.send({
        method,
        url,
        headers: ({ origin }) => ({
          ...headers,
          ...(origin === this.base.origin && authorization !== undefined && { authorization })
        }),
        body: body?.(),
        signal
      })
      if (answer.status !== 401 || answer.url.origin !== this.base.origin || logins === 2) return answer
      await answer.discard()
      const challenge = answer.header('www-authenticate') ?? ''
      if (await this.#login.answer(challenge, scope, signal, authorization)) continue
      throw new OciError('E_DENIED', `${this.#name} requires a login; log in with docker, podman or oras first`, {
        status: 401
      })
    }
  }

  /** As {@link call}. @throws for any other status {@link failure}, which says `what` was asked for */
  async expect(call: RegistryCall, what: string, ...statuses: readonly number[]): Promise<Response> {
    const answer = await this.call(call)
    if (statuses.includes(answer.status)) return answer
    throw await this.failure(answer, what)
  }

  /** Whether credentials were sent to the registry; if so, what it returned may not be public. */
  get usedCredentials(): boolean {
    return this.#login.usedCredentials
  }

  /** The error for a status. Reads the body. */
  async failure(answer: Response, what: string): Promise<OciError> {
    const { status } = answer
    const said = await readBody(answer, MAX_ERROR_BYTES).catch(() => new Uint8Array())
    const reason = reasonIn(said)
    const message = `${this.#name}: ${what}: status ${status}${reason === undefined ? '' : ` (${reason})`}`
    if (status === 401 || status === 403) return new OciError('E_DENIED', message, { status })
    if (status === 404) return new OciError('E_NOT_FOUND', `${this.#name} does not have ${what}`, { status })
    if (status === 429) {
      const retryAfterMs = parseRetryAfter(answer.header('retry-after'), this.#clock.now())
      return new OciError('E_RATE_LIMITED', message, { status, ...(retryAfterMs !== undefined && { retryAfterMs }) })
    }
    return new OciError('E_UNAVAILABLE', message, { status })
  }

  async close(): Promise<void> {
    await this.#client.close()
  }
}

/** The first message of a registry's error document, truncated. */
function reasonIn(bytes: Uint8Array): string | undefined {
  try {
    const { errors } = parseJson(bytes, { values: 1_000 }) as {
      errors?: { code?: unknown; message?: unknown }[]
    }
    const [first] = errors ?? []
    const text = [first?.code, first?.message].filter((each) => typeof each === 'string').join(': ')
    return text === '' ? undefined : text.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 200)
  } catch {
    return undefined
  }
}
