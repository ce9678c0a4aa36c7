import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { type DaemonOptions, type RunningDaemon, startDaemon } from '@svc/daemon'
import { Output } from '@svc/internal-terminal'
import { SVC } from '@svc/testkit/programs'
import { expect, onTestFinished } from 'vitest'
import { run } from '../src/run.ts'
import type { Terminal } from '../src/terminal.ts'

/** In memory if possible: these tests sync hundreds of files, and none of them cuts the power. */
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export interface Ran {
  readonly code: number | null
  /** One character per byte. */
  readonly stdout: string
  readonly stderr: string
}

interface RunOptions {
  readonly socketPath: string
  readonly cwd?: string
}

/** An output that keeps its text, and may be a terminal. */
export class Captured extends Writable {
  text = ''
  /** Writes to it. */
  readonly output = new Output(this)
  readonly isTTY: boolean
  readonly columns: number
  readonly #encoding: 'latin1' | 'utf8'
  #seen: ((text: string) => void) | undefined

  constructor(encoding: 'latin1' | 'utf8', columns?: number) {
    super()
    this.#encoding = encoding
    this.isTTY = columns !== undefined
    this.columns = columns ?? 80
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString(this.#encoding)
    this.#seen?.(this.text)
    done()
  }

  /** Calls `act` once, as soon as the text holds `part`. */
  when(part: string, act: () => void): void {
    this.#seen = (text) => {
      if (!text.includes(part)) return
      this.#seen = undefined
      act()
    }
  }
}

export interface InProcessOptions extends RunOptions {
  /** Makes stderr a terminal of this width. */
  readonly columns?: number
  /** Makes stdout a terminal of this width as well. */
  readonly stdoutColumns?: number
  /** Ctrl-C, as soon as stderr holds this text. */
  readonly interruptAt?: string
  /** Besides the socket's address. */
  readonly env?: Terminal['env']
  /** Answers to questions. */
  readonly stdin?: NonNullable<Terminal['stdin']>
}

/** A terminal at which a person types these lines, then Ctrl-D. */
export const typing = (...lines: readonly string[]) =>
  Object.assign(new PassThrough(), { isTTY: true as const }).end(lines.map((line) => `${line}\n`).join(''))

/** Runs a command line to its end in this process. */
export async function svc(args: readonly string[], options: InProcessOptions): Promise<Ran> {
  const stdout = new Captured('latin1', options.stdoutColumns)
  const stderr = new Captured('utf8', options.columns)
  const stop = new AbortController()
  if (options.interruptAt !== undefined) stderr.when(options.interruptAt, () => stop.abort(new Error('interrupted')))
  const terminal: Terminal = {
    ...(options.stdin && { stdin: options.stdin }),
    stdout: stdout.output,
    stderr: stderr.output,
    cwd: options.cwd ?? tmpdir(),
    env: { ...options.env, SVC_SOCKET: options.socketPath }
  }
  const code = await run(args, '1.2.3', terminal, stop.signal)
  return { code, stdout: stdout.text, stderr: stderr.text }
}

export interface ProcessOptions extends RunOptions {
  /** The reader of stdout goes away at once. */
  readonly closeStdout?: boolean
  /** A file that takes stdout. */
  readonly stdoutTo?: string
  /** Called with the process as soon as stderr holds this text. */
  readonly when?: { readonly stderr: string; readonly act: (child: ChildProcess) => void }
}

/** Runs the real `svc` to its end: slow, for tests that need a process. */
export async function svcProcess(args: readonly string[], options: ProcessOptions): Promise<Ran> {
  const file = options.stdoutTo === undefined ? undefined : openSync(options.stdoutTo, 'w')
  const child = spawn(process.execPath, [...SVC, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: { ...process.env, SVC_SOCKET: options.socketPath },
    stdio: ['ignore', file ?? 'pipe', 'pipe']
  })
  let [stdout, stderr] = ['', '']
  if (file !== undefined) closeSync(file)
  if (options.closeStdout === true) child.stdout?.destroy()
  child.stdout?.setEncoding('latin1').on('data', (text: string) => (stdout += text))
  let { when } = options
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    if (when === undefined || !stderr.includes(when.stderr)) return
    when.act(child)
    when = undefined
  })
  const code = await new Promise<number | null>((done) => child.on('close', done))
  return { code, stdout, stderr }
}

export type CleanUp = (work: () => void | Promise<void>) => void

export interface TestDaemon {
  readonly folder: string
  readonly root: string
  readonly socketPath: string
  /** Stops the daemon, and starts it again on the same root. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Runs `svc` against it, in its folder. */
  svc(...args: string[]): Promise<Ran>
  /** The same, with options for the terminal. */
  svcWith(args: readonly string[], options: Omit<InProcessOptions, 'socketPath'>): Promise<Ran>
}

/** On loopback only, and announced to nobody. */
export const QUIET_SWARM = { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 20 } as const

/** The daemon in this process, on a throw-away root. Its swarm client is off unless the options say otherwise. */
export async function testDaemon(
  options: Partial<DaemonOptions> & { readonly folder?: string } = {},
  cleanUp: CleanUp = onTestFinished
): Promise<TestDaemon> {
  const { folder: given, ...more } = options
  const folder = given ?? mkdtempSync(join(BASE, 'svc-cli-'))
  if (given === undefined) cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  const root = join(folder, 'root')
  const socketPath = join(folder, 's.sock')
  const start = (): Promise<RunningDaemon> =>
    // nobody listens there: a command that asks the hub learns that at once
    startDaemon({
      root,
      socketPath,
      fileConfig: { swarm: { enabled: false }, hub: { endpoint: 'http://127.0.0.1:9' } },
      ...more
    })
  let running = await start()
  const pause = (): Promise<void> => running.close({ quick: true })
  const resume = async (): Promise<void> => {
    running = await start()
  }
  cleanUp(pause)
  const svcWith: TestDaemon['svcWith'] = (args, more) => svc(args, { socketPath, cwd: folder, ...more })
  return { folder, root, socketPath, pause, resume, svc: (...args) => svcWith(args, {}), svcWith }
}

/** Runs a command that must succeed. @returns what it prints, without the last newline */
export async function ok(daemon: TestDaemon, ...args: string[]): Promise<string> {
  const ran = await daemon.svc(...args)
  expect(ran.code, `svc ${args.join(' ')}: ${ran.stderr}`).toBe(0)
  return ran.stdout.trimEnd()
}

export const manifestOf = async (daemon: TestDaemon, ref: string): Promise<string> =>
  JSON.parse(await ok(daemon, 'resolve', ref, '--json')).manifestDigest

/** Clean-ups for a daemon that a whole file shares: `afterAll(undo.all)`. */
export function laterUndo(): { readonly later: CleanUp; readonly all: () => Promise<void> } {
  const steps: (() => void | Promise<void>)[] = []
  return {
    later: (work) => void steps.push(work),
    all: async () => {
      for (const step of steps.splice(0).reverse()) await step()
    }
  }
}
