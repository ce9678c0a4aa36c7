import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DiskBlobStore } from '@svc/cas'
import { formatAddress, type PeerAddress } from '@svc/internal-net'
import { GuardedListener, type ListenerOptions, type TrafficCounter } from '@svc/internal-server'
import type { KeptPorts, Usage, WantedBlobs } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import type { Ways } from './artifact-files.ts'
import { Demand, type OnDemand } from './demand.ts'
import { HubDemand } from './hub-demand.ts'
import { HubMirror } from './hub-mirror.ts'
import { MirrorError, type MirrorKind } from './mirror-error.ts'
import { OciMirror, type OciMirrorDeps } from './oci-mirror.ts'
import type { S3Keys } from './s3-auth.ts'
import { S3Mirror } from './s3-mirror.ts'
import { ServedModels, type ServedModelsDeps } from './served-models.ts'
import type { ServedStore } from './served-store.ts'
import { type FillSource, SwarmDemand } from './swarm-demand.ts'
import type { RunningFetches, Upstream } from './upstream.ts'

/** The mirrors, and who may use them. */
export interface MirrorsOptions {
  /** One without an address is off. */
  readonly at: Readonly<Partial<Record<MirrorKind, PeerAddress>>>
  /** Required by those of hub and registries. */
  readonly token?: string | undefined
  /** Required by the S3 mirror. Asked for each request, since keys are renewed. */
  readonly s3Keys?: (() => Promise<S3Keys>) | undefined
  /** Further names of this machine, in lower case, that clients may use with any port. */
  readonly names?: readonly string[] | undefined
  /** Absent: nothing is fetched on demand. */
  readonly onDemand?: OnDemand | undefined
  /** Counts the traffic of a listener. */
  readonly traffic?: ((kind: MirrorKind) => TrafficCounter) | undefined
}

export interface MirrorsDeps extends Omit<OciMirrorDeps, 'served' | 'ways' | 'waiting'>, ServedModelsDeps {
  readonly store: ServedStore & Pick<DiskBlobStore, 'requireRoot'>
  readonly jobs: RunningFetches
  readonly wanted: WantedBlobs
  readonly usage: Pick<Usage, 'note'>
  /** Absent: port 0 is any. */
  readonly ports?: KeptPorts
}

interface Mirror {
  /** How its listener differs from others. */
  readonly port: Pick<ListenerOptions, 'name'> & Partial<ListenerOptions>
  open?(): Promise<void>
  route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void>
}

/** The mirrors that have an address (spec add.22). */
export class Mirrors {
  readonly #deps: MirrorsDeps
  readonly #options: MirrorsOptions
  readonly #demand: Demand
  readonly #ways: Ways = {}
  readonly #listening: Partial<Record<MirrorKind, GuardedListener>> = {}

  private constructor(deps: MirrorsDeps, options: MirrorsOptions) {
    this.#deps = deps
    this.#options = options
    this.#demand = new Demand(deps, options.onDemand)
  }

  /** @throws MirrorError naming the mirror; the error of `s3Keys` */
  static async listen(deps: MirrorsDeps, options: MirrorsOptions): Promise<Mirrors> {
    const mirrors = new Mirrors(deps, options)
    try {
      await mirrors.#listen()
      return mirrors
    } catch (error) {
      await mirrors.close()
      throw error
    }
  }

  async #listen(): Promise<void> {
    const { usage } = this.#deps
    const { token, s3Keys } = this.#options
    const onUse = (manifest: Sha256Digest): void => usage.note(manifest)
    const served = new ServedModels(this.#deps)
    const common = { ...this.#deps, served, waiting: this.#demand, ways: this.#ways }
    const shared = { ...common, onUse: token === undefined ? undefined : onUse }
    await this.#open('hub', () => new HubMirror(shared))
    await this.#open('oci', () => new OciMirror(shared))
    await this.#open('s3', () => new S3Mirror({ ...shared, s3Keys, onUse: s3Keys && onUse }))
  }

  async #open(kind: MirrorKind, make: () => Mirror): Promise<void> {
    const { at, token, names = [], traffic } = this.#options
    const address = at[kind]
    if (address === undefined) return
    const { store, log, ports } = this.#deps
    const mirror = make()
    await mirror.open?.()
    const options = {
      token,
      names,
      log,
      requireStore: () => store.requireRoot(),
      answer: (...asked: Parameters<ListenerOptions['answer']>) => mirror.route(...asked),
      traffic: traffic?.(kind),
      ...mirror.port
    }
    const listen = (at: PeerAddress) => GuardedListener.listen({ ...options, address: at })
    const listening = ports?.listen(kind, address, listen, (listener) => listener.address.port) ?? listen(address)
    this.#listening[kind] = await listening.catch((cause: Error) => {
      throw new MirrorError('E_LISTEN', `${formatAddress(address)} cannot be used: ${cause.message}`, { kind }, cause)
    })
  }

  /** Lets the hub's mirror fetch missing files, if clients may have something fetched. */
  attach(upstream: Upstream): void {
    if (this.#demand.jobs !== undefined) this.#ways.hub = new HubDemand(this.#demand, upstream)
  }

  /** Lets the mirrors show models that are being fetched, and start fetches if clients may. */
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

  /** Where those listen that are on. */
  addresses(): Readonly<Partial<Record<MirrorKind, PeerAddress>>> {
    return Object.fromEntries(Object.entries(this.#listening).map(([kind, { address }]) => [kind, address]))
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#listening).map((listener) => listener.close()))
  }
}
