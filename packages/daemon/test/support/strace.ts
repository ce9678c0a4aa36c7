import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** Whether strace can be used here; with `SVC_REQUIRE_INTEROP=1` tests run, and fail, without it. */
export const HAS_STRACE =
  process.env.SVC_REQUIRE_INTEROP === '1' || spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0

export interface Injection {
  /** Lets the process go on undisturbed. */
  stop(): Promise<void>
}

/**
 * Lets system calls of all threads of a running process fail, or kills it at one, e.g. `fsync:error=EIO` or
 * `rename:signal=KILL:when=2` (counted by thread). Active when this resolves.
 */
export async function inject(pid: number, what: string): Promise<Injection> {
  const calls = what.slice(0, what.indexOf(':'))
  const child = spawn(
    'strace',
    ['-f', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${what}`, '-p', String(pid)],
    { stdio: ['ignore', 'ignore', 'pipe'] }
  )
  const ended = once(child, 'close')
  const stop = async (): Promise<void> => {
    child.kill('SIGINT')
    // where the process has died meanwhile, strace may wait for a thread of it for ever
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(late)
  }
  onTestFinished(stop)
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      said.push(line)
      if (/ attached/.test(line)) resolve()
    })
    child.on('error', reject)
    ended.then(() => reject(new Error(`strace ended: ${said.join('\n')}`)))
  })
  return { stop }
}
