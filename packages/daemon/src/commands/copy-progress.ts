import { type Clock, systemClock } from '@svc/internal-clock'
import { spokenBytes } from '../errors.ts'
import type { Flags } from '../flags.ts'
import type { CopyProgress } from './store-copy.ts'

/** The progress of a copy of blobs, and its current step. */
export interface CopyReport extends CopyProgress {
  readonly phase: string
}

/** Interval of progress updates on a terminal; in a log they are rare. */
const TERMINAL_EVERY_MS = 100
const LOG_EVERY_MS = 5_000

/** Progress on standard error: a line that is drawn again on a terminal, a line now and then in a log. */
function copyProgress(
  output: NodeJS.WriteStream,
  { quiet, json }: Pick<Flags, 'quiet' | 'json'>,
  clock: Clock = systemClock
): { readonly tell: (progress: CopyReport) => void; readonly end: () => void } {
  const silent = quiet || json
  const terminal = output.isTTY === true
  let last = Number.NEGATIVE_INFINITY
  let phase: string | undefined
  let open = false
  return {
    tell(progress) {
      const now = clock.monotonic()
      if (silent || (phase === progress.phase && now - last < (terminal ? TERMINAL_EVERY_MS : LOG_EVERY_MS))) return
      ;[last, phase] = [now, progress.phase]
      const { blobsDone, blobsTotal, bytesDone, bytesTotal } = progress
      const line = `${phase} ${blobsDone} of ${blobsTotal} blobs, ${spokenBytes(bytesDone)} of ${spokenBytes(bytesTotal)}`
      output.write(terminal ? `\r\u001b[K${line}` : `${line}\n`)
      open = terminal
    },
    end: () => void (open && output.write('\n'))
  }
}

/** Runs a copy, and prints its result; if a signal stops it, prints `advice`, with exit code 130. */
export async function stoppably(
  flags: Flags,
  advice: string,
  copy: (signal: AbortSignal, tell: (progress: CopyReport) => void) => Promise<string>
): Promise<void> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  const progress = copyProgress(process.stderr, flags)
  try {
    const text = await copy(stop.signal, progress.tell).finally(progress.end)
    process.stdout.write(text)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    process.stderr.write(`svcd: stopped; ${advice}\n`)
    process.exitCode = 130
  }
}
