import type { CatalogParts } from '../sources/catalog/part.ts'
import { Catalog } from '../sources/catalog/part.ts'
import { createHubPart, type HubPart, type HubParts } from '../sources/hub/part.ts'
import { SwarmClient, type SwarmClientParts } from '../swarm/part.ts'

/** The swarm client, as the daemon sees it. */
export type SwarmPart = Pick<SwarmClient, keyof SwarmClient>
/** The catalog, as the daemon sees it. */
export type CatalogPart = Pick<Catalog, keyof Catalog>

/** How the parts that reach beyond this machine are made. An absent one answers its documented refusal. */
export interface PartFactories {
  readonly swarm?: (parts: SwarmClientParts) => SwarmPart | Promise<SwarmPart>
  readonly hub?: (parts: HubParts) => HubPart | Promise<HubPart>
  readonly catalog?: (parts: CatalogParts) => CatalogPart | Promise<CatalogPart>
}

/** The parts that this build has. */
export const BUILTIN_PARTS: PartFactories = {
  swarm: (parts) => SwarmClient.open(parts),
  hub: (parts) => createHubPart(parts),
  catalog: (parts) => new Catalog(parts)
}
