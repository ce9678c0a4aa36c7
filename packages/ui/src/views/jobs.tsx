import type { ErrorCode, Job } from '@svc/client/protocol'
import { nowMs } from '../clock.ts'
import { useStore } from '../context.ts'
import { formatBytes, formatRate, formatSeconds, formatSince } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Empty } from '../parts/empty.tsx'
import { Line } from '../parts/line.tsx'
import { isRunning, isStalled, nameOf, rateOf, started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.jobs
/** Ended jobs that are shown. */
const MAX_ENDED = 50

export function JobsView() {
  const jobs = useStore().jobs.value.filter(({ dryRun }) => dryRun !== true)
  const running = jobs.filter(isRunning)
  const ended = jobs.filter((job) => !isRunning(job)).slice(0, MAX_ENDED)
  if (jobs.length === 0) return <Empty title={T.none} text={T.noneText} />
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

function JobItem({ job }: { readonly job: Job }) {
  const { attempt, bridge } = useStore()
  const cancel = (): Promise<unknown> =>
    attempt(
      () => bridge.cancel(job.id),
      () => T.cancelled
    )
  const goOn = (): Promise<unknown> => attempt(() => bridge.resume(job.id), started)
  return (
    <li data-job={job.state}>
      <header>
        <h3>{nameOf(job)}</h3>
        <span class="hint">{T.kinds[job.kind] ?? job.kind}</span>
        <span class="space" />
        <span class={`mark ${LEVELS[job.state]}`}>
          {percentOf(job) ?? (job.interrupted === true ? T.interrupted : T.states[job.state])}
        </span>
        {isRunning(job) ? (
          <Button text={TEXTS.cancel} label={T.cancel(nameOf(job))} does={cancel} />
        ) : (
          <>
            {job.finishedAt !== undefined && <span class="hint">{formatSince(job.finishedAt, nowMs())}</span>}
            {canGoOn(job) && <Button text={goOnText(job)} label={`${goOnText(job)}: ${nameOf(job)}`} does={goOn} />}
            {job.interrupted === true && <Button text={TEXTS.cancel} label={T.cancel(nameOf(job))} does={cancel} />}
          </>
        )}
      </header>
      {isRunning(job) ? <ProgressView job={job} /> : <OutcomeView job={job} />}
    </li>
  )
}

/** Imports and downloads can be asked for again; what was verified is kept. */
const canGoOn = ({ kind, state }: Job): boolean =>
  state === 'failed' && (kind === 'ensure' || kind.startsWith('import-'))

const goOnText = ({ interrupted }: Job): string => (interrupted === true ? T.goOn : T.again)

function ProgressView({ job }: { readonly job: Job }) {
  const course = useStore().courses.value.get(job.id)
  const { bytesDone = 0, bytesTotal, message, warnings = [] } = job
  const isStuck = isStalled(job, course)
  return (
    <>
      <progress
        aria-label={nameOf(job)}
        {...(bytesTotal === undefined ? {} : { value: bytesDone, max: Math.max(1, bytesTotal) })}
      />
      <p class="figures">
        {figuresOf(job, rateOf(job, course)).map((figure) => (
          <span key={figure}>{figure}</span>
        ))}
      </p>
      <p class={isStuck ? 'mark warn' : 'unseen'} role="status">
        {isStuck && (job.peers === 0 && job.sources === 0 ? T.stalledNobody : T.stalled)}
      </p>
      {[message, ...warnings].map((text) => text !== undefined && <p key={text}>{text}</p>)}
      {course !== undefined && course.rates.length > 1 && (
        <Line label={T.rateLine(formatRate(course.rates.at(-1) ?? 0))} series={[course.rates]} />
      )}
    </>
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

function OutcomeView({ job: { error, result, kind } }: { readonly job: Job }) {
  const advice = error && T.advice[error.code as ErrorCode]
  return (
    <>
      {error !== undefined && (
        <p class="failure">
          {error.message} <span class="hint">{error.code}</span>
        </p>
      )}
      {advice !== undefined && <p class="advice">{advice}</p>}
      {kind === 'gc' && result?.blobs !== undefined && (
        <p>{T.collected(result.blobs, formatBytes(result.bytes ?? 0))}</p>
      )}
      {(result?.warnings ?? []).map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </>
  )
}
