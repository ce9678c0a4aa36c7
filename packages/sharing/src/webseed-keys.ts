import { type Clock, systemClock } from '@svc/internal-clock'
import { type AccessKey, SecretFile, signGet } from '@svc/internal-server'
import { LibraryError } from '@svc/library/parts'

/** A webseed whose requests are signed. */
export interface WebseedKey {
  /** The base of the URLs whose requests are signed: an origin and a path that ends in a slash. */
  readonly base: URL
  /** Of the bucket. */
  readonly region: string
  /** Absolute path of a file as the AWS tools have it; undefined: the environment, by their variables. */
  readonly credentialsFile: string | undefined
  /** A part of that file. */
  readonly profile: string
}

/**
 * Signs requests to the webseeds that have a key (spec add.33), and to no other host, port, scheme or path. A file is
 * read again when it has changed, so that keys can be renewed.
 */
export class WebseedKeys {
  readonly #configs: readonly WebseedKey[]
  readonly #env: Readonly<Record<string, string | undefined>>
  readonly #clock: Pick<Clock, 'now'>
  readonly #files = new Map<string, SecretFile<ReadonlyMap<string, AccessKey>>>()

  constructor(
    configs: readonly WebseedKey[],
    env: Readonly<Record<string, string | undefined>>,
    clock: Pick<Clock, 'now'> = systemClock
  ) {
    // the longest first: a more specific base takes precedence
    this.#configs = [...configs].sort((a, b) => b.base.pathname.length - a.base.pathname.length)
    this.#env = env
    this.#clock = clock
  }

  /**
   * The headers that sign a GET; undefined if the address has no key.
   * @throws Error that reveals nothing about this machine: it becomes a warning of the job
   */
  async headersFor(url: URL, headers: Readonly<Record<string, string>>): Promise<Record<string, string> | undefined> {
    const config = this.#configOf(url)
    if (config === undefined) return undefined
    const key = await this.#keyOf(config).catch((cause: unknown) => {
      throw new Error('its key cannot be used; the status says why', { cause })
    })
    return signGet({ url, headers, region: config.region, key, at: new Date(this.#clock.now()) })
  }

  /** For the status: the keys' source and current problem, but no part of them. */
  states(): Promise<{ readonly url: string; readonly credentialsFile?: string; readonly problem?: string }[]> {
    return Promise.all(
      this.#configs.map(async (config) => {
        const { base, credentialsFile } = config
        const problem = await this.#keyOf(config).then(
          () => undefined,
          (error: unknown) => (error as Error).message
        )
        return {
          url: base.href,
          ...(credentialsFile !== undefined && { credentialsFile }),
          ...(problem !== undefined && { problem })
        }
      })
    )
  }

  /** @throws LibraryError `E_INVALID` naming a file or variables that cannot be used, but never their content */
  async check(): Promise<void> {
    for (const config of this.#configs) await this.#keyOf(config)
  }

  #configOf(url: URL): WebseedKey | undefined {
    return this.#configs.find(({ base }) => url.origin === base.origin && url.pathname.startsWith(base.pathname))
  }

  async #keyOf({ base, credentialsFile, profile }: WebseedKey): Promise<AccessKey> {
    const where = `the webseed ${base.href}`
    if (credentialsFile === undefined) {
      const key = keyOf(this.#env.AWS_ACCESS_KEY_ID, this.#env.AWS_SECRET_ACCESS_KEY, this.#env.AWS_SESSION_TOKEN)
      if (key !== undefined) return key
      throw refusal(
        `${where} has no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or name a file with credentials`
      )
    }
    const key = (await this.#read(credentialsFile, where)).get(profile)
    if (key !== undefined) return key
    throw refusal(`${where}: ${credentialsFile} has no [${profile}] with aws_access_key_id and aws_secret_access_key`)
  }

  #read(path: string, where: string): Promise<ReadonlyMap<string, AccessKey>> {
    const file = this.#files.get(path) ?? new SecretFile(path, parseKeys, refusal)
    this.#files.set(path, file)
    return file.read(where)
  }
}

const refusal = (message: string, cause?: unknown): LibraryError => new LibraryError('E_INVALID', message, { cause })

function keyOf(id: string | undefined, secret: string | undefined, token: string | undefined): AccessKey | undefined {
  const [accessKeyId, secretAccessKey, sessionToken] = [id?.trim(), secret?.trim(), token?.trim()]
  // both are sent in a header
  if (!isWord(accessKeyId) || !isWord(secretAccessKey)) return undefined
  if (sessionToken !== undefined && sessionToken !== '' && !isWord(sessionToken)) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) }
}

const isWord = (text: string | undefined): text is string => text !== undefined && /^[\x21-\x7e]{1,4096}$/.test(text)

/** Parses the format of `~/.aws/credentials`: `[profile]`, then `name = value` lines. Other lines are ignored. */
function parseKeys(text: string): ReadonlyMap<string, AccessKey> {
  const parts = new Map<string, Map<string, string>>()
  let part = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const header = /^\s*\[\s*([^\]]+?)\s*\]\s*(?:[#;].*)?$/.exec(line)
    if (header !== null) {
      part = new Map()
      parts.set(header[1]!, part)
      continue
    }
    const entry = /^\s*(aws_[a-z_]+)\s*=\s*(\S*)\s*$/.exec(line)
    if (entry !== null) part.set(entry[1]!, entry[2]!)
  }
  return new Map(
    [...parts].flatMap(([name, values]) => {
      const key = keyOf(
        values.get('aws_access_key_id'),
        values.get('aws_secret_access_key'),
        values.get('aws_session_token')
      )
      return key === undefined ? [] : [[name, key] as const]
    })
  )
}
