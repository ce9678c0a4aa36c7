import type { PeerAddress, TokenBucket } from '@svc/internal-net'
import type { TrafficCounter } from '@svc/internal-server'
import type { Library } from '@svc/library/parts'
import { WebseedListener, type WebseedListenerDeps } from './webseed-listener.ts'

export interface WebseedPortDeps extends Omit<WebseedListenerDeps, 'budget'>, Pick<Library, 'ports'> {
  /** Undefined: never. */
  readonly address: PeerAddress | undefined
  readonly limit: TokenBucket
  /** Counts the listener's traffic; made when it listens. */
  readonly traffic: () => TrafficCounter | undefined
}

/** The webseed listener, from the first time that something is shared. */
export class WebseedPort {
  readonly #deps: WebseedPortDeps
  #listener: WebseedListener | undefined

  constructor(deps: WebseedPortDeps) {
    this.#deps = deps
  }

  get listener(): WebseedListener | undefined {
    return this.#listener
  }

  /** Idempotent. @throws the error of `listen` */
  async open(): Promise<void> {
    const { address, limit, traffic, ports, ...deps } = this.#deps
    if (address === undefined || this.#listener !== undefined) return
    const counter = traffic()
    const listen = (at: PeerAddress) => WebseedListener.listen({ ...deps, budget: limit }, at, counter)
    this.#listener = await ports.listen('webseed', address, listen, (listener) => listener.address.port)
  }

  async close(): Promise<void> {
    await this.#listener?.close()
  }
}
