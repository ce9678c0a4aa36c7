import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { BufferPool } from '@svc/internal-server'
import type { ComingImport, Door } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import type { ArrivingOptions } from './arriving-blob.ts'
import type { Demand, WaitingClient } from './demand.ts'
import { followed } from './demand-jobs.ts'
import type { HubDemand } from './hub-demand.ts'
import { clientOf, type SendOptions, sendArriving, sendFile } from './send-file.ts'
import type { ServedFile } from './served-files.ts'
import { lacksSpace, type ServedModels } from './served-models.ts'
import type { ServedStore } from './served-store.ts'
import type { Awaited, SwarmDemand } from './swarm-demand.ts'
import type { RunningFetches } from './upstream.ts'

const CHUNK_BYTES = 256 << 10
const NONE: readonly ServedFile[] = []

/**
 * The ways to fetch for clients, once they are attached. Without a swarm, the only incomplete artifacts shown are those
 * of the owner's running imports.
 */
export interface Ways {
  hub?: HubDemand
  swarm?: SwarmDemand
}

export interface ArtifactFilesDeps {
  readonly store: ServedStore
  readonly served: ServedModels
  readonly door: Door
  readonly waiting: Demand
  readonly jobs: Pick<RunningFetches, 'over'>
  readonly ways: Ways
  /** Whether a request may start a fetch, if the configuration allows it. Otherwise it only follows running ones. */
  readonly mayStart: boolean
  /** Told of reads by clients whom the owner gave a token or a key: these count as use. */
  readonly onUse?: ((manifest: Sha256Digest) => void) | undefined
}

/** What a mirror needs to show the files of artifacts. */
export type FilesOf = Omit<ArtifactFilesDeps, 'door' | 'mayStart'>

/** The files of artifacts for one mirror, also while they arrive (spec add.36). */
export class ArtifactFiles {
  readonly pool = new BufferPool(CHUNK_BYTES)
  readonly #deps: ArtifactFilesDeps

  constructor(deps: ArtifactFilesDeps) {
    this.#deps = deps
  }

  /** Undefined while unknown; none if the artifact can be neither fetched nor laid out. @throws if there is no space */
  async of(awaited: Awaited): Promise<readonly ServedFile[] | undefined> {
    const { manifest } = awaited
    const { served } = this.#deps
    const demand = this.#deps.ways.swarm
    const presence = served.files.isKnown(awaited) ? undefined : await demand?.presence(manifest)
    const isComing = presence !== undefined && presence.missing.length > 0
    if (isComing && !presence.isDescribed) return undefined
    if (isComing && !this.#offers(demand!, awaited)) return NONE
    const files = isComing ? served.files.lacking(awaited) : served.files.of(awaited)
    return files.catch((error: unknown) => {
      if (lacksSpace(error)) throw error
      return NONE
    })
  }

  /**
   * Sends a file, as it arrives if it is not here, and stops if it becomes withheld. @returns and throws as
   * {@link sendFile} and {@link sendArriving} do
   */
  send(
    request: IncomingMessage,
    response: ServerResponse,
    { file, ...awaited }: Awaited & { readonly file: ServedFile },
    { inParts, ...given }: Omit<SendOptions, 'store' | 'pool'> & { readonly inParts: boolean }
  ): Promise<boolean> {
    const { served, store, door } = this.#deps
    const options = { ...given, store, pool: this.pool }
    const by = served.comingBy(awaited.manifest)
    if (request.method === 'GET' && by === undefined) this.#deps.onUse?.(awaited.manifest)
    return served.whileGiven(response, awaited.manifest, door, async () => {
      // a client of a pending model gets no bytes that came from another import
      const isHere = by === undefined || !file.isBlob || (await by.hasGiven(file.digest))
      if (isHere && (await sendFile(request, response, file, options))) return true
      const open = file.isBlob ? this.#arriving(awaited, file, by, { mayRead: given.mayGive, inParts }) : undefined
      if (open === undefined) return false
      return sendArriving(request, response, file, (start) => open(start, clientOf(request, response)), options)
    })
  }

  #arriving(
    awaited: Awaited,
    file: ServedFile,
    by: ComingImport | undefined,
    reading: Pick<ArrivingOptions, 'mayRead' | 'inParts'>
  ): ((start: number, client: WaitingClient) => Promise<BlobReader | undefined>) | undefined {
    const { waiting, jobs } = this.#deps
    if (by !== undefined) {
      const mayRead = async (): Promise<boolean> => (await by.hasGiven(file.digest)) && reading.mayRead()
      return (_, client) => waiting.open(file, followed(jobs, by.id), client, { ...reading, mayRead, waitMs: 0 })
    }
    const demand = this.#deps.ways.swarm
    if (demand === undefined || !this.#offers(demand, awaited)) return undefined
    return (start, client) => demand.open(awaited, file, start, client, reading)
  }

  /** Waits until it is known which files the owner's imports bring. @throws NotNowError */
  async described(client: WaitingClient, timeoutMs: number, isAsked: (by: ComingImport) => boolean): Promise<void> {
    const { served, waiting, door } = this.#deps
    for (const { models, described } of await served.coming(door, isAsked)) {
      if (models.length > 0) continue
      await waiting.whileWaiting(client, async (over) => {
        const left = new Promise<never>((_, reject) => over.addEventListener('abort', () => reject(over.reason)))
        over.throwIfAborted()
        await waiting.inTime(Promise.race([described.promise, left]), timeoutMs, 'the model is being fetched')
      })
    }
  }

  #offers(demand: SwarmDemand, awaited: Awaited): boolean {
    return this.#deps.mayStart ? demand.offers(awaited) : demand.isUnderWay(awaited.manifest)
  }
}
