import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Job, Status } from '@svc/client/protocol'
import type { Metric, Sample } from './exposition.ts'

/** Where the figures come from. */
export interface MetricsDeps {
  readonly status: () => Promise<Status>
  readonly jobs: { list(): readonly Job[] }
}

const RESOLUTION_MS = 10

/** Collects what the daemon is doing, for Prometheus (spec add.26). docs/metrics.md lists the same names. */
export class Metrics {
  readonly #deps: MetricsDeps
  readonly #loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  constructor(deps: MetricsDeps) {
    this.#deps = deps
    this.#loop.enable()
  }

  close(): void {
    this.#loop.disable()
  }

  async collect(): Promise<readonly Metric[]> {
    const status = await this.#deps.status()
    return [
      ...storeMetrics(status),
      ...this.#jobMetrics(status),
      ...swarmMetrics(status),
      ...this.#processMetrics(status)
    ]
  }

  #jobMetrics({ jobs }: Status): Metric[] {
    const open = new Map<string, number>()
    for (const { kind, state } of this.#deps.jobs.list())
      if (state === 'waiting' || state === 'fetching') {
        const key = `${kind} ${state}`
        open.set(key, (open.get(key) ?? 0) + 1)
      }
    const samples = [...open].map(([key, value]): Sample => {
      const [kind, state] = key.split(' ') as [string, string]
      return { labels: { kind, state }, value }
    })
    return [
      gauge('svc_jobs', 'Jobs that wait or run, by kind and state.', samples),
      gauge('svc_jobs_kept', 'Jobs that have ended and are still listed, by state.', [
        { labels: { state: 'done' }, value: jobs.done },
        { labels: { state: 'failed' }, value: jobs.failed }
      ])
    ]
  }

  #processMetrics({ version, startedAt }: Status): Metric[] {
    const { user, system } = process.cpuUsage()
    const quantiles = [50, 99].map(
      (percent): Sample => ({
        labels: { quantile: `${percent / 100}` },
        value: Math.max(0, this.#loop.percentile(percent) / 1e9 - RESOLUTION_MS / 1e3)
      })
    )
    this.#loop.reset()
    return [
      gauge('svc_event_loop_delay_seconds', 'How late the event loop was since the last look, by quantile.', quantiles),
      gauge('svc_build_info', 'Always 1; the version is a label.', [{ labels: { version }, value: 1 }]),
      counter('process_cpu_seconds_total', 'Processor time, of all threads.', (user + system) / 1e6),
      gauge('process_resident_memory_bytes', 'Resident memory.', process.memoryUsage.rss()),
      gauge('process_start_time_seconds', 'When the daemon started, since the epoch.', Date.parse(startedAt) / 1e3)
    ]
  }
}

function storeMetrics({ store }: Status): Metric[] {
  return [
    gauge('svc_store_blobs', 'Blobs in the store.', store.blobs),
    gauge('svc_store_bytes', 'Bytes of all blobs.', store.bytes),
    gauge('svc_store_free_bytes', 'Free on the file system of the store.', store.freeBytes ?? [])
  ]
}

function swarmMetrics({ swarm, catalog }: Status): Metric[] {
  const byState = new Map<string, number>(
    [...swarm.torrents, ...(catalog?.torrents ?? [])].map(({ state }) => [state, 0])
  )
  for (const { state } of [...swarm.torrents, ...(catalog?.torrents ?? [])]) byState.set(state, byState.get(state)! + 1)
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
    gauge('svc_swarm_held_back', 'Artifacts that are complete and not announced.', swarm.heldBack.length),
    gauge('svc_swarm_peers', 'Connected peers, by protocol version.', both(swarm.peers, catalog?.peers)),
    gauge('svc_swarm_receive_bytes_per_second', 'Bytes that peers send us, smoothed.', swarm.downBytesPerSecond),
    gauge(
      'svc_swarm_transmit_bytes_per_second',
      'Bytes that peers get, smoothed, by protocol version.',
      both(swarm.upBytesPerSecond, catalog?.upBytesPerSecond)
    )
  ]
}

const samplesOf = (value: number | readonly Sample[]): readonly Sample[] =>
  typeof value === 'number' ? [{ value }] : value
const gauge = (name: string, help: string, value: number | readonly Sample[]): Metric => ({
  name,
  type: 'gauge',
  help,
  samples: samplesOf(value)
})
const counter = (name: string, help: string, value: number): Metric => ({
  name,
  type: 'counter',
  help,
  samples: samplesOf(value)
})
