import type { Job } from '@svc/client'
import type { Clock } from '@svc/internal-clock'
import type { Output } from '@svc/internal-terminal'
import { count, formatBytes, formatSeconds } from './format.ts'

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

/** A source that sends nothing for this long is said to be silent. */
const SILENT_AFTER_MS = 4_000

/** Says how long nothing has come, if a transfer under way is silent. */
class Silence {
  #last = -1
  #sinceMs = 0

  /** @returns the job; for a silent one with that as its message, and without the rate of earlier times */
  told<T extends Shown>(job: T, nowMs: number): T {
    const { state, bytesDone = 0, bytesTotal = 0, message } = job
    if (bytesDone !== this.#last || state !== 'fetching') [this.#last, this.#sinceMs] = [bytesDone, nowMs]
    const silentMs = nowMs - this.#sinceMs
    if (silentMs < SILENT_AFTER_MS || bytesDone >= bytesTotal || message !== undefined) return job
    return { ...job, rateBytesPerSecond: 0, message: `nothing came for ${formatSeconds(Math.floor(silentMs / 1000))}` }
  }
}

export const silent: Progress = { update: () => {}, tell: () => {}, end: () => {} }

const LINE_EVERY_MS = 5000
const CHANGED_LINE_EVERY_MS = 1000

/** Plain lines: at most one every few seconds, or one a second when the state or the message changes. */
export function lineProgress(write: (line: string) => void, clock: Pick<Clock, 'monotonic'>): Progress {
  const rate = new Rate()
  const silence = new Silence()
  let lastAtMs = Number.NEGATIVE_INFINITY
  let lastKey = ''
  let lastLine = ''
  return {
    update(snapshot) {
      const atMs = clock.monotonic()
      const job = silence.told(snapshot, atMs)
      const perSecond = rate.update(job.bytesDone ?? 0, atMs)
      // how long it is silent is no change
      const key = `${job.state} ${job === snapshot ? (job.message ?? '') : 'silent'}`
      if (job.state === 'done' || job.state === 'failed') return
      if (atMs - lastAtMs < (key === lastKey ? LINE_EVERY_MS : CHANGED_LINE_EVERY_MS)) return
      const queued = job.state === 'waiting' && lastLine !== '' ? ', waiting for its turn' : ''
      const line = `${describe(job, perSecond)}${queued}`
      if (line === lastLine) return
      lastAtMs = atMs
      lastKey = key
      lastLine = line
      write(line)
    },
    tell: write,
    end() {}
  }
}

/** Smaller files get no bar of their own. */
const LARGE_FILE_BYTES = 16 * 1024 * 1024
const MAX_FILE_BARS = 6
const NEARLY_ALL = 0.95
const DRAW_EVERY_MS = 125

/** Width of a bar; the percentage and blanks take the rest of a line. */
const BAR_COLUMNS = 24
const NARROW_BAR_COLUMNS = 8
const NARROW_COLUMNS = 60

/** Bars on a terminal: the total first, and below it one for each large file in progress. */
export function barProgress(output: Output, clock: Pick<Clock, 'monotonic'>): Progress {
  const rate = new Rate()
  const silence = new Silence()
  let drawnAtMs = Number.NEGATIVE_INFINITY
  return {
    update(snapshot) {
      const nowMs = clock.monotonic()
      const job = silence.told(snapshot, nowMs)
      const perSecond = rate.update(job.bytesDone ?? 0, nowMs)
      if (nowMs - drawnAtMs < DRAW_EVERY_MS) return
      drawnAtMs = nowMs
      const columns = (output.columns ?? 80) < NARROW_COLUMNS ? NARROW_BAR_COLUMNS : BAR_COLUMNS
      const large = barredFiles(job)
      output.draw([
        totalBar(job, perSecond, columns),
        ...large.map(({ name, bytesDone, bytesTotal }) =>
          bar(columns, bytesDone, bytesTotal, `${formatBytes(bytesDone)}/${formatBytes(bytesTotal)} ${name}`)
        )
      ])
    },
    tell: (line) => output.line(line),
    end: () => output.draw([])
  }
}

/** The files that get a bar of their own; none if one file is nearly all there is, whose bar would be the same. */
function barredFiles({ files = [], bytesTotal = 0 }: Shown): NonNullable<Shown['files']> {
  const large = files.filter((file) => file.bytesTotal >= LARGE_FILE_BYTES)
  const isAlone = large.length === 1 && large[0]!.bytesTotal >= NEARLY_ALL * bytesTotal
  return isAlone ? [] : large.slice(0, MAX_FILE_BARS)
}

function totalBar(job: Shown, perSecond: number | undefined, columns: number): string {
  const inBytes = (job.bytesTotal ?? 0) > 0
  const [done, whole] = inBytes ? [job.bytesDone ?? 0, job.bytesTotal!] : [job.filesDone ?? 0, job.filesTotal ?? 0]
  const parts = [job.state === 'waiting' ? 'waiting' : VERBS[job.kind]]
  // narrow terminals cut the end of a line
  const silence = job.rateBytesPerSecond === 0 ? job.message : undefined
  if (silence !== undefined) parts.push(silence)
  if (inBytes) parts.push(`${formatBytes(done)}/${formatBytes(whole)}`)
  if (silence === undefined) parts.push(...liveParts(job, perSecond))
  if (job.filesTotal !== undefined) parts.push(`${job.filesDone ?? 0}/${count(job.filesTotal, 'file')}`)
  return bar(columns, done, whole, parts.join(' '))
}

function bar(columns: number, done: number, whole: number, label: string): string {
  const part = whole > 0 ? Math.min(1, done / whole) : 0
  const percent = `${Math.floor(100 * part)}%`.padStart(4)
  return `${'#'.repeat(Math.round(columns * part)).padEnd(columns, '-')} ${percent} ${label}`
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
