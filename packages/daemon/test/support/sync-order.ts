import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { parseSystemCalls, type SystemCall } from '@svc/testkit/system-calls'
import { onTestFinished } from 'vitest'

const WRITES = ['write', 'pwrite64', 'writev', 'pwritev', 'ftruncate', 'fallocate', 'copy_file_range']
const SYNCS = ['fsync', 'fdatasync']
const NAMES = ['link', 'linkat', 'rename', 'renameat', 'renameat2']
const TRACED = [...WRITES, ...SYNCS, ...NAMES, 'mkdir', 'unlink']

/** Records what a running process writes, syncs and names while `work` is under way. */
export async function traced(pid: number, logFile: string, work: () => Promise<void>): Promise<SystemCall[]> {
  const args = ['-f', '-y', '-s', '4096', '-o', logFile, '-e', `trace=${TRACED.join(',')}`, '-p', String(pid)]
  const child = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGINT')
    await ended
  })
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => / attached/.test(line) && resolve())
    child.on('error', reject)
    ended.then(() => reject(new Error('strace ended')))
  })
  await work()
  child.kill('SIGINT')
  await ended
  return parseSystemCalls(readFileSync(logFile, 'utf8'))
}

/** The path behind the descriptor that is a call's first argument. */
const ofDescriptor = ({ text }: SystemCall): string | undefined => /^\d+<([^>]*)>/.exec(text)?.[1]
const paths = ({ text }: SystemCall): string[] => [...text.matchAll(/"([^"]*)"/g)].map(([, path]) => path!)

export interface OrderReport {
  /** Files that got a name below the root before the acknowledgement. */
  readonly named: readonly string[]
  /** What was not in order. */
  readonly faults: readonly string[]
}

/**
 * The order of what happened below `root` before the acknowledgement: a file is synced between its last write and the moment when it
 * gets a name, and the folder of each name, or new folder, is synced between that and the acknowledgement.
 */
export function checkOrder(calls: readonly SystemCall[], root: string, acknowledgement: RegExp): OrderReport {
  // files hold documents that look like answers
  const acknowledged = calls.find(
    (each) => WRITES.includes(each.call) && acknowledgement.test(each.text) && !ofDescriptor(each)?.startsWith('/')
  )
  if (acknowledged === undefined) throw new Error('there is no acknowledgement in the log')
  const syncs = calls.filter(({ call }) => SYNCS.includes(call))
  const writes = calls.filter(({ call }) => WRITES.includes(call))
  const synced = (path: string, after: number, before: number): boolean =>
    syncs.some((each) => ofDescriptor(each) === path && each.begun > after && each.ended < before)
  const named: string[] = []
  const faults: string[] = []
  const needFolder = (path: string, { ended }: SystemCall): void => {
    if (!synced(dirname(path), ended, acknowledged.begun)) faults.push(`the folder of ${path} is not synced`)
  }
  for (const each of calls) {
    if (each.ended > acknowledged.begun) continue
    if (each.call === 'mkdir') {
      const [path] = paths(each)
      // a lease ends with the process that has it
      if (path!.startsWith(`${root}/`) && !path!.startsWith(`${root}/leases`)) needFolder(path!, each)
    }
    if (!NAMES.includes(each.call)) continue
    const [from, to] = paths(each)
    // what lies in the cache is checked before each use, and made again where it is wrong
    if (!to!.startsWith(`${root}/`) || to!.startsWith(`${root}/cache/`)) continue
    named.push(to!)
    const wrote = writes.filter((write) => ofDescriptor(write) === from && write.ended < each.begun).at(-1)
    if (!synced(from!, wrote?.ended ?? -1, each.begun)) faults.push(`${from} is named ${to} before it is synced`)
    needFolder(to!, each)
  }
  return { named, faults }
}
