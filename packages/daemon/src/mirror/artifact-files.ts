import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientOf, type SendOptions, sendArriving, sendFile } from './send-file.ts'
import { lacksSpace, type ServedFile, type ServedModels } from './served-models.ts'
import type { Awaited, SwarmDemand } from './swarm-demand.ts'

const NONE: readonly ServedFile[] = []

/** What a mirror does for its clients. */
interface Habits {
  /** A client that asks for bytes may have them fetched, as far as the configuration allows. Otherwise it follows what others fetch. */
  readonly mayStart: boolean
}

/** The files of artifacts for mirrors that know them by their names, also while they come (spec add.36). */
export class ArtifactFiles {
  readonly #served: ServedModels
  readonly #demand: () => SwarmDemand | undefined
  readonly #habits: Habits

  constructor(served: ServedModels, demand: () => SwarmDemand | undefined, habits: Habits) {
    this.#served = served
    this.#demand = demand
    this.#habits = habits
  }

  /** Undefined as long as nobody knows. What is not to be had, or cannot be laid out, has none. @throws if there is no room */
  async of(awaited: Awaited): Promise<readonly ServedFile[] | undefined> {
    const { manifest } = awaited
    const demand = this.#demand()
    const presence = this.#served.isKnown(manifest) ? undefined : await demand?.presence(manifest)
    const isComing = presence !== undefined && presence.missing.length > 0
    if (isComing && !presence.isDescribed) return undefined
    if (isComing && !this.#offers(demand!, awaited)) return NONE
    const files = isComing ? this.#served.lackingFiles(manifest) : this.#served.files(manifest)
    return files.catch((error: unknown) => {
      if (lacksSpace(error)) throw error
      return NONE
    })
  }

  /** Sends a file, as it comes if it is not here. @returns and throws as {@link sendFile} and {@link sendArriving} do */
  async send(
    request: IncomingMessage,
    response: ServerResponse,
    { file, ...awaited }: Awaited & { readonly file: ServedFile },
    { inParts, ...options }: SendOptions & { readonly inParts: boolean }
  ): Promise<boolean> {
    if (await sendFile(request, response, file, options)) return true
    const demand = this.#demand()
    if (!file.isBlob || demand === undefined || !this.#offers(demand, awaited)) return false
    const client = clientOf(request, response)
    const reading = { mayRead: options.mayGive, inParts }
    return sendArriving(request, response, file, (start) => demand.open(awaited, file, start, client, reading), options)
  }

  #offers(demand: SwarmDemand, awaited: Awaited): boolean {
    return this.#habits.mayStart ? demand.offers(awaited) : demand.isUnderWay(awaited.manifest)
  }
}
