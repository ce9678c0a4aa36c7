import { type Job, JobKindSchema, type Status } from '@svc/client/protocol'
import { counter, EventLoop, gauge, type Metric, processMetrics, type Sample } from '@svc/internal-metrics'
import type { Listeners } from '@svc/internal-server'

/** The waiting clients of the mirrors, and the bytes fetched for them. */
interface DemandGauges {
  readonly jobs: number
  readonly jobsLimit: number
  readonly jobsTotal: number
  readonly dayBytes: number
  readonly dayBytesLimit: number
  readonly waiting: number
  readonly waitingLimit: number
}

/** An absent part is off. */
interface MirrorGauges {
  readonly demand: DemandGauges | undefined
  readonly lookupsTotal: number | undefined
}

export interface MetricsDeps {
  readonly status: () => Promise<Status>
  readonly jobs: {
    list(): readonly Job[]
    readonly ended: Readonly<Record<'done' | 'failed', number>>
    readonly openLimit: number
  }
  readonly listeners: Pick<Listeners, 'figures'>
  readonly mirrors?: { figures(): MirrorGauges } | undefined
  readonly swarm?: { totals(): { readonly downloadedBytes: number; readonly uploadedBytes: number } } | undefined
}

const KINDS = JobKindSchema.enum

/** Collects the daemon's metrics for Prometheus (spec add.26). docs/metrics.md lists the same names. */
export class Metrics {
  readonly #deps: MetricsDeps
  readonly #loop = new EventLoop()

  constructor(deps: MetricsDeps) {
    this.#deps = deps
  }

  close(): void {
    this.#loop.close()
  }

  async collect(): Promise<readonly Metric[]> {
    const status = await this.#deps.status()
    return [
      ...storeMetrics(status),
      ...this.#jobMetrics(),
      ...swarmMetrics(status),
      ...this.#swarmTotals(),
      ...this.#listenerMetrics(),
      ...this.#mirrorMetrics(),
      ...this.#loop.metrics(),
      gauge('svc_build_info', 'Always 1; the version is a label.', [{ labels: { version: status.version }, value: 1 }]),
      ...(await processMetrics(status.startedAt))
    ]
  }

  #jobMetrics(): Metric[] {
    const { jobs } = this.#deps
    // include zeros, so that queries find every series
    const open = new Map(KINDS.flatMap((kind) => [`${kind} waiting`, `${kind} fetching`]).map((key) => [key, 0]))
    const kept = { done: 0, failed: 0 }
    for (const { kind, state } of jobs.list())
      if (state === 'waiting' || state === 'fetching') {
        const key = `${kind} ${state}`
        open.set(key, (open.get(key) ?? 0) + 1)
      } else kept[state]++
    const samples = [...open].map(([key, value]): Sample => {
      const [kind, state] = key.split(' ') as [string, string]
      return { labels: { kind, state }, value }
    })
    const byState = ({ done, failed }: Readonly<Record<'done' | 'failed', number>>): Sample[] => [
      { labels: { state: 'done' }, value: done },
      { labels: { state: 'failed' }, value: failed }
    ]
    return [
      gauge('svc_jobs', 'Waiting and running jobs, by kind and state.', samples),
      gauge('svc_jobs_limit', 'Limit of waiting and running jobs.', jobs.openLimit),
      gauge('svc_jobs_kept', 'Finished jobs that are still listed, by state.', byState(kept)),
      counter('svc_jobs_ended_total', 'Finished jobs, by state.', byState(jobs.ended))
    ]
  }

  #swarmTotals(): Metric[] {
    const totals = this.#deps.swarm?.totals()
    if (totals === undefined) return []
    const { downloadedBytes, uploadedBytes } = totals
    return [
      counter(
        'svc_swarm_received_bytes_total',
        'Model data received from peers and webseeds (protocol v2).',
        downloadedBytes
      ),
      counter('svc_swarm_transmitted_bytes_total', 'Model data sent to peers (protocol v2).', uploadedBytes)
    ]
  }

  #mirrorMetrics(): Metric[] {
    const { demand, lookupsTotal } = this.#deps.mirrors?.figures() ?? {}
    const lookups = 'Repositories looked up at the hub on demand.'
    return [
      ...(demand === undefined ? [] : demandMetrics(demand)),
      ...(lookupsTotal === undefined ? [] : [counter('svc_mirror_lookups_total', lookups, lookupsTotal)])
    ]
  }

  #listenerMetrics(): Metric[] {
    const all = this.#deps.listeners.figures()
    const each = (of: (figures: (typeof all)[number]) => number): Sample[] =>
      all.map((figures) => ({ labels: { listener: figures.listener }, value: of(figures) }))
    return [
      counter(
        'svc_http_responses_total',
        'Responses, by listener and status class.',
        all.flatMap(({ listener, answers }) =>
          [...answers].map(([digit, value]): Sample => ({ labels: { listener, code: `${digit}xx` }, value }))
        )
      ),
      counter(
        'svc_http_transmitted_bytes_total',
        'Bytes sent, by listener.',
        each(({ sentBytes }) => sentBytes)
      ),
      gauge(
        'svc_http_connections',
        'Open connections, by listener.',
        each(({ connections }) => connections)
      ),
      gauge(
        'svc_http_connections_limit',
        'Limit of open connections, by listener.',
        each(({ maxConnections }) => maxConnections)
      ),
      counter(
        'svc_http_connections_refused_total',
        'Connections refused, or closed for those of another host, because of the limit.',
        each(({ refused }) => refused)
      )
    ]
  }
}

function storeMetrics({ store }: Status): Metric[] {
  return [
    gauge('svc_store_blobs', 'Blobs in the store.', store.blobs),
    gauge('svc_store_bytes', 'Bytes of all blobs.', store.bytes),
    gauge('svc_store_free_bytes', 'Free space on the file system of the store.', store.freeBytes ?? [])
  ]
}

function swarmMetrics({ swarm, catalog }: Status): Metric[] {
  const byState = new Map<string, number>(['verifying', 'fetching', 'seeding'].map((state) => [state, 0]))
  for (const { state } of [...swarm.torrents, ...(catalog?.torrents ?? [])])
    byState.set(state, (byState.get(state) ?? 0) + 1)
  const both = (v2: number, v1: number | undefined): Sample[] => [
    { labels: { protocol: 'v2' }, value: v2 },
    ...(v1 === undefined ? [] : [{ labels: { protocol: 'v1' }, value: v1 }])
  ]
  return [
    gauge('svc_swarm_enabled', '1 while the swarm client runs.', swarm.enabled ? 1 : 0),
    gauge(
      'svc_swarm_torrents',
      'Torrents, by state.',
      [...byState].map(([state, value]) => ({ labels: { state }, value }))
    ),
    gauge('svc_swarm_held_back', 'Complete artifacts that are not announced.', swarm.heldBack.length),
    gauge('svc_swarm_peers', 'Connected peers, by protocol version.', both(swarm.peers, catalog?.peers)),
    gauge('svc_swarm_receive_bytes_per_second', 'Download rate from peers, smoothed.', swarm.downBytesPerSecond),
    gauge(
      'svc_swarm_transmit_bytes_per_second',
      'Upload rate to peers, smoothed, by protocol version.',
      both(swarm.upBytesPerSecond, catalog?.upBytesPerSecond)
    )
  ]
}

const demandMetrics = (figures: DemandGauges): Metric[] => [
  gauge('svc_mirror_imports', 'Running jobs that clients of the mirrors started.', figures.jobs),
  gauge('svc_mirror_imports_limit', 'Limit of these jobs.', figures.jobsLimit),
  counter('svc_mirror_imports_total', 'Jobs that clients of the mirrors started.', figures.jobsTotal),
  gauge('svc_mirror_day_bytes', 'Bytes fetched on demand, or due, in the last 24 hours.', figures.dayBytes),
  gauge('svc_mirror_day_bytes_limit', 'Limit of these bytes.', figures.dayBytesLimit),
  gauge(
    'svc_mirror_waiting',
    'Clients of the mirrors that wait for, or read, a file that is still arriving.',
    figures.waiting
  ),
  gauge('svc_mirror_waiting_limit', 'Limit of these clients.', figures.waitingLimit)
]
