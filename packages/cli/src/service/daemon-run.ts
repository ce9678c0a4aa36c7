import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { CliError } from '../errors.ts'
import type { Exit } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import { daemonCommand } from './daemon-command.ts'

const ENDS: Readonly<Record<number, Exit>> = { 2: 'usage', 5: 'verification', 130: 'interrupted' }

export interface DaemonRun {
  /** The program; default: the one that came with this `svc`. */
  readonly svcd?: string | undefined
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** The error's message when the program gives none. */
  readonly otherwise: string
}

/** Runs a command of `svcd`, and passes on its output, Ctrl-C and its exit code. @throws CliError */
export async function runDaemonCommand(
  { terminal, json, quiet, signal }: Session,
  words: readonly string[],
  { svcd, env, otherwise }: DaemonRun
): Promise<void> {
  signal.throwIfAborted()
  const [program, ...args] = daemonCommand(svcd, terminal.env)
  const all = [...args, ...words, ...(json ? ['--json'] : []), ...(quiet ? ['--quiet'] : [])]
  const child = spawn(program!, all, {
    cwd: terminal.cwd,
    env: { ...(terminal.env as NodeJS.ProcessEnv), ...env },
    // on a terminal it draws its own progress bar
    stdio: ['ignore', 'pipe', json ? 'pipe' : terminal.stderr.forChild]
  })
  const stop = (): void => void child.kill('SIGINT')
  signal.addEventListener('abort', stop, { once: true })
  let complaint = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => terminal.stdout.text(text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (json) complaint += text
    else terminal.stderr.text(text)
  })
  const [code] = (await once(child, 'close').finally(() => signal.removeEventListener('abort', stop))) as [
    number | null
  ]
  if (code === 0) return
  const why = complaint.trim().replace(/^svcd: /, '')
  throw new CliError(ENDS[code ?? -1] ?? 'failed', why || otherwise)
}
