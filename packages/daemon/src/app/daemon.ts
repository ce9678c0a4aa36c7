import type { Server } from 'node:http'
import { resolve } from 'node:path'
import type { FilePortModule } from '@svc/cas'
import { defaultSocketPath, isDefaultSocket, runtimeFilePath, socketFolderProblem } from '@svc/client/protocol'
import { type Clock, systemClock, timestampOf } from '@svc/internal-clock'
import { formatAddress } from '@svc/internal-net'
import {
  checkSocket,
  claimSocket,
  type GuardedListener,
  KeptSocket,
  listenOnDescriptor,
  type ServerOptions,
  type SocketPlace,
  type SocketRefusal
} from '@svc/internal-server'
import { type Log, requireStore, StoreWatch, storeProblem } from '@svc/library/parts'
import { createApp } from '../api/app.ts'
import { ownRoutes } from '../api/own-routes.ts'
import { statusOf } from '../api/routes/status.ts'
import { apiRoutes } from '../api/routes.ts'
import { type DaemonConfig, mergeConfig } from '../config/config.ts'
import type { FileConfig } from '../config/keys.ts'
import { DaemonError, StartError } from '../errors.ts'
import { createLog } from '../log.ts'
import { closeAll, composeContext, composeServices, type DaemonContext, type Services } from './compose.ts'
import { Figures } from './figures.ts'
import { mirrorAddresses } from './mirrors.ts'
import { BUILTIN_NETWORKS, type NetworkFactories } from './networks.ts'
import { removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'
import { type StartNotice, tellStart } from './start-notice.ts'
import { VERSION } from './version.ts'

/** Options of a daemon. `config` or `root` is required; defaults are those of `svcd`. */
export interface DaemonOptions {
  /** The whole configuration; alternatively `root` and, if needed, the content of a configuration file. */
  readonly config?: DaemonConfig
  readonly root?: string
  readonly fileConfig?: FileConfig
  /** Where to listen: a path (its folder is created if absent), a descriptor, or the environment's default. */
  readonly socketPath?: string
  readonly socketDescriptor?: number
  readonly log?: Log
}

/** Further parts that tests replace. */
export interface InspectedOptions extends DaemonOptions {
  /** Makers of everything that contacts other machines; default: this build's. */
  readonly networks?: NetworkFactories
  readonly http?: ServerOptions
  /** Replaces the operating system's file functions for store, state and leaf layers: tests make operations fail. */
  readonly filePort?: FilePortModule
  /** Threads that hash; default: the store's. A test rarely needs several, and each costs it as much as its work. */
  readonly hashThreads?: number
  /** Default: the system's. */
  readonly clock?: Clock
}

/** A daemon that responds on its socket until it is closed. */
export interface RunningDaemon {
  readonly socketPath: string
  /**
   * Stops: jobs are aborted, running responses get a few seconds, then everything is closed; the lock is released last.
   * With `quick`, even in a second call, connections are closed at once.
   */
  close(options?: { readonly quick?: boolean }): Promise<void>
}

/** A daemon whose objects tests can reach. */
export interface InspectedDaemon extends RunningDaemon {
  readonly context: DaemonContext
}

/** Time for running responses during a stop. */
const DRAIN_MS = 3_000
/** Time for pollers to see the end of their jobs after these were aborted. */
const FAREWELL_MS = 500

/**
 * Starts a daemon in this process. It responds when this resolves.
 * @throws StartError with a message for the person who started it
 */
export async function startDaemon(options: DaemonOptions): Promise<RunningDaemon> {
  const { socketPath, close } = await startInspected(options)
  return { socketPath, close }
}

/** {@link startDaemon} for tests: the package does not export it. */
export async function startInspected(options: InspectedOptions): Promise<InspectedDaemon> {
  const log = options.log ?? createLog('silent')
  const given = options.config ?? mergeConfig(options.fileConfig ?? {}, { root: options.root }, {})
  // a copy, since parts of it change later
  const config = { ...given, swarm: { ...given.swarm } }
  const clock = options.clock ?? systemClock
  const place = socketPlace(options)
  if (options.socketDescriptor === undefined) await checkSocket(place)
  const context = await composeContext(config, log, VERSION, clock, options)
  let services: Services | undefined
  let notice: StartNotice | undefined
  let metrics: GuardedListener | undefined
  let figures: Figures | undefined
  try {
    const startedAt = timestampOf(clock)
    const { root, id: storeId } = context.store
    const own = { pid: process.pid, version: VERSION, root, storeId, startedAt }
    if (options.socketDescriptor === undefined) {
      const path = resolve(place.path)
      notice = tellStart(runtimeFilePath(path), { ...own, socket: path }, context, () => services?.swarm?.verifying)
    }
    services = await composeServices(context, options.networks ?? BUILTIN_NETWORKS)
    const life: Life = { phase: 'starting' }
    const { addr } = config.metrics
    const statusDeps = { ...context, ...services, state: context, startedAt }
    const { jobs, listeners, ports } = context
    figures = new Figures({ status: statusOf(statusDeps), jobs, listeners, ...services })
    const text = figures.text
    const problem = (): string | undefined => storeProblem(context.store)
    const isStopping = (): boolean => life.phase === 'stopping'
    if (addr !== undefined) {
      const { listenForMetrics } = await import('../metrics/metrics-listener.ts')
      const isReady = (): boolean => life.phase === 'running'
      const traffic = listeners.add('metrics')
      metrics = await listenForMetrics(addr, { text, problem, isReady, clock, log, ports, traffic })
    }
    const routes = apiRoutes(statusDeps)
    const server = createApp(routes, log, {
      clock,
      ...options.http,
      traffic: listeners.add('api'),
      more: ownRoutes({ figures: text, isStopping, problem }),
      refuse: ({ method = '', url = '' }) => {
        requireStore(context.store, url)
        const cancels = method === 'DELETE' && url.startsWith('/v1/jobs/')
        return isStopping() && !cancels && !['GET', 'HEAD'].includes(method)
          ? new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping; try again when it is back')
          : undefined
      }
    })
    await services.swarm?.start()
    await services.catalog?.start()

    const claimed =
      options.socketDescriptor === undefined
        ? await claimSocket(server, place)
        : await listenOnDescriptor(server, options.socketDescriptor, refusal)
    const kept = new KeptSocket(server, claimed, place, {
      clock,
      log,
      onRebound: () => void writeFacts()
    })
    const runtimePath = runtimeFilePath(claimed.path)
    const facts = {
      ...own,
      socket: claimed.path,
      state: 'running' as const,
      ...services.swarm?.addresses(),
      ...mirrorAddresses(services.mirrors),
      ...(metrics !== undefined && { metricsAddress: formatAddress(metrics.address) })
    }
    const writeFacts = (): Promise<void> =>
      writeRuntimeFile(runtimePath, facts).catch((error: unknown) =>
        log.warn({ err: error, path: runtimePath }, 'runtime.json cannot be written')
      )
    await notice?.end()
    await writeFacts()
    log.info(facts, 'listening')
    life.phase = 'running'
    services.hub?.checkDaily()
    void context.room.settle()
    context.standing.start()
    services.hub?.hub.confirmUnknown({ ...context, onConfirmed: services.onWithheld })
    const watch = new StoreWatch(context.store, log, clock)
    return running({ context, services, server, kept, runtimePath, life, metrics, figures, watch })
  } catch (error) {
    await notice?.withdraw()
    await metrics?.close()
    figures?.close()
    await closeAll(context, services)
    throw error
  }
}

interface Life {
  phase: 'starting' | 'running' | 'stopping'
}

interface Started {
  readonly context: DaemonContext
  readonly services: Services
  readonly server: Server
  readonly kept: KeptSocket
  readonly runtimePath: string
  readonly life: Life
  readonly metrics: GuardedListener | undefined
  readonly figures: Figures
  readonly watch: StoreWatch
}

function running(started: Started): InspectedDaemon {
  const { context, services, server, kept, runtimePath, life, metrics, figures, watch } = started
  const { clock, jobs, log } = context
  const hurry = new AbortController()
  let closed: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    life.phase = 'stopping'
    watch.close()
    const cut = jobs.openCount
    log.info({ jobs: cut }, 'stopping')
    await jobs.stop()
    if (cut > 0) await clock.sleep(FAREWELL_MS, hurry.signal).catch(() => undefined)
    await removeRuntimeFile(runtimePath)
    await kept.release()
    await drain(server, kept, hurry.signal, clock)
    await metrics?.close()
    figures.close()
    await closeAll(context, services)
    log.info({}, 'stopped')
  }
  return {
    socketPath: kept.path,
    context,
    close({ quick = false } = {}) {
      if (quick || closed !== undefined) hurry.abort()
      return (closed ??= stop())
    }
  }
}

/** Stops accepting connections, lets responses finish, then closes the remaining connections. */
function drain(server: Server, kept: KeptSocket, hurry: AbortSignal, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const cut = (): void => server.closeAllConnections()
    const timer = clock.after(hurry.aborted ? 0 : DRAIN_MS, cut)
    hurry.addEventListener('abort', cut, { once: true })
    server.close(() => {
      void kept.closed.then(() => {
        timer.cancel()
        hurry.removeEventListener('abort', cut)
        resolve()
      })
    })
    server.closeIdleConnections()
  })
}

const refusal: SocketRefusal = (message, options) => new StartError(message, options)

function socketPlace({ socketPath }: DaemonOptions): SocketPlace {
  const place = { setting: 'SVC_SOCKET', refusal }
  if (socketPath !== undefined) return { ...place, path: socketPath }
  const uid = process.geteuid?.()
  if (uid === undefined) throw new StartError('this system has no user ids; set SVC_SOCKET')
  const path = defaultSocketPath(process.env, uid)
  return { ...place, path, ...(isDefaultSocket(process.env) && { folderProblem: socketFolderProblem }) }
}
