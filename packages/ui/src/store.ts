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
  readonly swarm: Signal<{ readonly down: Samples; readonly up: Samples }>
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

/** All that the page knows, kept current by the bridge's events. */
export function createStore(bridge: BridgeClient, events: Events): Store {
  const link = signal<Link>('connecting')
  const status = signal<Status | undefined>()
  const jobs = signal<readonly Job[]>([])
  const courses = signal<ReadonlyMap<string, Course>>(new Map())
  const swarm = signal<{ readonly down: Samples; readonly up: Samples }>({ down: [], up: [] })
  const inventory = signal<Inventory | undefined>()
  const disk = signal<Disk | undefined>()
  const notice = signal<Notice | undefined>()
  const rows = computed(() => rowsOf(inventory.value, status.value))

  function failed(error: unknown): void {
    if (error instanceof BridgeError && error.code === 'E_FORBIDDEN') link.value = 'expired'
    else if (error instanceof BridgeError && error.code === 'E_ENDED') link.value = 'ended'
    else if (error instanceof BridgeError)
      notice.value = { text: [error.message, error.hint].filter(Boolean).join('. '), isError: true }
    else throw error
  }
  const attempt: Store['attempt'] = async (work, done) => {
    try {
      const result = await work()
      if (done !== undefined) notice.value = { text: done(result), isError: false }
      return result
    } catch (error) {
      failed(error)
      return undefined
    }
  }
  const load = async (): Promise<void> => {
    const read = await attempt(bridge.models)
    if (read !== undefined) inventory.value = read
    if (disk.value !== undefined) await measure()
  }
  const measure = async (): Promise<void> => {
    const read = await attempt(bridge.disk)
    if (read !== undefined) disk.value = read
  }
  const listen = <T>(name: string, take: (data: T) => void): void =>
    events.addEventListener(name, (event) => batch(() => take(JSON.parse((event as MessageEvent<string>).data) as T)))

  /** Whether the jobs that the page knows are those of the daemon that answers. */
  let isFollowing = false
  listen<{ state: 'up' | 'away' }>('daemon', ({ state }) => {
    link.value = state
    isFollowing = false
    if (state === 'up') void load()
  })
  listen<Status>('status', (now) => {
    status.value = now
  })
  listen('look', () => {
    const { downBytesPerSecond = 0, upBytesPerSecond = 0 } = status.value?.swarm ?? {}
    swarm.value = { down: add(swarm.value.down, downBytesPerSecond), up: add(swarm.value.up, upBytesPerSecond) }
    courses.value = coursesOf(jobs.value, courses.value, nowMs())
  })
  listen<{ jobs: readonly Job[]; gone?: readonly string[] }>('jobs', ({ jobs: changed, gone = [] }) => {
    for (const job of endedSince(jobs.value, changed, isFollowing)) notice.value = endOf(job)
    isFollowing = true
    jobs.value = mergeJobs(jobs.value, changed, gone)
  })
  listen('models', () => void load())
  events.onerror = () => {
    // perhaps only the connection was lost: a question tells.
    void attempt(bridge.models)
  }
  return { bridge, link, status, jobs, courses, swarm, inventory, rows, disk, notice, attempt, measure }
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

/** A look at all jobs. Only swarm jobs report a rate, and a stalled job reports nothing new, so rates come from the bytes. */
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
    const rate = came === 0 ? 0 : (job.rateBytesPerSecond ?? came / seconds)
    const idleLooks = bytesDone === last.bytesDone ? last.idleLooks + 1 : 0
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

/** Looks, two seconds apart: a slow peer may take that long for one piece. */
const STALLED_LOOKS = 8

/** Whether bytes should arrive, and do not. */
export const isStalled = (job: Job, course: Course | undefined): boolean =>
  job.state === 'fetching' && job.bytesTotal !== undefined && (course?.idleLooks ?? 0) >= STALLED_LOOKS

/** A dry run counts garbage for a dialog; nobody started it as a job. */
export const isRunning = ({ state, dryRun }: Job): boolean =>
  dryRun !== true && (state === 'waiting' || state === 'fetching')

const kindOf = ({ kind }: Job): string => TEXTS.jobs.kinds[kind] ?? kind

export function nameOf({ as, ref }: Job): string {
  const name = (as ?? ref).replace('svc:///', '')
  return name === 'all' ? TEXTS.jobs.all : name
}

const endOf = (job: Job): Notice =>
  job.error === undefined
    ? { text: TEXTS.jobs.ends(kindOf(job), nameOf(job)), isError: false }
    : { text: TEXTS.jobs.fails(kindOf(job), nameOf(job), job.error.message), isError: job.error.code !== 'E_ABORTED' }

/** The notice of a started job. */
export const started = (job: Job): string => TEXTS.jobs.started(kindOf(job))
