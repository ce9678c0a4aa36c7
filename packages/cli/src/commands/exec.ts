import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { View } from '@svc/client'
import { errnoOf } from '@svc/internal-errors'
import { ChildEnded, usage } from '../errors.ts'
import { withHeldView } from '../models/held-view.ts'
import { loadPath, splitTarget } from '../models/runtime-view.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'

/** The exit code of shells for a command that is absent or cannot be run. */
const NOT_FOUND = 127
const NOT_RUNNABLE = 126

/** Ctrl-C at a terminal reaches the whole foreground group, so the command has received it already. */
const PASSED_ON: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGINT']

/**
 * `svc exec REF[#FILE] -- CMD …`: runs a command with `{}`, `{mmproj}`, `{draft}` and `{dir}` replaced by paths, and
 * holds the view meanwhile. Its exit code, or 128 plus the signal's number, becomes that of `svc`. @throws ChildEnded always,
 * after the command has run
 */
export async function exec(session: Session, target: string, given: readonly string[]): Promise<void> {
  // only the first `--` is ours; later ones belong to the command
  const words = given[0] === '--' ? given.slice(1) : given
  if (words.length === 0) throw usage('a command is missing', `svc exec ${target} -- llama-server -m {}`)
  const { ref, file } = splitTarget(target)
  await withHeldView(session, ref, (view) => runWith(session, view, file, words))
}

async function runWith(
  session: Session,
  view: View,
  file: string | undefined,
  words: readonly string[]
): Promise<never> {
  const has = (mark: string): boolean => words.some((word) => word.includes(mark))
  const paths: Readonly<Record<string, string>> = {
    '{}': has('{}') || file !== undefined ? loadPath(view, file) : '',
    '{mmproj}': has('{mmproj}') ? loadPath(view, 'mmproj') : '',
    '{draft}': has('{draft}') ? loadPath(view, 'draft') : '',
    '{dir}': view.folder
  }
  // in one pass, by a function: nothing in a path is a mark or a pattern such as $&
  return runToItsEnd(
    session.terminal,
    words.map((word) => word.replace(/\{(?:|mmproj|draft|dir)\}/g, (mark) => paths[mark]!))
  )
}

/** Runs a program at this terminal. @throws ChildEnded always, with its exit code */
export async function runToItsEnd(terminal: Terminal, words: readonly string[]): Promise<never> {
  throw new ChildEnded(await exitCodeOf(terminal, words))
}

/** Runs a program at this terminal. @returns its exit code, or 128 plus the number of the signal that ended it */
export async function exitCodeOf(
  { cwd, env, stderr }: Terminal,
  [program, ...args]: readonly string[]
): Promise<number> {
  const child = spawn(program!, args, { stdio: 'inherit', cwd, env: { ...process.env, ...env } })
  const release = passSignalsTo(child)
  try {
    return await new Promise<number>((done, failed) => {
      child.on('error', failed)
      child.on('exit', (code, signal) => done(code ?? 128 + (constants.signals[signal!] ?? 0)))
    })
  } catch (cause) {
    const isAbsent = errnoOf(cause) === 'ENOENT'
    stderr.line(`svc: ${program} ${isAbsent ? 'was not found' : 'cannot be run'}`)
    return isAbsent ? NOT_FOUND : NOT_RUNNABLE
  } finally {
    release()
  }
}

/** Lets the command decide what a signal means; `svc` only waits for it. @returns a function that undoes this */
function passSignalsTo(child: ChildProcess): () => void {
  const before = process.listeners('SIGINT')
  for (const listener of before) process.off('SIGINT', listener)
  const pass = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  for (const signal of PASSED_ON) process.on(signal, pass)
  return () => {
    for (const signal of PASSED_ON) process.off(signal, pass)
    for (const listener of before) process.on('SIGINT', listener)
  }
}
