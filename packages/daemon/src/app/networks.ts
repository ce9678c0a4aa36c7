import type { SwarmClient } from '@svc/sharing/parts'
import { CatalogJobs, type CatalogJobsDeps } from '../jobs/catalog-jobs.ts'
import { HubJobs, type HubJobsDeps } from '../jobs/hub-jobs.ts'
import { type ConfiguredSwarmDeps, openSwarm } from './open-swarm.ts'

/** What the daemon uses of the swarm client. */
export interface SwarmNetwork extends Pick<SwarmClient, keyof SwarmClient> {}

/** Creates the objects that contact other machines. Requests to an absent one get the refusal in docs/errors.md. */
export interface NetworkFactories {
  readonly swarm?: (deps: ConfiguredSwarmDeps) => SwarmNetwork | Promise<SwarmNetwork>
  readonly hub?: (deps: HubJobsDeps) => HubJobs | Promise<HubJobs>
  readonly catalog?: (deps: CatalogJobsDeps) => CatalogJobs | Promise<CatalogJobs>
}

/** The networks of this build. */
export const BUILTIN_NETWORKS: NetworkFactories = {
  swarm: (deps) => openSwarm(deps),
  hub: (deps) => new HubJobs(deps),
  catalog: (deps) => new CatalogJobs(deps)
}
