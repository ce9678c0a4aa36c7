import { join } from 'node:path'
import { CasError, openDiskStore } from '@svc/cas'
import { jobEnvelope, type LiveParts } from '../api/handlers.ts'
import type { DaemonConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { Importer } from '../import/importer.ts'
import { Lanes } from '../jobs/lanes.ts'
import { JobRegistry } from '../jobs/registry.ts'
import { Artifacts } from '../library/artifacts.ts'
import { Documents } from '../library/documents.ts'
import { LeafLayers } from '../library/leaf-layers.ts'
import { ReplacedFiles } from '../library/replace.ts'
import { Repos } from '../library/repos.ts'
import { Resolver } from '../library/resolve.ts'
import type { Log } from '../log.ts'
import { Offload } from '../offload/pool.ts'
import type { DaemonContext, PartFactories } from '../parts.ts'

/** Opens store and state under the root's lock and wires the daemon's inner parts. @throws StartError */
export async function composeContext(config: DaemonConfig, log: Log, version: string): Promise<DaemonContext> {
  const { root } = config.store
  let store
  try {
    store = await openDiskStore({ root })
  } catch (cause) {
    if (!(cause instanceof CasError)) throw cause
    throw new StartError(`the store ${root} cannot be opened: ${cause.message}`, { cause })
  }
  const offload = new Offload()
  try {
    const files = await ReplacedFiles.open(join(store.root, 'state'))
    const repos = new Repos(store.root, files)
    const artifacts = new Artifacts(store.root, files)
    const documents = new Documents(store)
    const resolver = new Resolver(repos, documents)
    const leafLayers = await LeafLayers.open(store, offload)
    const jobs = new JobRegistry(new Lanes(), (error, job) => jobEnvelope(error, { log }, job))
    const importer = new Importer({ store, documents, repos, artifacts, jobs, leafLayers, offload, log })
    return { config, log, version, store, repos, artifacts, documents, resolver, jobs, importer, leafLayers, offload }
  } catch (cause) {
    await store.close()
    if (cause instanceof StartError) throw cause
    throw new StartError(`the state below ${root} cannot be opened: ${(cause as Error).message}`, { cause })
  }
}

/** Makes the parts that reach beyond this machine. */
export async function composeParts(context: DaemonContext, factories: PartFactories): Promise<LiveParts> {
  const { enabled } = context.config.swarm
  const swarm = enabled ? await factories.swarm?.(context) : undefined
  if (swarm !== undefined) context.importer.onImported((digest) => swarm.imported(digest))
  const hub = await factories.hub?.(context)
  const catalog = enabled ? await factories.catalog?.(context) : undefined
  return { swarm, hub, catalog }
}

/** Lets go of everything, the root's lock last. */
export async function decompose(context: DaemonContext, parts: LiveParts | undefined): Promise<void> {
  const { log, offload, store } = context
  for (const [name, part] of Object.entries(parts ?? {}) as [string, { close(): Promise<void> } | undefined][]) {
    await part?.close().catch((error: unknown) => log.error({ err: error, part: name }, 'a part did not close cleanly'))
  }
  await offload.close()
  await store.close()
}
