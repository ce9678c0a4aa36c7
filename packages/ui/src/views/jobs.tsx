import type { Job } from '@svc/client/protocol'
import type { ComponentChildren } from 'preact'
import { nowMs } from '../clock.ts'
import { useStore } from '../context.ts'
import { formatBytes, formatRate, formatSeconds, formatSince } from '../format.ts'
import { rowsOfJob } from '../job-models.ts'
import { Button } from '../parts/button.tsx'
import { Empty } from '../parts/empty.tsx'
import { Line } from '../parts/line.tsx'
import { formatPlace } from '../place.ts'
import { isDownload, isPaused, isRunning, isStalled, nameOf, rateOf, started } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { FailureView } from './failure.tsx'

const T = TEXTS.jobs
/** Ended jobs that are shown. */
const MAX_ENDED = 50

export function JobsView() {
  const jobs = useStore().jobs.value.filter(({ dryRun }) => dryRun !== true)
  const running = jobs.filter(isRunning)
  const ended = jobs.filter((job) => !isRunning(job)).slice(0, MAX_ENDED)
  if (jobs.length === 0)
    return (
      <Empty title={T.none} text={T.noneText}>
        <a class="button main" href="#get">
          {TEXTS.models.first}
        </a>
      </Empty>
    )
  return (
    <>
      <JobSection title={T.running} jobs={running} />
      <JobSection title={T.ended} jobs={ended} />
    </>
  )
}

function JobSection({ title, jobs }: { readonly title: string; readonly jobs: readonly Job[] }) {
  if (jobs.length === 0) return null
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul class="jobs">
        {jobs.map((job) => (
          <JobItem key={job.id} job={job} />
        ))}
      </ul>
    </section>
  )
}

const percentOf = ({ state, bytesDone = 0, bytesTotal = 0 }: Job): string | undefined =>
  state === 'fetching' && bytesTotal > 0 ? `${Math.floor((100 * bytesDone) / bytesTotal)}%` : undefined
const LEVELS = { waiting: 'none', fetching: 'running', done: 'good', failed: 'bad' }

function stateOf(job: Job): string {
  if (job.interrupted === true) return T.interrupted
  return percentOf(job) ?? (isPaused(job) ? T.paused : T.states[job.state])
}

function JobItem({ job }: { readonly job: Job }) {
  const isQuiet = isPaused(job) || job.interrupted === true
  return (
    <li data-job={job.state} class={isQuiet ? 'quiet' : ''}>
      <header>
        <h3>
          <ModelLink job={job}>{nameOf(job)}</ModelLink>
        </h3>
        <span class="hint">{T.kinds[job.kind] ?? job.kind}</span>
        <span class="space" />
        <span class={`mark ${isQuiet ? 'warn' : LEVELS[job.state]}`}>{stateOf(job)}</span>
        {job.finishedAt !== undefined && <span class="hint">{formatSince(job.finishedAt, nowMs())}</span>}
        <Buttons job={job} />
      </header>
      {isRunning(job) ? <ProgressView job={job} /> : <OutcomeView job={job} />}
    </li>
  )
}

/** Pauses and goes on with downloads; cancels anything else. */
function Buttons({ job }: { readonly job: Job }) {
  const { attempt, bridge } = useStore()
  const name = nameOf(job)
  const cancel = (): Promise<unknown> =>
    attempt(
      () => bridge.cancel(job.id),
      () => (isDownload(job) ? T.isPaused(name) : T.cancelled)
    )
  if (isRunning(job)) {
    const text = isDownload(job) ? T.pause : TEXTS.cancel
    return <Button text={text} label={`${text} ${name}`} does={cancel} />
  }
  const again = againOf(job, bridge)
  const text = isPaused(job) || job.interrupted === true ? T.goOn : T.again
  return (
    <>
      {again !== undefined && <Button text={text} label={`${text}: ${name}`} does={() => attempt(again, started)} />}
      {job.interrupted === true && <Button text={T.forget} label={`${T.forget}: ${name}`} does={cancel} />}
    </>
  )
}

/** How a job that failed is done again: downloads go on from what is here. */
function againOf(
  { id, kind, state, ref }: Job,
  bridge: ReturnType<typeof useStore>['bridge']
): (() => Promise<Job>) | undefined {
  if (state !== 'failed') return undefined
  switch (kind) {
    case 'verify':
      return () => bridge.verify(ref)
    case 'gc':
      return () => bridge.collect(false)
    case 'evict':
      return () => bridge.evict(ref)
    case 'companions':
    case 'outdated':
      return undefined
    default:
      return () => bridge.resume(id)
  }
}

function ModelLink({ job, children }: { readonly job: Job; readonly children: ComponentChildren }) {
  const [row] = rowsOfJob(job, useStore().rows.value)
  return row === undefined ? children : <a href={formatPlace({ view: 'models', model: row.ref })}>{children}</a>
}

function ProgressView({ job }: { readonly job: Job }) {
  const course = useStore().courses.value.get(job.id)
  const { bytesDone = 0, bytesTotal, message, warnings = [] } = job
  const isStuck = isStalled(job, course)
  const rate = rateOf(job, course)
  return (
    <div class="course">
      <div>
        <progress
          aria-label={nameOf(job)}
          {...(bytesTotal === undefined ? {} : { value: bytesDone, max: Math.max(1, bytesTotal) })}
        />
        <p class="figures">
          {figuresOf(job, rate).map((figure) => (
            <span key={figure}>{figure}</span>
          ))}
        </p>
        <p class={isStuck ? 'mark warn' : 'unseen'} role="status">
          {isStuck && (job.peers === 0 && job.sources === 0 ? T.stalledNobody : T.stalled)}
        </p>
        {[message, ...warnings].map((text) => text !== undefined && <p key={text}>{text}</p>)}
      </div>
      {isDownload(job) && <Line label={T.rateLine(formatRate(rate))} series={[course?.rates ?? []]} />}
    </div>
  )
}

/** What is known of the progress, always in this order. */
function figuresOf({ state, bytesDone = 0, bytesTotal, sources, peers }: Job, rate: number): string[] {
  return [
    bytesTotal === undefined ? undefined : T.progress(formatBytes(bytesDone), formatBytes(bytesTotal)),
    state === 'waiting' ? undefined : formatRate(rate),
    rate > 0 && bytesTotal !== undefined ? T.eta(formatSeconds((bytesTotal - bytesDone) / rate)) : undefined,
    sources === undefined ? undefined : T.sources(sources),
    peers === undefined ? undefined : T.peers(peers)
  ].filter((figure) => figure !== undefined)
}

function OutcomeView({ job }: { readonly job: Job }) {
  const { error, result, kind } = job
  return (
    <>
      {error !== undefined && <FailureView job={job} error={error} />}
      {kind === 'gc' && result?.blobs !== undefined && (
        <p>{T.collected(result.blobs, formatBytes(result.bytes ?? 0))}</p>
      )}
      {(result?.warnings ?? []).map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </>
  )
}
