import type { Credentials } from './credentials.ts'
import { OciError } from './errors.ts'
import type { ReadOciDocument } from './read-document.ts'
import { isLoopbackRegistry } from './reference.ts'
import { type RegistryClient, readBody } from './registry-client.ts'

export type Scope = 'pull' | 'push'

const MAX_TOKEN_BYTES = 1 << 20

/**
 * Authentication for one repository (distribution specification, token authentication). Credentials are sent only to
 * the registry itself, and over https to the realm that it names. They go without TLS only if the registry itself is
 * accessed so, and only to its own host.
 */
export class RegistryLogin {
  readonly #base: URL
  readonly #repository: string
  readonly #client: RegistryClient
  readonly #credentials: () => Promise<Credentials | undefined>
  readonly #readDocument: ReadOciDocument
  readonly #headers = new Map<Scope, string>()
  usedCredentials = false

  constructor(
    base: URL,
    repository: string,
    client: RegistryClient,
    credentials: () => Promise<Credentials | undefined>,
    readDocument: ReadOciDocument
  ) {
    this.#base = base
    this.#repository = repository
    this.#client = client
    this.#credentials = credentials
    this.#readDocument = readDocument
  }

  header(scope: Scope): string | undefined {
    return this.#headers.get(scope)
  }

  /**
   * Responds to a challenge. @param refused the authorization header that was refused; another request may have logged
   * in since
   * @returns false when nothing more can be done. @throws OciError `E_CREDENTIALS`, `E_DENIED`, `E_UNAVAILABLE`
   */
  async answer(
    header: string,
    scope: Scope,
    signal: AbortSignal | undefined,
    refused: string | undefined
  ): Promise<boolean> {
    const challenge = parseChallenge(header)
    if (challenge === undefined) return false
    const credentials = await this.#credentials()
    if (credentials !== undefined) this.usedCredentials = true
    if (challenge.scheme === 'basic') {
      if (credentials === undefined || !('username' in credentials)) return false
      const given = basic(credentials)
      if (refused === given) return false
      this.#headers.set(scope, given)
      return true
    }
    const { realm, service, scope: wanted = '' } = challenge
    // some registries name a smaller scope than the request needs, and for a mount they name a second repository
    const own = `repository:${this.#repository}:${scope === 'push' ? 'pull,push' : 'pull'}`
    const others = wanted.split(' ').filter((each) => each !== '' && !own.startsWith(each.replace(/[^:]*$/, '')))
    const token = await this.#token(this.#realm(realm), service, [own, ...others], credentials, signal)
    this.#headers.set(scope, `Bearer ${token}`)
    return true
  }

  #realm(realm: string): URL {
    const url = URL.parse(realm)
    const isSecure = url?.protocol === 'https:'
    // without TLS only if the registry itself is accessed so: on this machine, or because the user said so
    const isOwn =
      url?.protocol === 'http:' &&
      this.#base.protocol === 'http:' &&
      (url.host === this.#base.host || (isLoopbackRegistry(this.#base.host) && isLoopbackRegistry(url.host)))
    if (url !== null && (isSecure || isOwn) && url.username + url.password === '') return url
    throw new OciError('E_DENIED', `${this.#base.host} asks for the login at an unsafe address`)
  }

  async #token(
    url: URL,
    service: string | undefined,
    scopes: readonly string[],
    credentials: Credentials | undefined,
    signal: AbortSignal | undefined
  ): Promise<string> {
    const byRefresh = credentials !== undefined && 'identityToken' in credentials
    const form = new URLSearchParams({ ...(service !== undefined && { service }) })
    // a form has one list of scopes, a URL has one parameter for each
    for (const scope of byRefresh ? [scopes.join(' ')] : scopes) form.append('scope', scope)
    if (byRefresh) {
      form.set('grant_type', 'refresh_token')
      form.set('refresh_token', credentials.identityToken)
      form.set('client_id', 'svc')
    } else {
      for (const [key, value] of form) url.searchParams.append(key, value)
    }
    const answer = await this.#client.send({
      method: byRefresh ? 'POST' : 'GET',
      url,
      headers: ({ origin }) => ({
        accept: 'application/json',
        ...(byRefresh && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(origin === url.origin &&
          credentials !== undefined &&
          'username' in credentials && { authorization: basic(credentials) })
      }),
      ...(byRefresh && { body: Buffer.from(form.toString()) }),
      signal
    })
    const body = await readBody(answer, MAX_TOKEN_BYTES)
    if (answer.status === 401 || answer.status === 403)
      throw new OciError('E_DENIED', `${url.host} refuses the login for ${this.#base.host}`, { status: answer.status })
    if (answer.status !== 200) {
      throw new OciError('E_UNAVAILABLE', `${url.host} sent no token: status ${answer.status}`, {
        status: answer.status
      })
    }
    const token = await this.#readDocument('token', body)
    if (token !== undefined) return token
    throw new OciError('E_UNAVAILABLE', `${url.host} answers without a token`)
  }
}

const basic = ({ username, password }: { readonly username: string; readonly password: string }): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

/** How a registry wants its callers to authenticate (`WWW-Authenticate`, RFC 9110 §11.6.1). */
type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string }

const MAX_HEADER_CHARACTERS = 4_096

/** The first challenge that this client supports; undefined if there is none. */
export function parseChallenge(header: string): Challenge | undefined {
  if (header.length > MAX_HEADER_CHARACTERS) return undefined
  const match = /(?:^|,\s*)(basic|bearer)(?:\s+|$)/i.exec(header)
  if (match === null) return undefined
  if (match[1]!.toLowerCase() === 'basic') return { scheme: 'basic' }
  const parameters: Record<string, string> = {}
  const rest = header.slice(match.index + match[0].length)
  for (const [, key, quoted, plain] of rest.matchAll(/([A-Za-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    parameters[key!.toLowerCase()] ??= quoted === undefined ? plain! : quoted.replaceAll(/\\(.)/g, '$1')
  }
  const { realm, service, scope } = parameters
  if (realm === undefined) return undefined
  return { scheme: 'bearer', realm, ...(service !== undefined && { service }), ...(scope !== undefined && { scope }) }
}
