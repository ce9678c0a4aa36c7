import { configuredAddress, formatHostPort } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { s3KeysOf } from '../config/s3-keys.ts'
import { ConfigError, StartError } from '../errors.ts'
import type { WantedBlobs } from '../library/wanted-blobs.ts'
import { Demand, type DemandFigures } from './demand.ts'
import { HubDemand } from './hub-demand.ts'
import { HubMirror, type MirrorOptions } from './hub-mirror.ts'
import { OciMirror, type OciMirrorDeps } from './oci-mirror.ts'
import { S3Mirror } from './s3-mirror.ts'
import { ServedModels, type ServedModelsDeps } from './served-models.ts'
import { type FillSource, SwarmDemand, type SwarmDemandDeps } from './swarm-demand.ts'
import type { Upstream } from './upstream.ts'

/** The daemon's objects that the mirrors use. */
export interface MirrorsDeps extends Omit<OciMirrorDeps, 'served' | 'demand'>, ServedModelsDeps {
  readonly config: { readonly mirror: MirrorConfig }
  readonly jobs: SwarmDemandDeps['jobs']
  readonly wanted: WantedBlobs
}

/** The addresses of the mirrors, as `host:port`. */
export interface MirrorAddresses {
  readonly hubMirrorAddress?: string
  readonly ociMirrorAddress?: string
  readonly s3MirrorAddress?: string
}

/** What brings in what clients ask for: one demand, and the ways that are attached. */
interface Ways {
  hub?: HubDemand
  swarm?: SwarmDemand
}

/** What listens. */
interface Listening {
  readonly hub: HubMirror | undefined
  readonly oci: OciMirror | undefined
  readonly s3: S3Mirror | undefined
}

/** The configured mirrors; without an address a mirror is off (spec add.22). */
export class Mirrors {
  readonly #listening: Listening
  readonly #deps: MirrorsDeps
  readonly #demand: Demand
  readonly #ways: Ways

  private constructor(listening: Listening, deps: MirrorsDeps, ways: Ways) {
    this.#listening = listening
    this.#deps = deps
    this.#demand = new Demand(deps, deps.config.mirror.onDemand)
    this.#ways = ways
  }

  /** @throws ConfigError, StartError naming the key */
  static async listen(deps: MirrorsDeps): Promise<Mirrors> {
    const { hubAddr, ociAddr, s3Addr, token, names } = deps.config.mirror
    const served = new ServedModels(deps)
    const ways: Ways = {}
    const opened: Closable[] = []
    const open = async <M extends Closable>(
      key: string,
      text: string | undefined,
      listen: (options: MirrorOptions) => Promise<M>
    ): Promise<M | undefined> => {
      if (text === undefined) return undefined
      const address = configuredAddress(text, key)
      const mirror = await named(key, text, listen({ address, token, names, log: deps.log }))
      opened.push(mirror)
      return mirror
    }
    try {
      const hub = await open('[mirror] hub_addr', hubAddr, (options) =>
        HubMirror.listen({ ...deps, served, demand: () => ways.hub, coming: () => ways.swarm }, options)
      )
      const oci = await open('[mirror] oci_addr', ociAddr, (options) =>
        OciMirror.listen({ ...deps, served, demand: () => ways.swarm }, options)
      )
      const s3 = await open('[mirror] s3_addr', s3Addr, (options) =>
        S3Mirror.listen({ ...deps, served, demand: () => ways.swarm, s3Keys: s3KeysOf(deps.config.mirror) }, options)
      )
      return new Mirrors({ hub, oci, s3 }, deps, ways)
    } catch (error) {
      for (const mirror of opened) await mirror.close()
      throw error
    }
  }

  /** Lets the hub's mirror bring in what is not here, where the configuration says so. */
  attach(upstream: Upstream): void {
    if (this.#demand.jobs !== undefined) this.#ways.hub = new HubDemand(this.#demand, upstream)
  }

  /** Lets the mirrors show what is being fetched, and start that where the configuration says so. */
  attachSwarm(source: FillSource): void {
    this.#ways.swarm = new SwarmDemand({ ...this.#deps, demand: this.#demand, source })
  }

  figures(): MirrorFigures {
    const { hub, swarm } = this.#ways
    return {
      demand: hub === undefined && swarm === undefined ? undefined : this.#demand.figures(),
      lookupsTotal: hub?.lookupsTotal
    }
  }

  addresses(): MirrorAddresses {
    const { hub, oci, s3 } = this.#listening
    return {
      ...(hub !== undefined && { hubMirrorAddress: formatHostPort(hub.address) }),
      ...(oci !== undefined && { ociMirrorAddress: formatHostPort(oci.address) }),
      ...(s3 !== undefined && { s3MirrorAddress: formatHostPort(s3.address) })
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#listening).map((mirror: Closable | undefined) => mirror?.close()))
  }
}

interface Closable {
  close(): Promise<void>
}

/** An absent part is off. */
export interface MirrorFigures {
  readonly demand: DemandFigures | undefined
  readonly lookupsTotal: number | undefined
}

async function named<T>(key: string, text: string, listening: Promise<T>): Promise<T> {
  try {
    return await listening
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    throw new StartError(`${key} = "${text}" cannot be listened on: ${(cause as Error).message}`, { cause })
  }
}
