import { formatAddress } from '@svc/internal-net'
import type { Sha256Digest } from '@svc/ref'
import { listenAt } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { s3KeysOf } from '../config/s3-keys.ts'
import { GuardedListener, type ListenerOptions } from '../http/guarded-listener.ts'
import type { Listeners } from '../http/traffic.ts'
import type { Usage } from '../library/usage.ts'
import type { WantedBlobs } from '../library/wanted-blobs.ts'
import type { Ways } from './artifact-files.ts'
import { Demand } from './demand.ts'
import { HubDemand } from './hub-demand.ts'
import { HubMirror } from './hub-mirror.ts'
import { OciMirror, type OciMirrorDeps } from './oci-mirror.ts'
import { S3Mirror } from './s3-mirror.ts'
import { ServedModels, type ServedModelsDeps } from './served-models.ts'
import { type FillSource, SwarmDemand, type SwarmDemandDeps } from './swarm-demand.ts'
import type { Upstream } from './upstream.ts'

export interface MirrorsDeps extends Omit<OciMirrorDeps, 'served' | 'ways' | 'waiting'>, ServedModelsDeps {
  readonly config: { readonly mirror: MirrorConfig }
  readonly jobs: SwarmDemandDeps['jobs']
  readonly wanted: WantedBlobs
  readonly usage: Pick<Usage, 'note'>
  /** Counts the listeners' traffic. */
  readonly listeners?: Listeners
}

/** The addresses of the mirrors, as `host:port`. */
export interface MirrorAddresses {
  readonly hubMirrorAddress?: string
  readonly ociMirrorAddress?: string
  readonly s3MirrorAddress?: string
}

interface Mirror {
  /** How its listener differs from others. */
  readonly port: Pick<ListenerOptions, 'name'> & Partial<ListenerOptions>
  open?(): Promise<void>
  route: ListenerOptions['answer']
}

type Listening = Partial<Record<'hub' | 'oci' | 's3', GuardedListener>>

/** The configured mirrors; without an address a mirror is off (spec add.22). */
export class Mirrors {
  readonly #listening: Listening
  readonly #deps: MirrorsDeps
  readonly #demand: Demand
  readonly #ways: Ways

  private constructor(listening: Listening, deps: MirrorsDeps, demand: Demand, ways: Ways) {
    this.#listening = listening
    this.#deps = deps
    this.#demand = demand
    this.#ways = ways
  }

  /** @throws ConfigError, StartError naming the key */
  static async listen(deps: MirrorsDeps): Promise<Mirrors> {
    const { hubAddr, ociAddr, s3Addr, token, names = [] } = deps.config.mirror
    const { store, log, listeners, usage } = deps
    const served = new ServedModels(deps)
    const waiting = new Demand(deps, deps.config.mirror.onDemand)
    const ways: Ways = {}
    const onUse = (manifest: Sha256Digest): void => usage.note(manifest)
    const shared = { ...deps, served, waiting, ways, onUse: token === undefined ? undefined : onUse }
    const s3Keys = s3KeysOf(deps.config.mirror)
    const listening: Listening = {}
    const open = async (kind: keyof Listening, text: string | undefined, make: () => Mirror): Promise<void> => {
      if (text === undefined) return
      const mirror = make()
      const answer: ListenerOptions['answer'] = (...asked) => mirror.route(...asked)
      const common = { token, names, log, requireStore: () => store.requireRoot(), answer }
      listening[kind] = await listenAt(text, `[mirror] ${kind}_addr`, async (address) => {
        await mirror.open?.()
        return GuardedListener.listen({ ...common, address, traffic: listeners?.add(kind), ...mirror.port })
      })
    }
    try {
      await open('hub', hubAddr, () => new HubMirror(shared))
      await open('oci', ociAddr, () => new OciMirror(shared))
      await open('s3', s3Addr, () => new S3Mirror({ ...shared, s3Keys, onUse: s3Keys && onUse }))
      return new Mirrors(listening, deps, waiting, ways)
    } catch (error) {
      for (const listener of Object.values(listening)) await listener.close()
      throw error
    }
  }

  /** Lets the hub's mirror fetch missing files, if the configuration allows it. */
  attach(upstream: Upstream): void {
    if (this.#demand.jobs !== undefined) this.#ways.hub = new HubDemand(this.#demand, upstream)
  }

  /** Lets the mirrors show models that are being fetched, and start fetches if the configuration allows it. */
  attachSwarm(source: FillSource): void {
    this.#ways.swarm = new SwarmDemand({ ...this.#deps, demand: this.#demand, source })
  }

  figures() {
    const { hub, swarm } = this.#ways
    return {
      demand: hub === undefined && swarm === undefined ? undefined : this.#demand.figures(),
      lookupsTotal: hub?.lookupsTotal
    }
  }

  addresses(): MirrorAddresses {
    const { hub, oci, s3 } = this.#listening
    return {
      ...(hub !== undefined && { hubMirrorAddress: formatAddress(hub.address) }),
      ...(oci !== undefined && { ociMirrorAddress: formatAddress(oci.address) }),
      ...(s3 !== undefined && { s3MirrorAddress: formatAddress(s3.address) })
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#listening).map((listener) => listener.close()))
  }
}
