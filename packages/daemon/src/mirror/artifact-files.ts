import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DiskBlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'
import { BufferPool } from '../http/buffer-pool.ts'
import type { Door } from '../library/provenance.ts'
import { clientOf, type SendOptions, sendArriving, sendFile } from './send-file.ts'
import { lacksSpace, type ServedFile, type ServedModels } from './served-models.ts'
import type { Awaited, SwarmDemand } from './swarm-demand.ts'

const CHUNK_BYTES = 256 << 10
const NONE: readonly ServedFile[] = []

export interface ArtifactFilesDeps {
  readonly store: DiskBlobStore
  readonly served: ServedModels
  readonly door: Door
  /** Absent: of artifacts that are not complete nothing is shown. */
  readonly demand: (() => SwarmDemand | undefined) | undefined
  /** A client that asks for bytes may have them fetched, as far as the configuration allows. Otherwise it follows what others fetch. */
  readonly mayStart: boolean
  /** Told of reads by clients whom the owner gave a token or a key: these count as use. */
  readonly onUse?: ((manifest: Sha256Digest) => void) | undefined
}

/** The files of artifacts for mirrors that know them by their names, also while they come (spec add.36). */
export class ArtifactFiles {
  readonly pool = new BufferPool(CHUNK_BYTES)
  readonly #deps: ArtifactFilesDeps

  constructor(deps: ArtifactFilesDeps) {
    this.#deps = deps
  }

  /** Undefined as long as nobody knows. What is not to be had, or cannot be laid out, has none. @throws if there is no room */
  async of(awaited: Awaited): Promise<readonly ServedFile[] | undefined> {
    const { manifest } = awaited
    const { served } = this.#deps
    const demand = this.#deps.demand?.()
    const presence = served.isKnown(manifest) ? undefined : await demand?.presence(manifest)
    const isComing = presence !== undefined && presence.missing.length > 0
    if (isComing && !presence.isDescribed) return undefined
    if (isComing && !this.#offers(demand!, awaited)) return NONE
    const files = isComing ? served.lackingFiles(manifest) : served.files(manifest)
    return files.catch((error: unknown) => {
      if (lacksSpace(error)) throw error
      return NONE
    })
  }

  /**
   * Sends a file, as it comes if it is not here, until it is withheld. @returns and throws as {@link sendFile} and
   * {@link sendArriving} do
   */
  send(
    request: IncomingMessage,
    response: ServerResponse,
    { file, ...awaited }: Awaited & { readonly file: ServedFile },
    { inParts, ...given }: Omit<SendOptions, 'store' | 'pool'> & { readonly inParts: boolean }
  ): Promise<boolean> {
    const { served, store, door } = this.#deps
    const options = { ...given, store, pool: this.pool }
    if (request.method === 'GET') this.#deps.onUse?.(awaited.manifest)
    return served.whileGiven(response, awaited.manifest, door, async () => {
      if (await sendFile(request, response, file, options)) return true
      const demand = this.#deps.demand?.()
      if (!file.isBlob || demand === undefined || !this.#offers(demand, awaited)) return false
      const client = clientOf(request, response)
      const reading = { mayRead: given.mayGive, inParts }
      const open = (start: number) => demand.open(awaited, file, start, client, reading)
      return sendArriving(request, response, file, open, options)
    })
  }

  #offers(demand: SwarmDemand, awaited: Awaited): boolean {
    return this.#deps.mayStart ? demand.offers(awaited) : demand.isUnderWay(awaited.manifest)
  }
}
