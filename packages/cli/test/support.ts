import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '@svc/client'

const packages = resolve(import.meta.dirname, '../..')
/** Stripping types again in every process would be most of a run. */
const compileCache = join(tmpdir(), 'svc-test-compile-cache')
const NODE = ['--conditions=svc-source', '--disable-warning=ExperimentalWarning']

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly socketPath: string
  readonly cwd?: string
  /** The reader of stdout goes away at once. */
  readonly closeStdout?: boolean
  /** Called with the process as soon as stderr holds this text. */
  readonly when?: { readonly stderr: string; readonly act: (child: ChildProcess) => void }
}

/** Runs the real `svc` to its end. */
export async function svc(args: readonly string[], options: RunOptions): Promise<Ran> {
  const child = spawn(process.execPath, [...NODE, join(packages, 'cli/src/main.ts'), ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: { ...process.env, SVC_SOCKET: options.socketPath, NODE_COMPILE_CACHE: compileCache },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let [stdout, stderr] = ['', '']
  if (options.closeStdout === true) child.stdout.destroy()
  child.stdout.setEncoding('latin1').on('data', (text: string) => (stdout += text))
  let { when } = options
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    if (when === undefined || !stderr.includes(when.stderr)) return
    when.act(child)
    when = undefined
  })
  const code = await new Promise<number | null>((done) => child.on('close', done))
  return { code, stdout, stderr }
}

export interface LiveDaemon {
  readonly folder: string
  readonly socketPath: string
  stop(): Promise<void>
}

/** The real daemon on a throw-away root, its swarm client off. */
export async function startDaemon(): Promise<LiveDaemon> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  const socketPath = join(folder, 'd.sock')
  const config = join(folder, 'config.toml')
  writeFileSync(config, '[swarm]\nenabled = false\n')
  const args = [...NODE, join(packages, 'daemon/src/main.ts'), '--root', join(folder, 'root'), '--socket', socketPath, '--config', config]
  const env = { ...process.env }
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  const client = createClient({ socketPath })
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}: ${log}`)
    if (await client.models().then(() => true, () => false)) break
    await delay(30)
  }
  client.close()
  return {
    folder,
    socketPath,
    async stop() {
      const ended = new Promise((done) => child.once('exit', done))
      if (child.exitCode === null && child.kill('SIGTERM')) await ended
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
