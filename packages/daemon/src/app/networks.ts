import type { SwarmClient } from '@svc/sharing/parts'
import { Catalog, type CatalogDeps } from '../sources/catalog/catalog.ts'
import { createHubImports, type HubDeps, type HubImports } from '../sources/hub/hub-imports.ts'
import { type ConfiguredSwarmDeps, openSwarm } from './open-swarm.ts'

/** What the daemon uses of the swarm client. */
export interface SwarmNetwork extends Pick<SwarmClient, keyof SwarmClient> {}

/** Creates the objects that contact other machines. Requests to an absent one get the refusal in docs/errors.md. */
export interface NetworkFactories {
  readonly swarm?: (deps: ConfiguredSwarmDeps) => SwarmNetwork | Promise<SwarmNetwork>
  readonly hub?: (deps: HubDeps) => HubImports | Promise<HubImports>
  readonly catalog?: (deps: CatalogDeps) => Catalog | Promise<Catalog>
}

/** The networks of this build. */
export const BUILTIN_NETWORKS: NetworkFactories = {
  swarm: (deps) => openSwarm(deps),
  hub: (deps) => createHubImports(deps),
  catalog: (deps) => new Catalog(deps)
}
