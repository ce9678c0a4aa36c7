import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { HubAccountResult } from '@svc/client/protocol'
import { createHub, type Hub, HubError, type HubOptions, type ListingOptions } from '@svc/hub'
import { LibraryError } from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import type { HubConfig } from '../../config/config.ts'
import { DaemonError, StartError } from '../../errors.ts'

/** The hub with the current token, and whether there is one. */
export interface SignedHub {
  readonly hub: Hub
  readonly hasToken: boolean
}

/** Makes the first client. @throws StartError when the endpoint or the token is invalid */
export function atStart(make: () => Hub): Hub {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof HubError)) throw cause
    const where = '[hub] endpoint, HF_ENDPOINT, SVC_HF_TOKEN, HF_TOKEN'
    throw new StartError(`the hub client cannot start: ${cause.message} (${where})`, { cause })
  }
}

const MAX_TOKEN_BYTES = 4096
/** O_NONBLOCK: a FIFO of that name would block otherwise. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK
/** Clients of earlier tokens, which imports may still use. */
const MAX_CLIENTS = 8

/** Each import asks for the client, so that a login or logout needs no restart of the daemon (spec hub.4). */
export class OwnersHub {
  readonly #config: HubConfig
  readonly #options: HubOptions
  /** By token; the client without one has the key ''. */
  readonly #clients = new LRUCache<string, Hub>({ max: MAX_CLIENTS, dispose: (hub) => void hub.close() })

  /** @throws StartError when the endpoint or the token of the environment is invalid */
  constructor(config: HubConfig, options: HubOptions) {
    this.#config = config
    const { endpoint, token } = config
    this.#options = { ...options, ...(endpoint !== undefined && { endpoint }) }
    atStart(() => this.#clientOf(token))
  }

  /** @throws DaemonError `E_SOURCE_FORBIDDEN` when the file of the token cannot be read or holds none */
  async now(): Promise<SignedHub> {
    const token = await tokenNow(this.#config)
    return { hub: this.#clientOf(token), hasToken: token !== undefined }
  }

  /**
   * Asks the hub whose token it is, and tells where the daemon takes its own from.
   * @throws DaemonError `E_BAD_REQUEST` if it is no token; HubError `E_SOURCE_FORBIDDEN` if the hub rejects it
   */
  async account(token: string, options: ListingOptions): Promise<HubAccountResult> {
    if (token.length > MAX_TOKEN_BYTES || !IS_TOKEN.test(token))
      throw new DaemonError('E_BAD_REQUEST', '"token" must be at most 4,096 printable ASCII characters without spaces')
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
      tokenName: nameOf(this.#config, token),
      ...(token !== undefined && { token })
    })
    this.#clients.set(token ?? '', hub)
    return hub
  }
}

/** Where a token comes from, for messages that say what to do about it. */
function nameOf({ tokenName, tokenFile }: HubConfig, token: string | undefined): string {
  if (token === undefined) return 'a token (svc login hf)'
  return tokenName !== undefined
    ? `${tokenName} in the daemon's environment`
    : `the token in ${tokenFile} (svc login hf writes it, svc logout hf removes it)`
}

const IS_TOKEN = /^[\x21-\x7e]+$/

/**
 * The owner's token: from the environment, else the current one in the hub client's file.
 * @throws DaemonError `E_SOURCE_FORBIDDEN` naming a file that cannot be read or holds no token
 */
async function tokenNow({ token, tokenFile }: HubConfig): Promise<string | undefined> {
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

const unusable = (path: string, why: string): DaemonError =>
  new DaemonError(
    'E_SOURCE_FORBIDDEN',
    `the hub token in ${path} cannot be used: ${why}; svc login hf writes a new one`
  )
