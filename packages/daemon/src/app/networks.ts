import { Catalog, type CatalogDeps } from '../sources/catalog/catalog.ts'
import { createHubImports, type HubDeps, type HubImports } from '../sources/hub/hub-imports.ts'
import { SwarmClient, type SwarmClientDeps } from '../swarm/swarm-client.ts'

/** The swarm client, as the daemon sees it. */
export type SwarmNetwork = Pick<SwarmClient, keyof SwarmClient>
/** The catalog, as the daemon sees it. */
export type CatalogNetwork = Pick<Catalog, keyof Catalog>

/** Make what reaches beyond this machine. Requests to one that is absent get the refusal that docs/errors.md has for it. */
export interface NetworkFactories {
  readonly swarm?: (deps: SwarmClientDeps) => SwarmNetwork | Promise<SwarmNetwork>
  readonly hub?: (deps: HubDeps) => HubImports | Promise<HubImports>
  readonly catalog?: (deps: CatalogDeps) => CatalogNetwork | Promise<CatalogNetwork>
}

/** The networks that this build reaches. */
export const BUILTIN_NETWORKS: NetworkFactories = {
  swarm: (deps) => SwarmClient.open(deps),
  hub: (deps) => createHubImports(deps),
  catalog: (deps) => new Catalog(deps)
}
