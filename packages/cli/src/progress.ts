import type { Job } from '@svc/client'
import type { Clock } from '@svc/internal-clock'
import type { MultiBar, SingleBar } from 'cli-progress'
import { count, formatBytes, formatSeconds } from './format.ts'
import { printable } from './printable.ts'
import type { Output } from './terminal.ts'

/** What is shown of a job, or of a transfer that `svc` makes itself. */
export type Shown = Pick<
  Job,
  | 'state'
  | 'ref'
  | 'as'
  | 'message'
  | 'bytesDone'
  | 'bytesTotal'
  | 'filesDone'
  | 'filesTotal'
  | 'rateBytesPerSecond'
  | 'peers'
  | 'sources'
  | 'files'
> & { readonly kind: keyof typeof VERBS }

/** Shows the snapshots of a job. `end` restores the terminal. */
export interface Progress {
  update(job: Shown): void
  /** A line that stays, above what is drawn. */
  tell(line: string): void
  end(): void
}

const VERBS: Readonly<Record<Job['kind'] | 'publish' | 'backup' | 'export' | 'push', string>> = {
  backup: 'backing up',
  ensure: 'pulling',
  'import-local': 'importing',
  'import-hf': 'importing',
  'import-bt': 'importing',
  'import-catalog': 'importing',
  'import-oci': 'importing',
  companions: 'completing',
  verify: 'verifying',
  gc: 'looking through',
  evict: 'evicting',
  outdated: 'asking about',
  publish: 'publishing',
  export: 'writing',
  push: 'pushing'
}

/** Formats a snapshot as one line: verb, name, bytes or files, rate, time left, sources, message. */
export function describe(job: Shown, perSecond: number | undefined): string {
  const parts = [`${VERBS[job.kind]} ${subjectOf(job)}`]
  const { bytesDone, bytesTotal, filesDone, filesTotal } = job
  if (job.state === 'waiting') {
    const files = filesTotal === undefined || filesTotal === 0 ? '' : ` in ${count(filesTotal, 'file')}`
    const size = bytesTotal === undefined || bytesTotal === 0 ? '' : `: ${formatBytes(bytesTotal)}${files}`
    return `${parts[0]}${size}${job.message === undefined ? '' : ` (${job.message})`}`
  }
  if (bytesDone !== undefined && bytesTotal !== undefined && bytesTotal > 0) {
    parts.push(`${Math.floor((100 * bytesDone) / bytesTotal)}%`)
    parts.push(`${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`)
  }
  if (filesDone !== undefined && filesTotal !== undefined) parts.push(`${filesDone}/${count(filesTotal, 'file')}`)
  parts.push(...liveParts(job, perSecond))
  return parts.join(' ')
}

/** The subject of a job: a model, or the whole store. */
export function subjectOf({ as, ref }: Pick<Job, 'as' | 'ref'>): string {
  const name = as ?? ref
  return name === 'all' ? 'the whole store' : name.replace(/^svc:\/\/\//, '')
}

function liveParts(job: Shown, perSecond: number | undefined): string[] {
  const parts: string[] = []
  const rate = job.rateBytesPerSecond ?? perSecond
  if (rate !== undefined && rate > 0) {
    parts.push(`${formatBytes(Math.round(rate))}/s`)
    const { bytesDone = 0, bytesTotal } = job
    if (bytesTotal !== undefined) parts.push(`${formatSeconds((bytesTotal - bytesDone) / rate)} left`)
  }
  if (job.peers !== undefined) parts.push(count(job.peers, 'peer'))
  if (job.sources !== undefined) parts.push(count(job.sources, 'source'))
  if (job.message !== undefined) parts.push(`(${job.message})`)
  return parts
}

export const silent: Progress = { update: () => {}, tell: () => {}, end: () => {} }

const LINE_EVERY_MS = 5000
const CHANGED_LINE_EVERY_MS = 1000

/** Plain lines: at most one every few seconds, or one a second when the state or the message changes. */
export function lineProgress(write: (line: string) => void, clock: Pick<Clock, 'monotonic'>): Progress {
  const rate = new Rate()
  let lastAtMs = Number.NEGATIVE_INFINITY
  let lastKey = ''
  let lastLine = ''
  return {
    update(job) {
      const atMs = clock.monotonic()
      const perSecond = rate.update(job.bytesDone ?? 0, atMs)
      const key = `${job.state} ${job.message ?? ''}`
      if (job.state === 'done' || job.state === 'failed') return
      if (atMs - lastAtMs < (key === lastKey ? LINE_EVERY_MS : CHANGED_LINE_EVERY_MS)) return
      const queued = job.state === 'waiting' && lastLine !== '' ? ', waiting for its turn' : ''
      const line = printable(`${describe(job, perSecond)}${queued}`)
      if (line === lastLine) return
      lastAtMs = atMs
      lastKey = key
      lastLine = line
      write(line)
    },
    tell: (line) => write(printable(line)),
    end() {}
  }
}

/** Smaller files get no bar of their own. */
const LARGE_FILE_BYTES = 16 * 1024 * 1024
const MAX_FILE_BARS = 6

/** Width of a bar; the percentage and blanks take the rest of a line. */
const BAR_COLUMNS = 24
const NARROW_BAR_COLUMNS = 8
const NARROW_COLUMNS = 60

/** Bars on a terminal: the total first, and below it one for each large file in progress. */
export async function barProgress(stream: Output, clock: Pick<Clock, 'monotonic'>): Promise<Progress> {
  const { default: cliProgress } = await import('cli-progress')
  const columns = (): number => stream.columns ?? 80
  const barColumns = columns() < NARROW_COLUMNS ? NARROW_BAR_COLUMNS : BAR_COLUMNS
  const bars: MultiBar = new cliProgress.MultiBar(
    {
      stream: stream as NodeJS.WriteStream,
      format: '{bar} {percent} {label}',
      barsize: barColumns,
      barCompleteChar: '#',
      barIncompleteChar: '-',
      hideCursor: true,
      clearOnComplete: true,
      stopOnComplete: false,
      gracefulExit: false,
      emptyOnZero: true,
      fps: 8
    },
    cliProgress.Presets.legacy
  )
  const rate = new Rate()
  const files = new Map<string, SingleBar>()
  let total: SingleBar | undefined
  const payload = (done: number, whole: number, label: string) => ({
    percent: `${whole > 0 ? Math.floor((100 * Math.min(done, whole)) / whole) : 0}%`.padStart(4),
    label: printable(label).slice(0, Math.max(0, columns() - barColumns - 7))
  })
  const show = (bar: SingleBar | undefined, done: number, whole: number, label: string): SingleBar => {
    if (bar === undefined) return bars.create(whole, done, payload(done, whole, label))
    bar.setTotal(whole)
    bar.update(done, payload(done, whole, label))
    return bar
  }

  return {
    update(job) {
      const perSecond = rate.update(job.bytesDone ?? 0, clock.monotonic())
      const inBytes = (job.bytesTotal ?? 0) > 0
      const [done, whole] = inBytes ? [job.bytesDone ?? 0, job.bytesTotal!] : [job.filesDone ?? 0, job.filesTotal ?? 0]
      const parts = inBytes ? [`${formatBytes(done)}/${formatBytes(whole)}`] : []
      parts.push(...liveParts(job, perSecond))
      if (job.filesTotal !== undefined) parts.push(`${job.filesDone ?? 0}/${count(job.filesTotal, 'file')}`)
      const verb = job.state === 'waiting' ? 'waiting' : VERBS[job.kind]
      total = show(total, done, whole, [verb, ...parts].join(' '))

      const large = (job.files ?? []).filter((file) => file.bytesTotal >= LARGE_FILE_BYTES).slice(0, MAX_FILE_BARS)
      const names = new Set(large.map((file) => file.name))
      for (const [name, bar] of files) {
        if (names.has(name)) continue
        bars.remove(bar)
        files.delete(name)
      }
      for (const { name, bytesDone, bytesTotal } of large) {
        const label = `${formatBytes(bytesDone)}/${formatBytes(bytesTotal)} ${name}`
        files.set(name, show(files.get(name), bytesDone, bytesTotal, label))
      }
    },
    tell(line) {
      if (total === undefined) return void stream.write(`${printable(line)}\n`)
      bars.log(`${printable(line)}\n`)
      bars.update()
    },
    end: () => bars.stop()
  }
}

/** Smoothed rate of a growing counter: exponential over 5 s, so that a burst does not make the remaining time jump. */
class Rate {
  #last: { readonly atMs: number; readonly value: number } | undefined
  #perSecond: number | undefined

  /** @returns the rate per second, undefined until it can be estimated. */
  update(value: number, atMs: number): number | undefined {
    const last = this.#last
    if (last === undefined) {
      this.#last = { atMs, value }
      return undefined
    }
    const seconds = (atMs - last.atMs) / 1000
    if (seconds < 0.2) return this.#perSecond
    const now = Math.max(0, value - last.value) / seconds
    const weight = 1 - Math.exp(-seconds / 5)
    this.#perSecond = this.#perSecond === undefined ? now : this.#perSecond + weight * (now - this.#perSecond)
    this.#last = { atMs, value }
    return this.#perSecond
  }
}
