import { formatAddress } from '@svc/internal-net'
import { GuardedListener, type ListenerOptions, type Listeners } from '@svc/internal-server'
import type { Usage, WantedBlobs } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { listenAt } from '../config/address.ts'
import type { MirrorConfig } from '../config/config.ts'
import { s3KeysOf } from '../config/s3-keys.ts'
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

/** The configured mirrors; without an address a mirror is off (spec add.22). */
export class Mirrors {
  readonly #deps: MirrorsDeps
  readonly #demand: Demand
  readonly #ways: Ways = {}
  readonly #listening: Partial<Record<'hub' | 'oci' | 's3', GuardedListener>> = {}

  private constructor(deps: MirrorsDeps) {
    this.#deps = deps
    this.#demand = new Demand(deps, deps.config.mirror.onDemand)
  }

  /** @throws ConfigError, StartError naming the key */
  static async listen(deps: MirrorsDeps): Promise<Mirrors> {
    const mirrors = new Mirrors(deps)
    try {
      await mirrors.#listen()
      return mirrors
    } catch (error) {
      await mirrors.close()
      throw error
    }
  }

  async #listen(): Promise<void> {
    const { usage, config } = this.#deps
    const { hubAddr, ociAddr, s3Addr, token } = config.mirror
    const onUse = (manifest: Sha256Digest): void => usage.note(manifest)
    const served = new ServedModels(this.#deps)
    const common = { ...this.#deps, served, waiting: this.#demand, ways: this.#ways }
    const shared = { ...common, onUse: token === undefined ? undefined : onUse }
    const s3Keys = s3KeysOf(config.mirror)
    await this.#open('hub', hubAddr, () => new HubMirror(shared))
    await this.#open('oci', ociAddr, () => new OciMirror(shared))
    await this.#open('s3', s3Addr, () => new S3Mirror({ ...shared, s3Keys, onUse: s3Keys && onUse }))
  }

  async #open(kind: 'hub' | 'oci' | 's3', text: string | undefined, make: () => Mirror): Promise<void> {
    if (text === undefined) return
    const { store, log, listeners, config } = this.#deps
    const { token, names } = config.mirror
    const mirror = make()
    const answer: ListenerOptions['answer'] = (...asked) => mirror.route(...asked)
    const common = { token, names, log, requireStore: () => store.requireRoot(), answer }
    this.#listening[kind] = await listenAt(text, `[mirror] ${kind}_addr`, async (address) => {
      await mirror.open?.()
      return GuardedListener.listen({ ...common, address, traffic: listeners?.add(kind), ...mirror.port })
    })
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
