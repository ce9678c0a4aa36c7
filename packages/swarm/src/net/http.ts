import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress, loadHttpClient } from '@svc/internal-net'
import type { Agent } from 'undici'
import { SwarmError } from '../errors.ts'

const refused = (host: string): SwarmError =>
  new SwarmError(
    'E_ADDRESS',
    'private',
    `${host} is a loopback, private or reserved address, and nobody but a stranger named it`,
    { details: { host } }
  )

/** Resolves names and refuses non-public addresses: the check happens where the connection is made. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '', 0)
    const allowed = (addresses as LookupAddress[]).filter((entry) => isPublicAddress(entry.address))
    const first = allowed[0]
    if (first === undefined) return callback(refused(hostname) as NodeJS.ErrnoException, '', 0)
    if (options.all === true) (callback as unknown as (e: null, a: LookupAddress[]) => void)(null, allowed)
    else callback(null, first.address, first.family)
  })
}

const CONNECT_TIMEOUT_MS = 10_000

/** Loaded with the first web seed: most swarms have none. */
const undici = (): Promise<typeof import('undici')> => loadHttpClient(import.meta.url)

async function agent(connect: NonNullable<Agent.Options['connect']>): Promise<Agent> {
  const { Agent } = await undici()
  return new Agent({
    connections: 8,
    pipelining: 1,
    headersTimeout: 15_000,
    bodyTimeout: 15_000,
    keepAliveTimeout: 10_000,
    maxHeaderSize: 16_384,
    connect
  })
}

/** Two connection pools: one for URLs from the user, one that never connects to non-public addresses. */
export class HttpPools {
  #user: Promise<Agent> | undefined
  #strangers: Promise<Agent> | undefined

  /** @throws SwarmError `E_ADDRESS`: a literal address that must not be contacted. */
  async for(url: URL, byUser: boolean): Promise<Agent> {
    try {
      return await this.#pool(url, byUser)
    } catch (error) {
      // a pool that could not be loaded, for want of descriptors for example, is tried again
      if (byUser) this.#user = undefined
      else if (!(error instanceof SwarmError)) this.#strangers = undefined
      throw error
    }
  }

  #pool(url: URL, byUser: boolean): Promise<Agent> {
    if (byUser) return (this.#user ??= agent({ timeout: CONNECT_TIMEOUT_MS }))
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !isPublicAddress(host)) throw refused(host)
    return (this.#strangers ??= agent({ timeout: CONNECT_TIMEOUT_MS, lookup: publicLookup }))
  }

  async close(): Promise<void> {
    await Promise.all([this.#user, this.#strangers].map(async (pool) => (await pool)?.destroy()))
  }
}
