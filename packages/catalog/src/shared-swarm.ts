import { type DialPolicy, policyOfNamer } from '@svc/internal-net'
import { type Library, LibraryError } from '@svc/library/parts'
import { SwarmV1Error, V1Swarm, type V1SwarmOptions } from '@svc/swarm-v1'
import type { CatalogDocumentReader } from './catalog-documents.ts'

/** How peers of BitTorrent v1 are found and served. */
export interface CatalogSwarmOptions {
  /** Where to listen, at any port. */
  readonly peerHost: string
  readonly dht: V1SwarmOptions['dht']
  /** 0 is unlimited. */
  readonly uploadLimitBytesPerSecond: number
  /** A limit of what is received, that others share. Absent: none. */
  readonly downloads?: V1SwarmOptions['downloads']
}

interface SharedSwarmDeps extends CatalogSwarmOptions, Pick<Library, 'log'> {
  /** Of the catalog. */
  readonly endpoint: string | undefined
  readonly documents: CatalogDocumentReader
}

/** The BitTorrent v1 swarm of all pulls and seeds, which starts with the first of them. */
export class SharedSwarm {
  readonly #deps: SharedSwarmDeps
  #swarm: Promise<V1Swarm> | undefined
  #closed = false

  constructor(deps: SharedSwarmDeps) {
    this.#deps = deps
  }

  /** @throws LibraryError `E_CLOSED`, `E_SOURCE_UNAVAILABLE` */
  async get(): Promise<V1Swarm> {
    if (this.#closed) throw new LibraryError('E_CLOSED', 'the catalog is closed')
    this.#swarm ??= this.#start().catch(throwAsLibrary)
    this.#swarm.catch(() => {
      this.#swarm = undefined
    })
    return this.#swarm
  }

  async close(): Promise<void> {
    this.#closed = true
    await (await this.#swarm?.catch(() => undefined))?.close()
  }

  async #start(): Promise<V1Swarm> {
    const { peerHost, dht, uploadLimitBytesPerSecond, downloads, endpoint, documents, log } = this.#deps
    return V1Swarm.start({
      // another port, since a v2 engine has the configured one.
      peerAddress: { host: peerHost, port: 0 },
      dht,
      // if the catalog itself has a private address, what it lists may, too (a mirror in the LAN, a test).
      policy: await namedBy(endpoint),
      uploadLimitBytesPerSecond,
      downloads,
      parse: (info, infohash) => documents.parse('v1Torrent', info, infohash),
      onFault: ({ thread, error, count, pauseMs }) =>
        log.warn({ err: error, thread, count, pauseMs }, 'the BitTorrent v1 thread crashed or hung, and starts again')
    })
  }
}

function throwAsLibrary(error: unknown): never {
  if (!(error instanceof SwarmV1Error)) throw error
  throw new LibraryError('E_SOURCE_UNAVAILABLE', error.message, { cause: error })
}

/** For addresses that a catalog names: one on the internet must not direct this node into its own network. */
export const namedBy = async (endpoint: string | undefined): Promise<Exclude<DialPolicy, 'owner'>> =>
  endpoint === undefined ? 'internet' : policyOfNamer(hostOf(endpoint))

export const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
