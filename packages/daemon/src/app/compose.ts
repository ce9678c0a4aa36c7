import { join } from 'node:path'
import { CasError, type DiskBlobStore, type DiskStoreOptions, openDiskStore, withLease } from '@svc/cas'
import type { Job } from '@svc/client/protocol'
import type { Clock } from '@svc/internal-clock'
import { holdOffOnNetworkFileSystem, loadFilePort } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { toWireError } from '../api/wire-error.ts'
import type { DaemonConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { Listeners } from '../http/traffic.ts'
import { Importer } from '../import/importer.ts'
import { Copies } from '../jobs/copies.ts'
import { Evictions } from '../jobs/evict.ts'
import { JobRegistry } from '../jobs/registry.ts'
import { Room } from '../jobs/room.ts'
import { SourcesFiller } from '../jobs/sources-filler.ts'
import type { JobErrors } from '../jobs/tracked-job.ts'
import { Arrivals } from '../library/arrivals.ts'
import { Artifacts } from '../library/artifacts.ts'
import { ComingModels } from '../library/coming.ts'
import { Documents } from '../library/documents.ts'
import { Holdings } from '../library/holdings.ts'
import { LeafLayers } from '../library/leaf-layers.ts'
import { Members } from '../library/members.ts'
import { endMove, requireComplete } from '../library/move-marker.ts'
import { Needed } from '../library/needed.ts'
import { NewerCommits } from '../library/newer-commits.ts'
import { Removals } from '../library/removal.ts'
import { ReplacedFiles, STATE_FOLDERS } from '../library/replace.ts'
import { Repos } from '../library/repos.ts'
import { Resolver } from '../library/resolve.ts'
import { SignedModels } from '../library/signed-models.ts'
import { Snapshots } from '../library/snapshots.ts'
import { Superseded } from '../library/superseded.ts'
import { TrustRules } from '../library/trust.ts'
import { Usage } from '../library/usage.ts'
import { Views } from '../library/views.ts'
import { WantedBlobs } from '../library/wanted-blobs.ts'
import type { Log } from '../log.ts'
import { Offload, STRANGERS_HEAP_MIB } from '../offload/pool.ts'
import { LocalImports } from '../sources/local/local-imports.ts'
import { OciImports } from '../sources/oci/oci-imports.ts'
import { SharingChoices } from '../swarm/sharing-choices.ts'
import type { NetworkFactories } from './networks.ts'

/**
 * Everything that works on the local store. Only `app` knows all of it: each object declares its dependencies as an
 * interface in its own folder, and this object satisfies all of them.
 */
export type DaemonContext = Awaited<ReturnType<typeof composeContext>>

/** The import sources and the swarm client; a disabled one is absent. */
export type Services = Awaited<ReturnType<typeof composeServices>>

/** The parts of a store that tests replace. */
type StoreReplacements = Pick<DiskStoreOptions, 'filePort' | 'hashThreads'>

/** @throws StartError */
async function openStore(
  { root, expect }: DaemonConfig['store'],
  clock: Clock,
  { filePort, hashThreads }: StoreReplacements
): Promise<DiskBlobStore> {
  try {
    return await openDiskStore({
      root,
      clock,
      expectedId: expect,
      folders: STATE_FOLDERS,
      ...(filePort && { filePort }),
      ...(hashThreads !== undefined && { hashThreads })
    })
  } catch (cause) {
    if (!(cause instanceof CasError)) throw cause
    const key = cause.code === 'E_OTHER_STORE' ? `[store] expect = "${expect}": ` : ''
    throw new StartError(`${key}the store ${root} cannot be opened: ${cause.message}`, { cause })
  }
}

/** Opens store and state under the root's lock, and connects the objects that work on them. @throws StartError */
export async function composeContext(
  config: DaemonConfig,
  log: Log,
  version: string,
  clock: Clock,
  replaced: StoreReplacements = {}
) {
  const { root } = config.store
  await requireComplete(root)
  const trust = await TrustRules.open(config.trust)
  const store = await openStore(config.store, clock, replaced)
  if (store.isNew) log.info({ root: store.root, id: store.id }, 'found no store: created a new one')
  const offload = new Offload()
  const strangersOffload = new Offload({ oldMib: STRANGERS_HEAP_MIB })
  try {
    await endMove(store.root)
    const port = await loadFilePort(replaced.filePort)
    const files = await ReplacedFiles.open(join(store.root, 'state'), port, () => store.requireRoot())
    const repos = new Repos(store.root, files)
    const artifacts = new Artifacts(store.root, files, clock)
    const documents = new Documents(store, port)
    const library = {
      clock,
      config,
      log,
      version,
      trust,
      signed: new SignedModels({ store, documents, trust, clock, log }),
      store,
      repos,
      artifacts,
      documents,
      offload,
      strangersOffload,
      resolver: new Resolver(repos, documents),
      leafLayers: await LeafLayers.open(store, offload, port),
      usage: await Usage.open(store, clock),
      newer: new NewerCommits(),
      superseded: new Superseded(),
      wanted: new WantedBlobs(),
      coming: new ComingModels()
    }
    const views = await Views.open({ ...library, files })
    const needed = new Needed({ ...library, views })
    const snapshots = new Snapshots({ ...library, files, needed })
    const members = new Members(library)
    const holdings = new Holdings({ ...library, arrivals: new Arrivals(store.root, files) })
    const jobs = jobRegistry(clock, log, store)
    const room = new Room({ ...library, needed, jobs })
    const importer = new Importer({ ...library, holdings, room, jobs })
    /** Allows the daemon's reads on the event loop's thread again, if its store is on a network file system. */
    const endHoldOff = await holdOffOnNetworkFileSystem(port, store.root)
    const work = { jobs, room, importer, endHoldOff, listeners: new Listeners() }
    return { ...library, views, needed, snapshots, members, holdings, ...work }
  } catch (cause) {
    await store.close()
    if (cause instanceof StartError) throw cause
    throw new StartError(`the state below ${root} cannot be opened: ${(cause as Error).message}`, { cause })
  }
}

const jobRegistry = (clock: Clock, log: Log, store: DiskBlobStore): JobRegistry =>
  new JobRegistry(jobErrors(log), {
    clock,
    onDone: (job) => logImport(log, job),
    // a job's files stay until it ends; jobs that remove files keep none
    around: (kind, work) => (kind === 'gc' || kind === 'evict' ? work() : withLease(store, work))
  })

/** Creates the import sources and the swarm client, and connects them to removals and privacy changes. */
export async function composeServices(context: DaemonContext, factories: NetworkFactories) {
  const { hubAddr, ociAddr, s3Addr } = context.config.mirror
  const isMirror = [hubAddr, ociAddr, s3Addr].some((address) => address !== undefined)
  const mirrors = isMirror ? await (await import('../mirror/mirrors.ts')).Mirrors.listen(context) : undefined
  try {
    const networks = await composeNetworks(context, factories)
    if (networks.hub !== undefined) mirrors?.attach(networks.hub.upstream)
    if (networks.swarm !== undefined) mirrors?.attachSwarm(networks.swarm)
    return { ...networks, mirrors }
  } catch (error) {
    await mirrors?.close()
    throw error
  }
}

async function composeNetworks(context: DaemonContext, factories: NetworkFactories) {
  const { enabled } = context.config.swarm
  const swarm = enabled ? await factories.swarm?.(context) : undefined
  if (swarm !== undefined) context.importer.onImported((digest) => swarm.imported(digest))
  const hub = await factories.hub?.(context)
  const catalog = enabled ? await factories.catalog?.(context) : undefined
  const onUnneeded = async (digest: Sha256Digest): Promise<void> => {
    await swarm?.unneeded(digest)
    await catalog?.withhold(digest)
    await context.views.lent.end(digest)
  }
  const removals = new Removals({ ...context, onUnneeded })
  const filler = new SourcesFiller({ ...context, source: hub?.copies, swarm: swarm?.filler })
  const witnesses = [hub?.copies, ...(swarm?.copies ?? [])].filter((each) => each !== undefined)
  const copies = new Copies({ ...context, witnesses })
  const { needed, superseded, log } = context
  superseded.listen((digest) => {
    const leaving = needed.isGiven(digest).then((isGiven) => (isGiven ? undefined : onUnneeded(digest)))
    leaving.catch((error: unknown) =>
      log.error({ err: error, manifest: digest }, 'a replaced artifact is still shared')
    )
  })
  const onWithheld = async (digest: Sha256Digest): Promise<void> => {
    await swarm?.withhold(digest)
    await catalog?.withhold(digest)
  }
  const evictions = new Evictions({ ...context, copies, onUnneeded, onKept: onWithheld })
  context.room.open({ evictions, copies })
  const local = new LocalImports({ ...context, confirmation: hub?.confirmation })
  const oci = new OciImports(context, () => local.seedLocal)
  const sharing = new SharingChoices({ ...context, swarm, catalog })
  return { local, swarm, hub, catalog, oci, removals, filler, evictions, onWithheld, sharing }
}

/** Closes everything; the root's lock is released last. */
export async function closeAll(context: DaemonContext, services: Services | undefined): Promise<void> {
  const { log, offload, strangersOffload, store, usage, views, snapshots, room, endHoldOff } = context
  room.close()
  for (const name of ['swarm', 'hub', 'catalog'] as const) {
    await services?.[name]?.close().catch((error: unknown) => {
      log.error({ err: error, network: name }, 'connections did not close cleanly')
    })
  }
  await services?.mirrors?.close()
  await snapshots.close()
  await views.close()
  await usage.close()
  await Promise.all([offload, strangersOffload].map((each) => each.close()))
  endHoldOff()
  await store.close()
}

/** Logs one line per finished import: what was imported, under which name, and how long it took. */
function logImport(log: Log, { id, kind, ref, as, result, manifest, bytesTotal, startedAt, finishedAt }: Job): void {
  if (kind?.startsWith('import-') !== true) return
  const tookMs =
    startedAt === undefined || finishedAt === undefined ? undefined : Date.parse(finishedAt) - Date.parse(startedAt)
  // the fields that people look for come first
  log.info({ as, quants: result?.quants, bytes: bytesTotal, tookMs, kind, ref, manifest, job: id }, 'imported')
}

/** Converts a job's error for its `error` field, and logs the details that this omits. */
const jobErrors =
  (log: Log): JobErrors =>
  (error, { id, kind }) => {
    const { envelope, hidden } = toWireError(error)
    if (hidden) log.error({ err: error, job: id, kind }, 'job failed')
    else log.info({ code: envelope.error.code, reason: envelope.error.message, job: id, kind }, 'job failed')
    return envelope.error
  }
