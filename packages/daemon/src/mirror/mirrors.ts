import { configuredAddress, formatHostPort } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { Demand, type DemandFigures } from './demand.ts'
import { HubDemand } from './hub-demand.ts'
import { HubMirror, type MirrorOptions } from './hub-mirror.ts'
import { OciMirror, type OciMirrorDeps } from './oci-mirror.ts'
import { ServedModels, type ServedModelsDeps } from './served-models.ts'
import { type FillSource, SwarmDemand, type SwarmDemandDeps } from './swarm-demand.ts'
import type { Upstream } from './upstream.ts'

/** The daemon's objects that the mirrors use. */
export interface MirrorsDeps extends Omit<OciMirrorDeps, 'served' | 'demand'>, ServedModelsDeps {
  readonly config: { readonly mirror: MirrorConfig }
  readonly jobs: SwarmDemandDeps['jobs']
}

/** The addresses of the mirrors, as `host:port`. */
export interface MirrorAddresses {
  readonly hubMirrorAddress?: string
  readonly ociMirrorAddress?: string
}

/** What brings in what clients ask for: one demand, and the ways that are attached. */
interface Ways {
  hub?: HubDemand
  swarm?: SwarmDemand
}

/** The configured mirrors; without an address a mirror is off (spec add.22). */
export class Mirrors {
  readonly #hub: HubMirror | undefined
  readonly #oci: OciMirror | undefined
  readonly #deps: MirrorsDeps
  readonly #demand: Demand
  readonly #ways: Ways

  private constructor(hub: HubMirror | undefined, oci: OciMirror | undefined, deps: MirrorsDeps, ways: Ways) {
    this.#hub = hub
    this.#oci = oci
    this.#deps = deps
    this.#demand = new Demand(deps, deps.config.mirror.onDemand)
    this.#ways = ways
  }

  /** @throws ConfigError, StartError naming the key */
  static async listen(deps: MirrorsDeps): Promise<Mirrors> {
    const { hubAddr, ociAddr, token, names } = deps.config.mirror
    const served = new ServedModels(deps)
    const ways: Ways = {}
    const at = (text: string, key: string): MirrorOptions => ({
      address: configuredAddress(text, key),
      token,
      names,
      log: deps.log
    })
    const [hubKey, ociKey] = ['[mirror] hub_addr', '[mirror] oci_addr']
    const hubDeps = { ...deps, served, demand: () => ways.hub }
    const hub =
      hubAddr === undefined ? undefined : await named(hubKey, hubAddr, HubMirror.listen(hubDeps, at(hubAddr, hubKey)))
    try {
      const ociDeps = { ...deps, served, demand: () => ways.swarm }
      const oci =
        ociAddr === undefined ? undefined : await named(ociKey, ociAddr, OciMirror.listen(ociDeps, at(ociAddr, ociKey)))
      return new Mirrors(hub, oci, deps, ways)
    } catch (error) {
      await hub?.close()
      throw error
    }
  }

  /** Lets the hub's mirror bring in what is not here, where the configuration says so. */
  attach(upstream: Upstream): void {
    if (this.#demand.jobs !== undefined) this.#ways.hub = new HubDemand(this.#demand, upstream)
  }

  /** Lets the OCI mirror show what is being fetched, and start that where the configuration says so. */
  attachSwarm(source: FillSource): void {
    if (this.#oci !== undefined) this.#ways.swarm = new SwarmDemand({ ...this.#deps, demand: this.#demand, source })
  }

  figures(): MirrorFigures {
    const { hub, swarm } = this.#ways
    return {
      demand: hub === undefined && swarm === undefined ? undefined : this.#demand.figures(),
      lookupsTotal: hub?.lookupsTotal
    }
  }

  addresses(): MirrorAddresses {
    return {
      ...(this.#hub !== undefined && { hubMirrorAddress: formatHostPort(this.#hub.address) }),
      ...(this.#oci !== undefined && { ociMirrorAddress: formatHostPort(this.#oci.address) })
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#hub?.close(), this.#oci?.close()])
  }
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
    throw new StartError(`${key} = "${text}" cannot be listened on: ${(cause as Error).message}`, { cause })
  }
}
