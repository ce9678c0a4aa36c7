import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { errnoOf } from '@svc/internal-errors'
import { isObject } from '@svc/internal-http'
import { parseObject } from './document.ts'
import { OciError } from './errors.ts'

/** The credentials of a registry's user. */
export type Credentials =
  | { readonly username: string; readonly password: string }
  /** A refresh token, as some registries issue at login. */
  | { readonly identityToken: string }

/** Where to look for the Docker configuration, and the environment for credential helpers. */
export interface CredentialsOptions {
  /** Default: this process's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /**
   * Repository that the credentials are for. A file may have several entries for one registry, keyed by prefixes of
   * names.
   */
  readonly repository?: string
}

/** The names under which configurations list Docker Hub. */
const HUB_NAMES: readonly string[] = ['docker.io', 'index.docker.io', 'registry-1.docker.io']
/** The name that Docker and its credential helpers use for it. */
const HUB_KEY = 'https://index.docker.io/v1/'
const HELPER_TIMEOUT_MS = 30_000
const MAX_ANSWER_BYTES = 1 << 20
const HELPER_NAME = /^[A-Za-z0-9._-]{1,100}$/
/** The message by which credential helpers report that they have no entry. */
const NOT_FOUND = /credentials not found/i

/**
 * Finds credentials where Docker, podman and oras keep them: `auths`, `credHelpers` and `credsStore` of
 * `$DOCKER_CONFIG/config.json` (else `~/.docker/config.json`), then `$REGISTRY_AUTH_FILE`, else
 * `$XDG_RUNTIME_DIR/containers/auth.json`.
 * @returns undefined when there are none: the registry is then accessed anonymously
 * @throws OciError `E_CREDENTIALS` for files that cannot be read and helpers that fail
 */
export async function findCredentials(
  registry: string,
  { env = process.env, repository = '' }: CredentialsOptions = {}
): Promise<Credentials | undefined> {
  for (const path of configFiles(env)) {
    const config = await readConfig(path)
    if (config === undefined) continue
    const helpers = objectOf(config.credHelpers)
    const named = HUB_NAMES.includes(registry) ? [HUB_KEY, ...HUB_NAMES] : [registry]
    const helper = named.map((name) => textOf(helpers?.[name])).find(Boolean) ?? textOf(config.credsStore)
    const found = helper === undefined ? undefined : await askHelper(helper, named[0]!, env)
    if (found !== undefined) return found
    const stored = storedIn(objectOf(config.auths) ?? {}, named, repository, path)
    if (stored !== undefined) return stored
  }
  return undefined
}

function configFiles(env: Readonly<Record<string, string | undefined>>): string[] {
  const { DOCKER_CONFIG, HOME, REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR } = env
  const docker = DOCKER_CONFIG ?? (HOME === undefined ? undefined : join(HOME, '.docker'))
  const containers =
    REGISTRY_AUTH_FILE ?? (XDG_RUNTIME_DIR === undefined ? undefined : join(XDG_RUNTIME_DIR, 'containers/auth.json'))
  return [docker && join(docker, 'config.json'), containers].filter(
    (path) => path !== undefined && path !== ''
  ) as string[]
}

async function readConfig(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    return parseObject(await readFile(path), path)
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(cause) ?? '')) return undefined
    throw new OciError('E_CREDENTIALS', `${path} cannot be read: ${(cause as Error).message}`, { path }, cause)
  }
}

function storedIn(
  auths: Readonly<Record<string, unknown>>,
  named: readonly string[],
  repository: string,
  path: string
): Credentials | undefined {
  const fitting = Object.keys(auths).filter((key) => {
    const { host, prefix } = placeOf(key)
    return named.includes(host) && (prefix === '' || `${repository}/`.startsWith(`${prefix}/`))
  })
  // the most specific one, as podman does
  const [key] = fitting.sort((a, b) => placeOf(b).prefix.length - placeOf(a).prefix.length)
  const entry = key === undefined ? undefined : objectOf(auths[key])
  if (entry === undefined) return undefined
  const identityToken = textOf(entry.identitytoken)
  if (identityToken !== undefined) return { identityToken }
  const auth = textOf(entry.auth)
  if (auth === undefined) return undefined
  const decoded = Buffer.from(auth, 'base64').toString('utf8')
  const colon = decoded.indexOf(':')
  if (colon < 1) throw new OciError('E_CREDENTIALS', `${path} has a malformed entry for ${key}`, { path })
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1).replace(/\0+$/, '') }
}

/**
 * A key is a host, a host with a prefix of a repository's name, or a URL as old versions wrote them, whose path means
 * nothing.
 */
function placeOf(key: string): { readonly host: string; readonly prefix: string } {
  const bare = key.replace(/^https?:\/\//, '')
  const [host, ...path] = bare.split('/')
  return { host: host!, prefix: bare === key ? path.join('/').replace(/\/+$/, '') : '' }
}

/** Runs `docker-credential-<helper> get` by its protocol: the registry's name on stdin, JSON on stdout. */
async function askHelper(
  helper: string,
  registry: string,
  env: Readonly<Record<string, string | undefined>>
): Promise<Credentials | undefined> {
  if (!HELPER_NAME.test(helper)) throw new OciError('E_CREDENTIALS', 'the name of a credential helper is malformed')
  const program = `docker-credential-${helper}`
  const output = await run(program, registry, env)
  if (output === undefined) return undefined
  let answer: Readonly<Record<string, unknown>>
  try {
    answer = parseObject(Buffer.from(output), `the answer of ${program}`)
  } catch (cause) {
    // its output may contain a secret
    throw new OciError('E_CREDENTIALS', `the output of ${program} is not JSON`, {}, cause)
  }
  const username = textOf(answer.Username)
  const secret = textOf(answer.Secret)
  if (username === undefined || secret === undefined) return undefined
  return username === '<token>' ? { identityToken: secret } : { username, password: secret }
}

/** @returns what it prints; undefined when it has no entry for the registry */
async function run(
  program: string,
  registry: string,
  env: Readonly<Record<string, string | undefined>>
): Promise<string | undefined> {
  const options = { env, timeout: HELPER_TIMEOUT_MS, maxBuffer: MAX_ANSWER_BYTES }
  const running = promisify(execFile)(program, ['get'], options)
  // if the helper has already exited, its exit code says why
  running.child.stdin?.on('error', () => undefined).end(registry)
  try {
    return (await running).stdout
  } catch (error) {
    const { syscall, stdout = '' } = error as { readonly syscall?: string; readonly stdout?: string }
    if (NOT_FOUND.test(stdout)) return undefined
    const why = syscall === undefined ? `failed for ${registry}` : 'cannot be run; is it installed?'
    // without the cause, whose output may contain a secret
    throw new OciError('E_CREDENTIALS', `${program} ${why}`)
  }
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  isObject(value) ? value : undefined

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
