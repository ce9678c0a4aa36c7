import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { SVCD } from '@svc/testkit/programs'
import { onTestFinished } from 'vitest'
import { ApiClient } from './daemon.ts'

const COMPILE_CACHE = new URL('../../../../node_modules/.cache/svc-compile', import.meta.url).pathname

export interface SpawnOptions {
  readonly folder: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Command and arguments put in front, e.g. `unshare -rm`. They must end in an exec. */
  readonly wrapper?: readonly string[]
  /** Descriptor that becomes 3. */
  readonly descriptor?: number
  /** A program of the tests that takes the place of `svcd`; it can be sent messages. */
  readonly main?: string
}

export interface SpawnedDaemon extends ApiClient {
  readonly child: ChildProcess
  /** Parsed lines of standard error. */
  readonly log: Record<string, unknown>[]
  /** Resolves with how the process ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

const environment = (folder: string, more: SpawnOptions['env']): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: folder,
  XDG_RUNTIME_DIR: folder,
  // each start compiles the sources otherwise
  NODE_COMPILE_CACHE: COMPILE_CACHE,
  ...more
})

const swarmOff = (folder: string): string => join(folder, 'off.toml')

/** A daemon process that listens on `<folder>/s.sock`, killed when the test ends. */
export async function spawnDaemon(options: SpawnOptions): Promise<SpawnedDaemon> {
  const {
    folder,
    args = ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', swarmOff(folder)],
    wrapper = [],
    descriptor,
    main
  } = options
  writeFileSync(swarmOff(folder), '[swarm]\nenabled = false\n')
  const program = main === undefined ? SVCD : ['--conditions=svc-source', main]
  const [command, ...rest] = [...wrapper, process.execPath, ...program, ...args]
  const child = spawn(command!, rest, {
    env: environment(folder, options.env),
    stdio: [
      'ignore',
      'ignore',
      'pipe',
      ...(descriptor === undefined ? [] : [descriptor]),
      ...(main ? ['ipc' as const] : [])
    ]
  })
  const log: Record<string, unknown>[] = []
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null
  }))
  const client = new ApiClient(join(folder, 's.sock'))
  onTestFinished(async () => {
    client.agent.destroy()
    child.kill('SIGKILL')
    await ended.catch(() => undefined)
  })
  await new Promise<void>((resolve, reject) => {
    const plain: string[] = []
    createInterface({ input: child.stderr! }).on('line', (line) => {
      try {
        const entry = JSON.parse(line) as Record<string, unknown>
        log.push(entry)
        if (entry.msg === 'listening') resolve()
      } catch {
        plain.push(line)
      }
    })
    ended.then((how) => reject(new Error(`the daemon ended (${JSON.stringify(how)}): ${plain.join('\n')}`)), reject)
  })
  return Object.assign(client, { child, log, ended })
}

/** Runs `svcd` to its end. */
export function runSvcd(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {}
): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...SVCD, ...args], {
    env: environment(folder, env),
    encoding: 'utf8',
    timeout: 60_000
  })
  return { code: status, out: stdout, err: stderr }
}
