import { configuredAddress, formatHostPort } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { DayBudget } from './day-budget.ts'
import { HubMirror, type MirrorOptions } from './hub-mirror.ts'
import { OciMirror, type OciMirrorDeps } from './oci-mirror.ts'
import { OnDemand, type OnDemandFigures } from './on-demand.ts'
import { Published, type PublishedDeps } from './published.ts'
import { type FillSource, SwarmDemand, type SwarmDemandDeps, type SwarmDemandFigures } from './swarm-demand.ts'
import type { Upstream } from './upstream.ts'

/** The daemon's objects that the mirrors use. */
export interface MirrorsDeps extends Omit<OciMirrorDeps, 'published' | 'demand'>, PublishedDeps {
  readonly config: { readonly mirror: MirrorConfig }
  readonly jobs: SwarmDemandDeps['jobs']
}

/** The addresses of the mirrors, as `host:port`. */
export interface MirrorAddresses {
  readonly hubMirrorAddress?: string
  readonly ociMirrorAddress?: string
}

/** The configured mirrors; without an address a mirror is off (spec add.22). */
export class Mirrors {
  readonly #hub: HubMirror | undefined
  readonly #oci: OciMirror | undefined
  readonly #demand: Demand

  private constructor(hub: HubMirror | undefined, oci: OciMirror | undefined, demand: Demand) {
    this.#hub = hub
    this.#oci = oci
    this.#demand = demand
  }

  /** @throws ConfigError, StartError naming the key */
  static async listen({ config, ...context }: MirrorsDeps): Promise<Mirrors> {
    const { log } = context
    const { hubAddr, ociAddr, token, names } = config.mirror
    const demand = new Demand(context, config.mirror)
    const published = new Published(context)
    const at = (text: string, key: string): MirrorOptions => ({
      address: configuredAddress(text, key),
      token,
      names,
      log
    })
    const [hubKey, ociKey] = ['[mirror] hub_addr', '[mirror] oci_addr']
    const hubDeps = { ...context, published, onDemand: () => demand.ofHub }
    const hub =
      hubAddr === undefined ? undefined : await named(hubKey, hubAddr, HubMirror.listen(hubDeps, at(hubAddr, hubKey)))
    try {
      const ociDeps = { ...context, published, demand: () => demand.ofSwarm }
      const oci =
        ociAddr === undefined ? undefined : await named(ociKey, ociAddr, OciMirror.listen(ociDeps, at(ociAddr, ociKey)))
      return new Mirrors(hub, oci, demand)
    } catch (error) {
      await hub?.close()
      throw error
    }
  }

  /** Lets the hub's mirror bring in what is not here, where the configuration says so. */
  attach(upstream: Upstream): void {
    this.#demand.attach(upstream)
  }

  /** Lets the OCI mirror show what is being fetched, and start that where the configuration says so. */
  attachSwarm(source: FillSource): void {
    if (this.#oci !== undefined) this.#demand.attachSwarm(source)
  }

  figures(): MirrorFigures {
    return { onDemand: this.#demand.ofHub?.figures(), swarmDemand: this.#demand.ofSwarm?.figures() }
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
  readonly onDemand: OnDemandFigures | undefined
  readonly swarmDemand: SwarmDemandFigures | undefined
}

/** What brings in what clients ask for, as far as it is attached and configured. */
class Demand {
  ofHub: OnDemand | undefined
  ofSwarm: SwarmDemand | undefined
  readonly #context: Omit<MirrorsDeps, 'config'>
  readonly #config: MirrorConfig['onDemand']
  /** Of both together. */
  readonly #day: DayBudget | undefined

  constructor(context: Omit<MirrorsDeps, 'config'>, { onDemand }: MirrorConfig) {
    this.#context = context
    this.#config = onDemand
    this.#day = onDemand && new DayBudget(onDemand.bytesPerDay, () => performance.now())
  }

  attach(upstream: Upstream): void {
    const config = this.#config
    if (config !== undefined && this.#day !== undefined)
      this.ofHub = new OnDemand({ ...this.#context, upstream, day: this.#day }, config)
  }

  attachSwarm(source: FillSource): void {
    this.ofSwarm = new SwarmDemand({ ...this.#context, source }, { config: this.#config, day: this.#day })
  }
}

async function named<T>(key: string, text: string, listening: Promise<T>): Promise<T> {
  try {
    return await listening
  } catch (cause) {
    throw new StartError(`${key} = "${text}" cannot be listened on: ${(cause as Error).message}`, { cause })
  }
}
