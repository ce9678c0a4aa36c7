import { readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release } from 'node:os'
import { versionOf } from './command.ts'
import type { Line } from './row.ts'

export interface RowReport {
  readonly row: string
  readonly lines: readonly Line[]
  readonly error?: string
}

const HEADS = ['row', 'what', 'svc', 'peer', 'ratio', 'target', '', 'note'] as const

/** Formats the results as a Markdown table, aligned so that it is readable in a terminal. */
export function formatTable(reports: readonly RowReport[]): string {
  const cells = reports.flatMap(({ row, lines, error }) => [
    ...lines.map(({ what, ours, peer, ratio, target, met, note }) => [
      row,
      what,
      ours,
      peer,
      ratio === undefined ? '' : ratio.toFixed(2),
      target,
      met === undefined ? '' : met ? 'met' : 'MISSED',
      note ?? ''
    ]),
    ...(error === undefined ? [] : [[row, 'FAILED', '', '', '', '', '', error.split('\n')[0]!]])
  ])
  const widths = HEADS.map((head, i) => Math.max(3, head.length, ...cells.map((row) => row[i]!.length)))
  const line = (row: readonly string[]): string => `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`
  return [line(HEADS), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...cells.map(line)].join('\n')
}

const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  16914836: 'tmpfs',
  61267: 'ext4',
  2435016766: 'btrfs',
  1481003842: 'xfs'
}

/** One run: when and where its figures were measured. */
export interface Run {
  readonly date: string
  readonly machine: string
  readonly conditions: string
  readonly versions: string
}

/** A file of `bench/results`, as `--json` writes it. Each report has the date of its run. */
export interface Results {
  readonly runs: readonly Run[]
  readonly reports: readonly (RowReport & { readonly date: string })[]
}

/** Replaces the rows of `older` that `newer` measured; a row that failed keeps its older figures. Drops runs without rows. */
export function mergeResults(older: Results, newer: Results): Results {
  const rows = new Map(older.reports.map((report) => [report.row, report]))
  for (const report of newer.reports)
    if (report.error === undefined || !rows.has(report.row)) rows.set(report.row, report)
  const reports = [...rows.values()]
  const runs = new Map([...older.runs, ...newer.runs].map((run) => [run.date, run]))
  return { runs: [...runs.values()].filter(({ date }) => reports.some((report) => report.date === date)), reports }
}

/** Date, machine and versions of a run that puts its data into `folder`. */
export function runFacts(folder: string, sizes: string): Run {
  const memory = /^MemTotal:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'latin1'))?.[1]
  const type = statfsSync(folder).type
  const load = loadavg()
    .map((each) => each.toFixed(1))
    .join(' ')
  const tools = [
    `Node ${process.version}`,
    versionOf('openssl', 'version'),
    versionOf('nginx', '-v'),
    versionOf('curl', '--version')?.split(' (')[0],
    versionOf('git', '--version'),
    versionOf('/usr/bin/python3', '-c', 'import libtorrent; print("libtorrent", libtorrent.__version__)')
  ]
  return {
    date: `${new Date().toISOString().slice(0, 16)}Z`,
    machine: `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown CPU'}, ${Math.round(Number(memory) / 2 ** 20)} GiB, Linux ${release()}`,
    conditions: `${sizes}; load average at the start ${load}; data on ${FILE_SYSTEMS[type] ?? `file system ${type.toString(16)}`}`,
    versions: tools.flatMap((text) => text?.replace(/ \(.*|^nginx version: /g, '') ?? []).join(', ')
  }
}

const MIB = 1 << 20

export const formatSeconds = (seconds: number): string =>
  seconds < 1 ? `${(seconds * 1000).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`
export const formatRate = (bytesPerSecond: number): string => `${Math.round(bytesPerSecond / MIB)} MiB/s`
export const formatMib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`
export const formatSize = (bytes: number): string =>
  bytes >= 2 ** 30
    ? `${+(bytes / 2 ** 30).toFixed(1)} GiB`
    : bytes >= MIB
      ? `${Math.round(bytes / MIB)} MiB`
      : `${Math.round(bytes / 1024)} KiB`
