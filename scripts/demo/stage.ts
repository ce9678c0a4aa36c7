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

/** A daemon process with its own folder. */
export interface DemoDaemon {
  readonly folder: string
  /** The content of its `runtime.json`. */
  readonly facts: Readonly<Record<string, string>>
  /** Runs `svc`, and prints the command and its output. */
  svc(...args: string[]): Promise<string>
  stop(): Promise<void>
}

/** The setting of a demo: a temporary folder, daemons, and narration. `close` undoes everything in reverse order. */
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

  /** Registers clean-up work, which runs even if the demo fails. */
  later(work: () => Promise<void>): void {
    this.#undo.push(work)
  }

  /** Starts a daemon with this configuration, and waits until it answers. */
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

  /** Runs a script of the repository in a separate process. @returns the last line of its stdout */
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
        // not there yet
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
