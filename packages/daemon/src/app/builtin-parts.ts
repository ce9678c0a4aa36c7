import type { PartFactories } from '../parts.ts'
import { Catalog } from '../sources/catalog/part.ts'
import { createHubPart } from '../sources/hub/part.ts'
import { SwarmClient } from '../swarm/part.ts'

/** The parts that this build has. Each is registered here with one line. */
export const BUILTIN_PARTS: PartFactories = {
  swarm: (context) => SwarmClient.open(context),
  hub: (context) => createHubPart(context),
  catalog: (context) => new Catalog(context)
}
