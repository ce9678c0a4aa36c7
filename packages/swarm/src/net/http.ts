import { DialGuard, loadHttpClient } from '@svc/internal-net'
import type { Agent } from 'undici'
import { SwarmError } from '../errors.ts'

const refused = (host: string): SwarmError =>
  new SwarmError(
    'E_ADDRESS',
    'private',
    `${host} is a loopback, private or reserved address, and nobody but a stranger named it`,
    { details: { host } }
  )

/** A webseed's redirects and what strangers name: public addresses only. */
const strangers = new DialGuard('internet', refused)
const owner = new DialGuard('owner')

const CONNECT_TIMEOUT_MS = 10_000

/** Loaded with the first web seed: most swarms have none. */
const undici = (): Promise<typeof import('undici')> => loadHttpClient(import.meta.url)

async function agent({ lookup }: DialGuard): Promise<Agent> {
  const { Agent } = await undici()
  return new Agent({
    connections: 8,
    pipelining: 1,
    headersTimeout: 15_000,
    bodyTimeout: 15_000,
    keepAliveTimeout: 10_000,
    maxHeaderSize: 16_384,
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup }
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
    if (byUser) return (this.#user ??= agent(owner))
    strangers.check(url.hostname)
    return (this.#strangers ??= agent(strangers))
  }

  async close(): Promise<void> {
    await Promise.all([this.#user, this.#strangers].map(async (pool) => (await pool)?.destroy()))
  }
}
