import { configuredAddress, formatHostPort } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { HubMirror, type MirrorOptions } from './hub-mirror.ts'
import { OciMirror, type OciMirrorDeps } from './oci-mirror.ts'
import { OnDemand, type OnDemandFigures } from './on-demand.ts'
import { Published, type PublishedDeps } from './published.ts'
import type { Upstream, UpstreamJobs } from './upstream.ts'

/** The daemon's objects that the mirrors use. */
export interface MirrorsDeps extends Omit<OciMirrorDeps, 'published'>, PublishedDeps {
  readonly config: { readonly mirror: MirrorConfig }
  readonly jobs: UpstreamJobs
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
  readonly #attach: (upstream: Upstream) => OnDemand | undefined
  #onDemand: OnDemand | undefined

  private constructor(
    hub: HubMirror | undefined,
    oci: OciMirror | undefined,
    attach: (upstream: Upstream) => OnDemand | undefined
  ) {
    this.#hub = hub
    this.#oci = oci
    this.#attach = attach
  }

  /** @throws ConfigError, StartError naming the key */
  static async listen({ config, ...context }: MirrorsDeps): Promise<Mirrors> {
    const { log } = context
    const { hubAddr, ociAddr, token, names, onDemand: demand } = config.mirror
    let onDemand: OnDemand | undefined
    const deps = { ...context, published: new Published(context), onDemand: () => onDemand }
    const attach = (upstream: Upstream): OnDemand | undefined =>
      (onDemand = demand === undefined ? undefined : new OnDemand({ ...context, upstream }, demand))
    const at = (text: string, key: string): MirrorOptions => ({
      address: configuredAddress(text, key),
      token,
      names,
      log
    })
    const [hubKey, ociKey] = ['[mirror] hub_addr', '[mirror] oci_addr']
    const hub =
      hubAddr === undefined ? undefined : await named(hubKey, hubAddr, HubMirror.listen(deps, at(hubAddr, hubKey)))
    try {
      const oci =
        ociAddr === undefined ? undefined : await named(ociKey, ociAddr, OciMirror.listen(deps, at(ociAddr, ociKey)))
      return new Mirrors(hub, oci, attach)
    } catch (error) {
      await hub?.close()
      throw error
    }
  }

  /** Lets the hub's mirror bring in what is not here, where the configuration says so. */
  attach(upstream: Upstream): void {
    this.#onDemand = this.#attach(upstream)
  }

  /** undefined: nothing is brought in on demand. */
  figures(): OnDemandFigures | undefined {
    return this.#onDemand?.figures()
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

async function named<T>(key: string, text: string, listening: Promise<T>): Promise<T> {
  try {
    return await listening
  } catch (cause) {
    throw new StartError(`${key} = "${text}" cannot be listened on: ${(cause as Error).message}`, { cause })
  }
}
