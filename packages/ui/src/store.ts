import { batch, computed, type Signal, signal } from '@preact/signals'
import type { Inventory, Job, Status } from '@svc/client/protocol'
import { type BridgeClient, BridgeError, type Disk } from './bridge.ts'
import { nowMs } from './clock.ts'
import { type ModelRow, rowsOf } from './model-rows.ts'
import { TEXTS } from './texts.ts'

/** `away`: the daemon does not answer. `ended`: the bridge does not. `expired`: it no longer accepts this page. */
type Link = 'connecting' | 'up' | 'away' | 'ended' | 'expired'

/** The bridge's events: an EventSource, which reconnects by itself. */
export interface Events {
  onerror: ((event: Event) => unknown) | null
  addEventListener(name: string, listener: (event: Event) => void): void
}

/** A rate over time: the newest last. */
export type Samples = readonly number[]
const MAX_SAMPLES = 90

/** The progress of a job over time. */
export interface Course {
  readonly rates: Samples
  readonly seenMs: number
  /** Consecutive looks without a new byte. */
  readonly idleLooks: number
  readonly bytesDone: number
}

/** A message about what just happened; the next one replaces it. */
interface Notice {
  readonly text: string
  readonly isError: boolean
}

export interface Store {
  readonly bridge: BridgeClient
  readonly link: Signal<Link>
  readonly status: Signal<Status | undefined>
  readonly jobs: Signal<readonly Job[]>
  readonly courses: Signal<ReadonlyMap<string, Course>>
  /** What goes over the network, of all sources. */
  readonly traffic: Signal<{ readonly down: Samples; readonly up: Samples }>
  readonly inventory: Signal<Inventory | undefined>
  readonly rows: { readonly value: readonly ModelRow[] }
  readonly disk: Signal<Disk | undefined>
  readonly notice: Signal<Notice | undefined>
  /** Does what was asked for, and shows a notice of the outcome; undefined after a failure. */
  attempt<T>(work: () => Promise<T>, done?: (result: T) => string): Promise<T | undefined>
  /** Reads the disk use again. */
  measure(): Promise<void>
}

const add = (samples: Samples, sample: number): Samples => [...samples, sample].slice(-MAX_SAMPLES)

/** What the bridge told. */
const signals = () => ({
  link: signal<Link>('connecting'),
  status: signal<Status | undefined>(),
  jobs: signal<readonly Job[]>([]),
  courses: signal<ReadonlyMap<string, Course>>(new Map()),
  traffic: signal<{ readonly down: Samples; readonly up: Samples }>({ down: [], up: [] }),
  inventory: signal<Inventory | undefined>(),
  disk: signal<Disk | undefined>(),
  notice: signal<Notice | undefined>()
})
type Known = ReturnType<typeof signals>

/** All that the page knows, kept current by the bridge's events. */
export function createStore(bridge: BridgeClient, events: Events): Store {
  const known = signals()
  const { inventory, status, disk, notice } = known
  const rows = computed(() => rowsOf(inventory.value, status.value))
  const attempt: Store['attempt'] = async (work, done) => {
    try {
      const result = await work()
      if (done !== undefined) notice.value = { text: done(result), isError: false }
      return result
    } catch (error) {
      failed(known, error)
      return undefined
    }
  }
  const measure = async (): Promise<void> => {
    const read = await attempt(bridge.disk)
    if (read !== undefined) disk.value = read
  }
  const load = async (): Promise<void> => {
    const read = await attempt(bridge.models)
    if (read !== undefined) inventory.value = read
    if (disk.value !== undefined) await measure()
  }
  follow(known, events, () => void load())
  events.onerror = () => {
    // perhaps only the connection was lost: a question tells.
    void attempt(bridge.models)
  }
  return { bridge, ...known, rows, attempt, measure }
}

function failed({ link, notice }: Known, error: unknown): void {
  if (!(error instanceof BridgeError)) throw error
  if (error.code === 'E_FORBIDDEN') link.value = 'expired'
  else if (error.code === 'E_ENDED') link.value = 'ended'
  else notice.value = { text: [error.message, error.hint].filter(Boolean).join('. '), isError: true }
}

/** Takes what the events tell. `load` reads the models. */
function follow({ link, status, jobs, courses, traffic, notice }: Known, events: Events, load: () => void): void {
  const listen = <T>(name: string, take: (data: T) => void): void =>
    events.addEventListener(name, (event) => batch(() => take(JSON.parse((event as MessageEvent<string>).data) as T)))
  /** Whether the jobs that the page knows are those of the daemon that answers. */
  let isFollowing = false
  listen<{ state: 'up' | 'away' }>('daemon', ({ state }) => {
    link.value = state
    isFollowing = false
    if (state === 'up') load()
  })
  listen<Status>('status', (now) => {
    status.value = now
  })
  listen('look', () => {
    courses.value = coursesOf(jobs.value, courses.value, nowMs())
    const { down, up } = ratesOf(status.value, jobs.value, courses.value)
    traffic.value = { down: add(traffic.value.down, down), up: add(traffic.value.up, up) }
  })
  listen<{ jobs: readonly Job[]; gone?: readonly string[] }>('jobs', ({ jobs: changed, gone = [] }) => {
    for (const job of endedSince(jobs.value, changed, isFollowing)) notice.value = endOf(job)
    if (!isFollowing) {
      const lost = jobs.value.find((job) => isRunning(job) && !changed.some(({ id }) => id === job.id))
      if (lost !== undefined) notice.value = { text: TEXTS.jobs.lost(kindOf(lost), nameOf(lost)), isError: true }
    }
    // the first list of a daemon is whole: what an earlier one had is no more
    jobs.value = mergeJobs(isFollowing ? jobs.value : [], changed, gone)
    isFollowing = true
  })
  listen('models', load)
}

/** The jobs that have ended since the last look, those that also began since then among them. */
export function endedSince(known: readonly Job[], changed: readonly Job[], isFollowing: boolean): readonly Job[] {
  const before = new Map(known.map((job) => [job.id, job]))
  return changed.filter((job) => {
    if (isRunning(job) || job.dryRun === true) return false
    const last = before.get(job.id)
    // an interrupted one has ended with an earlier daemon
    return last === undefined ? isFollowing && job.interrupted !== true : isRunning(last)
  })
}

/** The current jobs, newest first. */
export function mergeJobs(known: readonly Job[], changed: readonly Job[], gone: readonly string[]): readonly Job[] {
  const jobs = new Map(known.map((job) => [job.id, job]))
  for (const job of changed) jobs.set(job.id, job)
  for (const id of gone) jobs.delete(id)
  return [...jobs.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
}

/** What a connection without data still reports for a while: rates are smoothed. */
const IDLE_BYTES_PER_SECOND = 1024

/** A look at all jobs. Those of the swarm report the rate of their connections; of others, rates come from the bytes. */
export function coursesOf(
  jobs: readonly Job[],
  before: ReadonlyMap<string, Course>,
  nowMs: number
): ReadonlyMap<string, Course> {
  const seen = jobs.map((job): [string, Course] => {
    const { bytesDone = 0 } = job
    const last = before.get(job.id)
    if (last === undefined || job.state !== 'fetching')
      return [job.id, { rates: last?.rates ?? [], idleLooks: 0, bytesDone, seenMs: nowMs }]
    const came = Math.max(0, bytesDone - last.bytesDone)
    const seconds = Math.max(0.1, (nowMs - last.seenMs) / 1000)
    // a block of a swarm counts when it is whole, which a slow peer takes long for
    const isIdle = came === 0 && (job.rateBytesPerSecond ?? 0) < IDLE_BYTES_PER_SECOND
    const rate = isIdle ? 0 : (job.rateBytesPerSecond ?? came / seconds)
    const idleLooks = isIdle ? last.idleLooks + 1 : 0
    return [job.id, { rates: add(last.rates, rate), idleLooks, bytesDone, seenMs: nowMs }]
  })
  return new Map(seen)
}

/** A rate is the mean of so many looks: jobs report bytes file by file, or in large steps. */
const STEADY_LOOKS = 5

/** The rate that is shown, and that the remaining time follows from. */
export function rateOf(job: Job, course: Course | undefined): number {
  const last = course?.rates.slice(-STEADY_LOOKS) ?? []
  const mean = last.reduce((sum, rate) => sum + rate, 0) / Math.max(1, last.length)
  return isStalled(job, course) ? 0 : (job.rateBytesPerSecond ?? mean)
}

/** Jobs whose bytes come over the network, but not from peers, which the daemon counts by itself. */
const isFetchedElsewhere = ({ kind, state, peers }: Job): boolean =>
  state === 'fetching' &&
  (kind === 'import-catalog' || (peers === undefined && (kind === 'ensure' || FROM_SERVERS.includes(kind))))
const FROM_SERVERS: readonly Job['kind'][] = ['companions', 'import-hf', 'import-oci']

/** What this machine receives and sends now, in bytes per second. */
export function ratesOf(
  status: Status | undefined,
  jobs: readonly Job[],
  courses: ReadonlyMap<string, Course>
): { readonly down: number; readonly up: number } {
  const { downBytesPerSecond = 0, upBytesPerSecond = 0 } = status?.swarm ?? {}
  const elsewhere = jobs.filter(isFetchedElsewhere).map((job) => rateOf(job, courses.get(job.id)))
  return {
    down: elsewhere.reduce((sum, rate) => sum + rate, downBytesPerSecond),
    up: upBytesPerSecond + (status?.catalog?.upBytesPerSecond ?? 0)
  }
}

/** Looks, two seconds apart. */
const STALLED_LOOKS = 8

/** Whether bytes should arrive, and do not. */
export const isStalled = (job: Job, course: Course | undefined): boolean =>
  job.state === 'fetching' && job.bytesTotal !== undefined && (course?.idleLooks ?? 0) >= STALLED_LOOKS

/** A dry run counts garbage for a dialog; nobody started it as a job. */
export const isRunning = ({ state, dryRun }: Job): boolean =>
  dryRun !== true && (state === 'waiting' || state === 'fetching')

/** Whether it brings bytes here, and goes on from them when it is asked again. */
export const isDownload = ({ kind }: Job): boolean => kind === 'ensure' || kind.startsWith('import-')

/** Somebody stopped a download, which can go on. */
export const isPaused = (job: Job): boolean =>
  isDownload(job) && job.interrupted !== true && job.error?.code === 'E_ABORTED'

const kindOf = ({ kind }: Job): string => TEXTS.jobs.kinds[kind] ?? kind

export function nameOf({ as, ref }: Job): string {
  const name = (as ?? ref).replace('svc:///', '')
  return name === 'all' ? TEXTS.jobs.all : name
}

function endOf(job: Job): Notice {
  if (job.interrupted === true) return { text: TEXTS.jobs.wasInterrupted(kindOf(job), nameOf(job)), isError: true }
  if (isPaused(job)) return { text: TEXTS.jobs.isPaused(nameOf(job)), isError: false }
  return job.error === undefined
    ? { text: TEXTS.jobs.ends(kindOf(job), nameOf(job)), isError: false }
    : { text: TEXTS.jobs.fails(kindOf(job), nameOf(job), job.error.message), isError: job.error.code !== 'E_ABORTED' }
}

/** The notice of a started job. */
export const started = (job: Job): string => TEXTS.jobs.started(kindOf(job))
