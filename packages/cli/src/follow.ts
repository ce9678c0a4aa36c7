import type { Job } from '@svc/client'
import type { Clock } from '@svc/internal-clock'
import { CliError, jobFailure } from './errors.ts'
import { barProgress, lineProgress, type Progress, type Shown, silent } from './progress.ts'
import type { Session } from './session.ts'

/** No byte arrived within the allowed time, and the job was cancelled. */
export class StalledError extends Error {
  override readonly name = 'StalledError'
}

export interface FollowOptions {
  /** When no byte arrives for this long, the job is cancelled and {@link StalledError} thrown. */
  readonly stallTimeoutMs?: number
  /** Warnings already shown; those of this job are added. */
  readonly warned?: Set<string>
}

/** Tells, from its snapshots, whether a job has received no byte for so long. */
function stallTest(clock: Clock, stallTimeoutMs: number): (snapshot: Job) => boolean {
  let [bytes, sinceMs] = [-1, clock.monotonic()]
  return ({ bytesDone = 0, state }) => {
    if (bytesDone !== bytes || state === 'waiting') [bytes, sinceMs] = [bytesDone, clock.monotonic()]
    return clock.monotonic() - sinceMs > stallTimeoutMs
  }
}

/**
 * Watches a job to its end. With --json every changed snapshot is a line on stdout (only the last one with --quiet).
 * @throws CliError of the job when it failed; exit code 130 when Ctrl-C detaches; the job continues
 */
export async function follow(
  session: Session,
  job: Job,
  { stallTimeoutMs = Number.POSITIVE_INFINITY, warned = new Set() }: FollowOptions = {}
): Promise<Job> {
  const isStalled = stallTest(session.clock, stallTimeoutMs)
  let wasStalled = false
  const progress = progressFor(session)
  let last = job
  let lastText = ''
  try {
    for await (const snapshot of session.client.watchJob(job)) {
      last = snapshot
      if (!wasStalled && isStalled(snapshot)) {
        wasStalled = true
        await session.client.cancelJob(job.id)
      }
      const text = JSON.stringify(snapshot)
      if (text === lastText) {
        // it may be silent
        progress.update(snapshot)
        continue
      }
      lastText = text
      if (session.json && !session.quiet) session.document(snapshot)
      warnOnce(progress, snapshot, warned)
      progress.update(snapshot)
    }
  } catch (error) {
    if (!session.signal.aborted) throw error
    throw new CliError('interrupted', `detached; job ${job.id} continues in the daemon`, {
      code: 'E_INTERRUPTED',
      hint: `look again with: svc jobs ${job.id} --follow; end it with: svc cancel ${job.id}`,
      cause: error
    })
  } finally {
    progress.end()
  }
  if (session.json && session.quiet) session.document(last)
  if (wasStalled && last.error?.code === 'E_ABORTED') throw new StalledError('nothing came')
  if (last.state === 'failed') throw jobFailure(last)
  return last
}

function warnOnce(progress: Progress, { warnings = [] }: Job, warned: Set<string>): void {
  for (const warning of warnings) {
    if (!warned.has(warning)) progress.tell(`warning: ${warning}`)
    warned.add(warning)
  }
}

/** Shows a transfer that `svc` makes itself. */
export async function withProgress<T>(
  session: Session,
  subject: Pick<Shown, 'kind' | 'ref'>,
  work: (update: (counts: Partial<Shown>) => void) => Promise<T>
): Promise<T> {
  const progress = progressFor(session)
  try {
    return await work((counts) => progress.update({ state: 'fetching', ...subject, ...counts }))
  } finally {
    progress.end()
  }
}

/** Bars on a terminal, lines elsewhere, nothing with --quiet and --json. */
function progressFor(session: Session): Progress {
  const { stderr, env } = session.terminal
  if (session.json || session.quiet) return silent
  return stderr.isTerminal && env.TERM !== 'dumb'
    ? barProgress(stderr, session.clock)
    : lineProgress((line) => stderr.line(line), session.clock)
}
