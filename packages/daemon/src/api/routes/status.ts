import type { DiskBlobStore } from '@svc/cas'
import {
  type CatalogStatus,
  type DamagedRecord,
  type Job,
  ROUTES,
  type Status,
  type SwarmStatus
} from '@svc/client/protocol'
import { errnoName } from '@svc/internal-files'
import type { SharedDownloadLimit } from '@svc/internal-net'
import {
  type Leftovers,
  type Library,
  quarantined,
  type StateParts,
  unfinished,
  unreadableRecords
} from '@svc/library/parts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { recently } from '../../recently.ts'
import { defineRoute } from '../route.ts'

/** Counting a large store walks its folders; while no job has ended since, the figures may be this old. */
const COUNT_AGE_MS = 10_000

export interface StatusDeps extends Pick<Library, 'clock' | 'store'> {
  readonly version: string
  readonly startedAt: string
  /** `[swarm] seed` is shown even if the swarm client is off. */
  readonly config: {
    readonly swarm: { readonly seed: boolean }
    readonly store: { readonly maxBytes: number | undefined; readonly minFreeBytes: number }
  }
  readonly state: StateParts
  readonly jobs: JobRegistry
  readonly swarm: { status(): Promise<Omit<SwarmStatus, 'enabled'>> } | undefined
  readonly catalog: { status(): CatalogStatus } | undefined
  readonly downloads: SharedDownloadLimit
  readonly local: { readonly seedLocal: boolean | undefined }
}

export const statusRoute = (deps: StatusDeps) => defineRoute(ROUTES.status, statusOf(deps))

/** The response of `GET /v1/status`, also used for metrics. */
export function statusOf(deps: StatusDeps): () => Promise<Status> {
  const { clock, version, startedAt, config, store, state, jobs, swarm, catalog, downloads, local } = deps
  const recent = recently(clock, COUNT_AGE_MS, async () => ({
    count: await countOf(store),
    damaged: await damagedIn(state)
  }))
  return async () => {
    const states: Record<Job['state'], number> = { waiting: 0, fetching: 0, done: 0, failed: 0 }
    for (const { state } of jobs.list()) states[state]++
    const { count, damaged } = await recent(states.done + states.failed)
    const { maxBytes, minFreeBytes } = config.store
    const freeBytes = await store.freeBytes().catch(() => undefined)
    return {
      pid: process.pid,
      version,
      root: store.root,
      startedAt,
      jobs: states,
      store: {
        id: store.id,
        ...count,
        ...(freeBytes !== undefined && { freeBytes }),
        ...(maxBytes !== undefined && { maxBytes }),
        ...(minFreeBytes > 0 && { minFreeBytes }),
        ...present('unfinished', unfinished(store)),
        ...present('quarantined', await quarantined(store))
      },
      swarm: swarm === undefined ? swarmOff(config.swarm.seed) : { enabled: true, ...(await swarm.status()) },
      ...(damaged.length > 0 && { damaged }),
      ...(catalog && { catalog: catalog.status() }),
      ...(downloads.limited && { downloadLimitBytesPerSecond: downloads.bytesPerSecond }),
      ...(local.seedLocal !== undefined && { seedLocal: local.seedLocal })
    }
  }
}

const present = <K extends string>(key: K, found: Leftovers): { readonly [P in K]?: Leftovers } =>
  found.files === 0 ? {} : ({ [key]: found } as { readonly [P in K]: Leftovers })

async function damagedIn(state: StateParts): Promise<DamagedRecord[]> {
  try {
    return (await unreadableRecords(state)).map(({ file, what }) => ({ file, what }))
  } catch (error) {
    return [{ file: 'state', what: `it cannot be read: ${errnoName(error) ?? 'for an unknown reason'}` }]
  }
}

async function countOf(store: DiskBlobStore): Promise<Pick<Status['store'], 'blobs' | 'bytes'>> {
  let blobs = 0
  let bytes = 0
  for await (const { sizeBytes } of store.list()) {
    blobs++
    bytes += sizeBytes
  }
  return { blobs, bytes }
}

const swarmOff = (seed: boolean): SwarmStatus => ({
  enabled: false,
  seed,
  seeding: 0,
  heldBack: [],
  torrents: [],
  peers: 0,
  downBytesPerSecond: 0,
  upBytesPerSecond: 0
})
