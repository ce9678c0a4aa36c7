import { readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

/** User and system time of a running process, all threads included. @throws if it has exited */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // the process name in parentheses may contain spaces
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Current and peak resident memory in bytes. Includes mapped files and tmpfs pages, but not the page cache. */
export function memoryOf(pid: number): {
  readonly rssBytes: number
  readonly peakBytes: number
  /** Anonymous memory: not backed by a file. */
  readonly ownBytes: number
} {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  return { rssBytes: field('VmRSS'), peakBytes: field('VmHWM'), ownBytes: field('RssAnon') }
}

export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean).map(Number)
}
