import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

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

/** Field 22 of /proc/<pid>/stat: tells a process from a later one with the same pid. Undefined where that cannot be told. */
export function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
