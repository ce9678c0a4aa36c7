import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const START_TIMEOUT_MS = 120_000
const root = resolve(import.meta.dirname, '../..')
const NODE = [process.execPath, '--conditions=svc-source', '--disable-warning=ExperimentalWarning'] as const
const execute = promisify(execFile)

/** A daemon of a demo, in a process and a folder of its own. */
export interface DemoDaemon {
  readonly folder: string
  /** What it wrote to `runtime.json`. */
  readonly facts: Readonly<Record<string, string>>
  /** Runs `svc`, and shows the command and what it said. */
  svc(...args: string[]): Promise<string>
  stop(): Promise<void>
}

/** Where a demo takes place: a throw-away folder, daemons, and a narrator. What was begun is ended by `close`, last first. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-demo-'))
  readonly #undo: (() => Promise<void>)[] = []
  #closing: Promise<void> | undefined

  say(line = ''): void {
    console.log(line)
  }

  step(line: string): void {
    console.log(`\n▸ ${line}`)
  }

  /** Done at the end, whatever happens. */
  later(work: () => Promise<void>): void {
    this.#undo.push(work)
  }

  /** Starts a daemon with this configuration file, and waits until it answers. */
  async daemon(name: string, config: string): Promise<DemoDaemon> {
    const folder = join(this.folder, name)
    mkdirSync(folder)
    writeFileSync(join(folder, 'config.toml'), config)
    const socket = join(folder, 's.sock')
    const env = { ...process.env, SVC_SOCKET: socket }
    const [node, ...flags] = NODE
    const main = join(root, 'packages/daemon/src/app/main.ts')
    const args = [...flags, main, '--root', join(folder, 'root'), '--config', join(folder, 'config.toml')]
    const child = spawn(node, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-8_000)))
    const stop = (): Promise<void> => ended(child)
    this.later(stop)
    const facts = await this.#running(child, join(folder, 'runtime.json'), () => log)
    const svc = async (...words: string[]): Promise<string> => {
      this.say(`  ${name}$ svc ${words.join(' ')}`)
      const cli = join(root, 'packages/cli/src/main.ts')
      const { stdout, stderr } = await execute(node, [...flags, cli, ...words], { env, cwd: folder })
      for (const line of `${stdout}${stderr}`.trimEnd().split('\n')) this.say(`  ${line}`)
      return stdout
    }
    return { folder, facts, svc, stop }
  }

  /** Runs a script of the repository in a process of its own. @returns the last line of its standard output */
  async script(path: string, ...args: string[]): Promise<string> {
    const [node, ...flags] = NODE
    return (await execute(node, [...flags, join(root, path), ...args])).stdout.trimEnd().split('\n').at(-1)!
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      for (const work of this.#undo.splice(0).reverse()) await work().catch((error: unknown) => console.error(error))
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 })
    })()
    return this.#closing
  }

  async #running(child: ChildProcess, path: string, log: () => string): Promise<DemoDaemon['facts']> {
    const until = performance.now() + START_TIMEOUT_MS
    while (performance.now() < until && child.exitCode === null) {
      try {
        const facts = JSON.parse(readFileSync(path, 'utf8'))
        if (facts.state === 'running') return facts
      } catch {
        // it is not there yet
      }
      await delay(50)
    }
    throw new Error(`the daemon did not start:\n${log()}`)
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((done) => child.once('exit', done))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
  await gone
  clearTimeout(timer)
}
