import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { createHub, type Hub, type HubOptions, type ListingOptions } from '@svc/hub'
import { LibraryError } from '@svc/library/parts'
import { LRUCache } from 'lru-cache'

/** The hub with the current token, and whether there is one. */
export interface SignedHub {
  readonly hub: Hub
  readonly hasToken: boolean
}

/** Which hub, and the owner's token for it. */
export interface HubAccess {
  /** Default: the public hub. */
  readonly endpoint?: string | undefined
  readonly token?: string | undefined
  /** Where `token` comes from, for messages. */
  readonly tokenName?: string | undefined
  /** Where the hub's own client keeps a token; read at each request that has no other. */
  readonly tokenFile?: string | undefined
}

/** Whose token the hub was asked about, and where the owner's is taken from. */
export interface HubAccountHere {
  readonly endpoint: string
  /** Absent where the hub does not tell it. */
  readonly name?: string
  readonly variable?: string
  /** Absent if a variable has the token, or no file is read. */
  readonly file?: string
}

export interface OwnersHubOptions extends Omit<HubOptions, 'endpoint' | 'token' | 'tokenName'> {
  /** The token in use, or one that there could be, in messages that suggest a fix. */
  readonly nameOf?: (token: string | undefined) => string
}

const MAX_TOKEN_BYTES = 4096
/** O_NONBLOCK: a FIFO of that name would block otherwise. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK
/** Clients of earlier tokens, which imports may still use. */
const MAX_CLIENTS = 8

/** Each import asks for the client, so that a login or logout needs no restart of the program (spec hub.4). */
export class OwnersHub {
  readonly #config: HubAccess
  readonly #options: HubOptions
  readonly #nameOf: (token: string | undefined) => string
  /** By token; the client without one has the key ''. */
  readonly #clients = new LRUCache<string, Hub>({ max: MAX_CLIENTS, dispose: (hub) => void hub.close() })

  /** @throws HubError when the endpoint or the given token is invalid */
  constructor(config: HubAccess, { nameOf = () => config.tokenName ?? 'a token', ...options }: OwnersHubOptions) {
    this.#config = config
    this.#nameOf = nameOf
    const { endpoint, token } = config
    this.#options = { ...options, ...(endpoint !== undefined && { endpoint }) }
    this.#clientOf(token)
  }

  /** @throws LibraryError `E_SOURCE_FORBIDDEN` when the file of the token cannot be read or holds none */
  async now(): Promise<SignedHub> {
    const token = await tokenNow(this.#config)
    return { hub: this.#clientOf(token), hasToken: token !== undefined }
  }

  /**
   * Asks the hub whose token it is, and tells where the owner's is taken from.
   * @throws LibraryError `E_INVALID` if it is no token; HubError `E_SOURCE_FORBIDDEN` if the hub rejects it
   */
  async account(token: string, options: ListingOptions): Promise<HubAccountHere> {
    if (token.length > MAX_TOKEN_BYTES || !IS_TOKEN.test(token))
      throw new LibraryError('E_INVALID', '"token" must be at most 4,096 printable ASCII characters without spaces')
    const hub = createHub({ ...this.#options, token })
    try {
      const { name } = await hub.account(options)
      const { tokenName: variable, tokenFile: file } = this.#config
      return {
        endpoint: hub.endpoint,
        ...(name !== undefined && { name }),
        ...(variable !== undefined ? { variable } : file !== undefined && { file })
      }
    } finally {
      await hub.close()
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((hub) => hub.close()))
  }

  #clientOf(token: string | undefined): Hub {
    const known = this.#clients.get(token ?? '')
    if (known !== undefined) return known
    const hub = createHub({
      ...this.#options,
      tokenName: this.#nameOf(token),
      ...(token !== undefined && { token })
    })
    this.#clients.set(token ?? '', hub)
    return hub
  }
}

const IS_TOKEN = /^[\x21-\x7e]+$/

/**
 * The owner's token: from the environment, else the current one in the hub client's file.
 * @throws LibraryError `E_SOURCE_FORBIDDEN` naming a file that cannot be read or holds no token
 */
async function tokenNow({ token, tokenFile }: HubAccess): Promise<string | undefined> {
  if (token !== undefined || tokenFile === undefined) return token
  const text = await contentOf(tokenFile)
  if (text === undefined || text === '') return undefined
  if (IS_TOKEN.test(text)) return text
  throw unusable(tokenFile, 'it contains no token')
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, READ)
    if (!(await file.stat()).isFile()) throw unusable(path, 'it is not a file')
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_TOKEN_BYTES))
    return bytesRead < MAX_TOKEN_BYTES ? buffer.toString('latin1', 0, bytesRead).trim() : 'too long for a token'
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error instanceof LibraryError ? error : unusable(path, message)
  }
}

const unusable = (path: string, why: string): LibraryError =>
  new LibraryError('E_SOURCE_FORBIDDEN', `the hub token in ${path} cannot be used: ${why}`, {
    advice: { to: 'log-in' }
  })
