import { type Clock, systemClock } from '@svc/internal-clock'
import { Output } from '@svc/internal-terminal'
import { type CopyProgress, spokenBytes } from '@svc/library/parts'
import type { Flags } from '../flags.ts'

/** The progress of a copy of blobs, and its current step. */
export interface CopyReport extends CopyProgress {
  readonly phase: string
}

/** Interval of progress updates on a terminal; in a log they are rare. */
const TERMINAL_EVERY_MS = 100
const LOG_EVERY_MS = 5_000

/** Progress on standard error: a line that is drawn again on a terminal, a line now and then in a log. */
function copyProgress(
  output: Output,
  { quiet, json }: Pick<Flags, 'quiet' | 'json'>,
  clock: Clock = systemClock
): (progress: CopyReport) => void {
  const silent = quiet || json
  const everyMs = output.isTerminal ? TERMINAL_EVERY_MS : LOG_EVERY_MS
  let last = Number.NEGATIVE_INFINITY
  let phase: string | undefined
  return (progress) => {
    const now = clock.monotonic()
    if (silent || (phase === progress.phase && now - last < everyMs)) return
    ;[last, phase] = [now, progress.phase]
    const { blobsDone, blobsTotal, bytesDone, bytesTotal } = progress
    const line = `${phase} ${blobsDone} of ${blobsTotal} blobs, ${spokenBytes(bytesDone)} of ${spokenBytes(bytesTotal)}`
    if (output.isTerminal) output.draw([line])
    else output.line(line)
  }
}

/** What a copy tells at its end: the lines, or with --json the document. */
export interface CopyOutcome {
  readonly lines: readonly string[]
  readonly document: unknown
}

/** Runs a copy, and prints its result; if a signal stops it, prints `advice`, with exit code 130. */
export async function stoppably(
  flags: Flags,
  advice: string,
  copy: (signal: AbortSignal, tell: (progress: CopyReport) => void) => Promise<CopyOutcome>
): Promise<void> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  const [stdout, stderr] = [Output.stdout(), Output.stderr()]
  try {
    const { lines, document } = await copy(stop.signal, copyProgress(stderr, flags)).finally(() => stderr.draw([]))
    if (flags.json) stdout.document(document)
    else for (const line of lines) stdout.line(line)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    stderr.line(`svcd: stopped; ${advice}`)
    process.exitCode = 130
  }
}
