import type { Job, Status, SwarmStatus } from '@svc/client/protocol'
import type { CatalogPart, DaemonContext, SwarmPart } from '../parts.ts'

/** Counting a large store is a walk over its folders; the figure may be this old. */
const COUNT_AGE_MS = 10_000

interface Count {
  readonly blobs: number
  readonly bytes: number
}

const counts = new WeakMap<object, { readonly at: number; readonly count: Promise<Count> }>()

/** GET /v1/status. */
export async function statusOf(
  context: DaemonContext,
  parts: { readonly swarm: SwarmPart | undefined; readonly catalog: CatalogPart | undefined },
  startedAt: string
): Promise<Status> {
  const { store, jobs, config, version } = context
  const states: Record<Job['state'], number> = { waiting: 0, fetching: 0, done: 0, failed: 0 }
  for (const { state } of jobs.list()) states[state]++
  const freeBytes = await store.freeBytes().catch(() => undefined)
  return {
    pid: process.pid,
    version,
    root: store.root,
    startedAt,
    jobs: states,
    store: { ...(await countOf(context)), ...(freeBytes !== undefined && { freeBytes }) },
    swarm: parts.swarm?.status() ?? swarmOff(config.swarm.seed),
    ...(parts.catalog && { catalog: parts.catalog.status() })
  }
}

function countOf({ store }: DaemonContext): Promise<Count> {
  const known = counts.get(store)
  if (known !== undefined && performance.now() - known.at < COUNT_AGE_MS) return known.count
  const count = (async () => {
    let blobs = 0
    let bytes = 0
    for await (const { sizeBytes } of store.list()) {
      blobs++
      bytes += sizeBytes
    }
    return { blobs, bytes }
  })()
  counts.set(store, { at: performance.now(), count })
  count.catch(() => counts.delete(store))
  return count
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
