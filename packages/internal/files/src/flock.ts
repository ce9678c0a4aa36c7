import { spawn } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { errnoOf } from '@svc/internal-errors'

/**
 * Tries to take the kernel's lock of an open file or folder for this process, without waiting. Runs `flock -n -x` in a
 * child that inherits the descriptor: the lock belongs to the open file description, and lasts until it is closed or
 * this process dies.
 * @returns false when another process holds it, undefined if there is no `flock` program
 * @throws Error when the program fails, as on file systems without locks
 */
export function tryFlock(fd: number): Promise<boolean | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn('flock', ['-n', '-x', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] })
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      if (said.length < 1000) said += chunk.toString('utf8')
    })
    child.on('error', (error) =>
      (error as NodeJS.ErrnoException).code === 'ENOENT' ? resolve(undefined) : reject(error)
    )
    child.on('close', (code) => {
      if (code === 0) resolve(true)
      else if (code === 1) resolve(false)
      else reject(new Error(`flock ended with ${code}: ${said.trim()}`))
    })
  })
}

/**
 * Field 22 of /proc/<pid>/stat: tells a process from a later one with the same pid. `ended` for a process that only waits for its
 * parent to notice. Undefined where that cannot be told.
 */
export function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
  } catch {
    return undefined
  }
}

/**
 * Whether a process of this user with that pid runs, and is the one that had this {@link processStart} (`-`: unknown). Where starts
 * cannot be told, any process with that pid counts.
 */
export function isRunning({ pid, startTime }: { readonly pid: number; readonly startTime: string }): boolean {
  const now = processStart(pid)
  // a process that /proc hides is another user's
  if (startTime !== '-' && (now !== undefined || processStart(process.pid) !== undefined)) return now === startTime
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}

/**
 * Where pids mean the same: one boot of one machine, and one process namespace. Letters, digits, and `.`, `-`, `_`, `/`; the
 * name of the host where the system does not tell more.
 */
export function thisMachine(): string {
  return (machine ??= nameMachine())
}

let machine: string | undefined

function nameMachine(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`
  } catch {
    return (
      hostname()
        .replace(/[^\w.-]/g, '_')
        .slice(0, 64) || '-'
    )
  }
}
