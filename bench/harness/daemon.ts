import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Api } from './api.ts'
import { cpuSecondsOf, memoryOf } from './process-facts.ts'

const START_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 10_000
/** As the launchers of svcd have them. */
const NODE_FLAGS = ['--max-semi-space-size=1']
const MAIN = new URL('../../packages/daemon/', import.meta.url).pathname

/** A daemon process, started as a user would start it. */
export class BenchDaemon {
  readonly api: Api
  readonly root: string
  /** From spawning the process to its first answer. */
  readonly startSeconds: number
  readonly #process: ChildProcess

  constructor(child: ChildProcess, api: Api, root: string, startSeconds: number) {
    this.#process = child
    this.api = api
    this.root = root
    this.startSeconds = startSeconds
  }

  get pid(): number {
    return this.#process.pid!
  }

  cpuSeconds(): number {
    return cpuSecondsOf(this.pid)
  }

  memory(): ReturnType<typeof memoryOf> {
    return memoryOf(this.pid)
  }

  async stop(): Promise<void> {
    this.api.close()
    await end(this.#process)
  }
}

export interface DaemonOptions {
  /** The store's folder; the socket and the configuration file are created next to it. */
  readonly root: string
  /** Content of the configuration file; default: the swarm disabled. */
  readonly config?: string
  /** Path to poll until the daemon answers. */
  readonly probe?: string
  /** Additional Node flags, such as `--cpu-prof`. */
  readonly nodeFlags?: readonly string[]
  /** Additional environment variables. */
  readonly env?: NodeJS.ProcessEnv
  /** An installed `svcd` to run instead of this checkout's; `nodeFlags` does not apply to it. */
  readonly program?: string
  /** A command that executes the daemon, such as `ip netns exec`. It must exec rather than fork, so that the pid is the daemon's. */
  readonly prefix?: readonly string[]
}

/** Starts daemons, built or from source, and stops those still running at the end. */
export class DaemonLauncher {
  readonly #source: boolean
  readonly #nodeFlags: readonly string[]
  readonly #running = new Set<ChildProcess>()

  constructor({ source, nodeFlags = [] }: { readonly source: boolean; readonly nodeFlags?: readonly string[] }) {
    this.#source = source
    this.#nodeFlags = nodeFlags
  }

  async start({
    root,
    config = '[swarm]\nenabled = false\n',
    probe = '/v1/jobs',
    nodeFlags = [],
    env = {},
    program,
    prefix = []
  }: DaemonOptions): Promise<BenchDaemon> {
    const configPath = `${root}.toml`
    const socketPath = `${root}.sock`
    writeFileSync(configPath, config, { mode: 0o600 })
    const main = this.#source
      ? ['--conditions=svc-source', join(MAIN, 'src/app/main.ts')]
      : [join(MAIN, 'dist/main.js')]
    const flags = ['--root', root, '--config', configPath, '--log-level', 'error']
    const begun = performance.now()
    const ours = [process.execPath, ...NODE_FLAGS, ...this.#nodeFlags, ...nodeFlags, ...main]
    const [command = process.execPath, ...words] = [...prefix, ...(program === undefined ? ours : [program]), ...flags]
    const child = spawn(command, words, {
      stdio: ['ignore', 'ignore', 'inherit'],
      // a folder inside the root: which store it had is not remembered
      env: { ...process.env, XDG_STATE_HOME: root, ...env, SVC_SOCKET: socketPath }
    })
    this.#running.add(child)
    child.once('exit', () => this.#running.delete(child))
    const api = new Api(socketPath)
    for (;;) {
      try {
        await api.get(probe)
        return new BenchDaemon(child, api, root, (performance.now() - begun) / 1000)
      } catch (error) {
        const late = performance.now() - begun > START_TIMEOUT_MS
        if (late || child.exitCode !== null || !isAbsent(error)) {
          child.kill('SIGKILL')
          throw new Error('the daemon did not start', { cause: error })
        }
        await delay(5)
      }
    }
  }

  /** Synchronous clean-up, for `process.on('exit')`. */
  killAll(): void {
    for (const child of this.#running) child.kill('SIGTERM')
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map(end))
  }
}

const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '')

/** Sends SIGTERM, then SIGKILL after a timeout. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await gone
  clearTimeout(timer)
}
