import { execFile } from 'node:child_process'

const TIMEOUT_MS = 10_000

/**
 * Asks the system to forget what it holds of a file in memory, so that the next read comes from the disk. Node has no
 * call for that; GNU `dd` has. Without it nothing happens: this is an attempt, and never fails.
 */
export function dropFromCache(path: string): Promise<void> {
  const args = [`if=${path}`, 'of=/dev/null', 'iflag=nocache', 'count=0', 'status=none']
  return new Promise((resolve) => {
    execFile('dd', args, { timeout: TIMEOUT_MS }, () => resolve())
  })
}
