import { type DiskBlobStore, type DiskStoreOptions, withLease } from '@svc/cas'
import type { Job } from '@svc/client/protocol'
import type { Clock } from '@svc/internal-clock'
import { holdOffOnNetworkFileSystem, loadFilePort } from '@svc/internal-files'
import { SharedDownloadLimit } from '@svc/internal-net'
import { Listeners } from '@svc/internal-server'
import {
  Copies,
  composeLibrary,
  DocumentReader,
  Evictions,
  Importer,
  type Library,
  LibraryError,
  type Log,
  Offload,
  Removals,
  Room,
  type RoomDeps,
  SourcesFiller,
  STRANGERS_HEAP_MIB,
  type StandingViews,
  TrustRules
} from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { advise } from '../advice.ts'
import { toWireError } from '../api/wire-error.ts'
import type { DaemonConfig } from '../config/config.ts'
import { ConfigError, StartError } from '../errors.ts'
import { AskedImports } from '../jobs/asked-imports.ts'
import { ImportJobs } from '../jobs/import-jobs.ts'
import { LocalImports } from '../jobs/local-imports.ts'
import { OciImports } from '../jobs/oci-imports.ts'
import { JobRegistry } from '../jobs/registry.ts'
import { SwarmJobs } from '../jobs/swarm-jobs.ts'
import type { JobErrors } from '../jobs/tracked-job.ts'
import { SharingChoices } from '../sharing-choices.ts'
import { standingFolders } from '../standing-folders.ts'
import { openStore } from '../store-opening.ts'
import { openMirrors } from './mirrors.ts'
import type { NetworkFactories, SwarmNetwork } from './networks.ts'

/**
 * Everything that works on the local store. Only `app` knows all of it: each object declares its dependencies as an
 * interface in its own folder, and this object satisfies all of them.
 */
export interface DaemonContext extends Library {
  readonly config: DaemonConfig
  readonly version: string
  readonly documentReader: DocumentReader
  readonly offload: Offload
  readonly strangersOffload: Offload
  readonly jobs: JobRegistry
  readonly asked: AskedImports
  readonly room: Room
  readonly importer: Importer
  readonly importJobs: ImportJobs
  readonly standing: StandingViews
  readonly listeners: Listeners
  /** Allows the daemon's reads on the event loop's thread again, if its store is on a network file system. */
  endHoldOff(): void
  /** Of all ways in together. */
  readonly downloads: SharedDownloadLimit
}

/** The import sources and the swarm client; a disabled one is absent. */
export type Services = Awaited<ReturnType<typeof composeServices>>

/** The parts of a store that tests replace. */
type StoreReplacements = Pick<DiskStoreOptions, 'filePort' | 'hashThreads'>

/** Opens store and state under the root's lock, and connects the objects that work on them. @throws StartError */
export async function composeContext(
  config: DaemonConfig,
  log: Log,
  version: string,
  clock: Clock,
  replaced: StoreReplacements = {}
): Promise<DaemonContext> {
  const { root } = config.store
  const trust = await openTrust(config.trust)
  const { filePort, hashThreads } = replaced
  const onForgotten = (problem: string): void => log.warn({ problem }, 'it is not remembered which store the root has')
  const parts = { clock, onForgotten, ...(filePort && { filePort }), ...(hashThreads !== undefined && { hashThreads }) }
  const store = await openStore(config.store, parts)
  if (store.isNew) log.info({ root: store.root, id: store.id }, 'found no store: created a new one')
  const offload = new Offload()
  const documentReader = new DocumentReader()
  const strangersOffload = new Offload({ oldMib: STRANGERS_HEAP_MIB })
  try {
    const downloads = new SharedDownloadLimit()
    downloads.bytesPerSecond = config.network.downloadLimitBytesPerSecond
    const library = {
      config,
      downloads,
      version,
      documentReader,
      offload,
      strangersOffload,
      ...(await composeLibrary({ store, trust, clock, log, version, offload, documentReader, filePort, advise }))
    }
    const jobs = jobRegistry(clock, log, store)
    const room = composeRoom({ ...library, limits: config.store }, jobs)
    const importer = new Importer({ ...library, room })
    const endHoldOff = await holdOffOnNetworkFileSystem(await loadFilePort(filePort), store.root)
    const importJobs = new ImportJobs(jobs, importer)
    const asked = new AskedImports(jobs, library.files, { root: store.root, log })
    await asked.recover()
    const standing = standingFolders(library, config)
    const work = { jobs, asked, room, importer, importJobs, endHoldOff, standing, listeners: new Listeners() }
    return { ...library, ...work }
  } catch (cause) {
    await store.close()
    if (cause instanceof StartError) throw cause
    throw new StartError(`the state below ${root} cannot be opened: ${(cause as Error).message}`, { cause })
  }
}

/** @throws ConfigError naming the rule and the file */
async function openTrust(rules: DaemonConfig['trust']): Promise<TrustRules> {
  try {
    return await TrustRules.open(rules)
  } catch (cause) {
    throw cause instanceof LibraryError ? new ConfigError(cause.message, { cause }) : cause
  }
}

const composeRoom = (deps: Omit<RoomDeps, 'inBackground'>, jobs: JobRegistry): Room =>
  new Room({
    ...deps,
    inBackground: (evict) => jobs.start({ kind: 'evict', ref: 'all' }, async (work) => ({ result: await evict(work) }))
  })

const jobRegistry = (clock: Clock, log: Log, store: DiskBlobStore): JobRegistry =>
  new JobRegistry(jobErrors(log), {
    clock,
    onDone: (job) => logImport(log, job),
    // a job's files stay until it ends; jobs that remove files keep none
    around: (kind, work) => (kind === 'gc' || kind === 'evict' ? work() : withLease(store, work))
  })

/** Creates the import sources and the swarm client, and connects them to removals and privacy changes. */
export async function composeServices(context: DaemonContext, factories: NetworkFactories) {
  const mirrors = await openMirrors(context)
  try {
    const networks = await composeNetworks(context, factories)
    if (networks.hub !== undefined) mirrors?.attach(networks.hub.upstream)
    const { swarm, swarmJobs } = networks
    if (swarm !== undefined)
      mirrors?.attachSwarm({
        fetchRest: (manifest) => swarmJobs!.fetchRest(manifest),
        reading: (...reading) => swarm.reading(...reading)
      })
    return { ...networks, mirrors }
  } catch (error) {
    await mirrors?.close()
    throw error
  }
}

async function composeNetworks(context: DaemonContext, factories: NetworkFactories) {
  const { enabled } = context.config.swarm
  const swarm: SwarmNetwork | undefined = enabled ? await factories.swarm?.(context) : undefined
  if (swarm !== undefined) context.importer.onImported((digest) => swarm.imported(digest))
  const hub = await factories.hub?.(context)
  const catalog = enabled ? await factories.catalog?.(context) : undefined
  const onUnneeded = async (digest: Sha256Digest): Promise<void> => {
    await swarm?.unneeded(digest)
    await catalog?.withhold(digest)
    await context.views.lent.end(digest)
  }
  const removals = new Removals({ ...context, running: context.jobs, onUnneeded })
  const filler = new SourcesFiller({ ...context, source: hub?.hub.copies, swarm: swarm?.filler })
  const witnesses = [hub?.hub.copies, ...(swarm?.copies ?? [])].filter((each) => each !== undefined)
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
  const { proofMs } = context.config.store
  const evictions = new Evictions({
    ...context,
    running: context.jobs,
    proofMs,
    copies,
    onUnneeded,
    onKept: onWithheld
  })
  context.room.open({ evictions, copies })
  const local = new LocalImports({ ...context, confirmPublic: hub?.hub.confirmPublic })
  const oci = new OciImports(context, () => local.seedLocal)
  const sharing = new SharingChoices({ ...context, swarm, catalog })
  const swarmJobs = swarm && new SwarmJobs({ ...context, swarm })
  return { local, swarm, swarmJobs, hub, catalog, oci, removals, filler, evictions, onWithheld, sharing }
}

/** Closes everything; the root's lock is released last. */
export async function closeAll(context: DaemonContext, services: Services | undefined): Promise<void> {
  const {
    log,
    offload,
    strangersOffload,
    documentReader,
    trust,
    store,
    usage,
    views,
    snapshots,
    readerLeases,
    room,
    standing,
    endHoldOff
  } = context
  room.close()
  for (const name of ['swarm', 'hub', 'catalog'] as const) {
    await services?.[name]?.close().catch((error: unknown) => {
      log.error({ err: error, network: name }, 'connections did not close cleanly')
    })
  }
  await services?.mirrors?.close()
  await standing.close()
  await snapshots.close()
  await views.close()
  await usage.close()
  readerLeases.close()
  await Promise.all([offload, strangersOffload, documentReader, trust].map((each) => each.close()))
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
