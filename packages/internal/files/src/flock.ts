import { spawn } from 'node:child_process'

/**
 * Takes the kernel's lock of an open file or folder for this process alone, without waiting: `flock -n -x` is run in a child that inherits
 * the descriptor, so that the lock belongs to the open file description and lasts until it is closed or this process dies.
 * @returns false when somebody else has it, undefined where there is no such program
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
