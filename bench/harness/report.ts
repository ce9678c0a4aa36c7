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

/** Where and when figures were taken. */
export interface Machine {
  readonly date: string
  readonly machine: string
  readonly conditions: string
  readonly versions: string
}

/** A file of `bench/results`, as `--json` writes it; scripts/performance.ts makes the table of docs/performance.md of the newest. */
export interface Results extends Machine {
  readonly reports: readonly RowReport[]
}

/** Date, machine and versions, for the head of a report. */
export function machineFacts(folder: string): Machine {
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
    versionOf('git', '--version')
  ]
  return {
    date: `${new Date().toISOString().slice(0, 16)}Z`,
    machine: `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown CPU'}, ${Math.round(Number(memory) / 2 ** 20)} GiB, Linux ${release()}`,
    conditions: `load average at the start ${load}; data on ${FILE_SYSTEMS[type] ?? `file system ${type.toString(16)}`}`,
    versions: tools.filter((text) => text !== undefined).join(', ')
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
