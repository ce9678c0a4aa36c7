import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenFile, View } from '@svc/client'
import { ChildEnded, CliError } from '../errors.ts'
import { count, formatBytes } from '../format.ts'
import { thisMachine } from '../hub/machine.ts'
import { withHeldView } from '../models/held-view.ts'
import { isWeights } from '../models/model-facts.ts'
import { canonicalRef, shortRef } from '../models/reference.ts'
import { loadPath, splitTarget } from '../models/runtime-view.ts'
import { contextThatFits } from '../runtimes/context.ts'
import {
  HOW_TO_GET,
  installedRuntimes,
  type ModelToRun,
  misfit,
  RUNTIMES,
  type Runtime,
  type RuntimeName
} from '../runtimes/runtimes.ts'
import type { Session } from '../session.ts'
import { exitCodeOf, runToItsEnd } from './exec.ts'
import { importIfAbsent } from './jobs.ts'

export interface RunOptions {
  readonly with?: RuntimeName
}

/**
 * `svc run REF[#FILE] [--with RUNTIME] [-- ARGS]`: starts the first runtime here that loads the model, which is imported
 * from the hub if it is not here. Says which command it runs. @throws ChildEnded with the runtime's exit code
 */
export async function run(
  session: Session,
  target: string,
  given: readonly string[],
  options: RunOptions
): Promise<void> {
  const { ref: typed, file } = splitTarget(target)
  await importIfAbsent(session, typed)
  const ref = await canonicalRef(session, typed)
  // before anything is held: what nothing can load is not in use
  const shape = formatOf((await session.client.open(ref)).files, file)
  const runtime = chooseRuntime(session, shape, options.with)
  await withHeldView(session, ref, async (view) => {
    const model = await toRun(session, view, { ...shape, file })
    if (runtime.name === 'ollama') await giveToOllama(session, model)
    // only the first `--` is ours
    const args = given[0] === '--' ? given.slice(1) : given
    const words = [runtime.program, ...runtime.args(model), ...args]
    tellCommand(session, words)
    await runToItsEnd(session.terminal, words)
  })
}

function formatOf(files: readonly OpenFile[], file: string | undefined): Pick<ModelToRun, 'format' | 'isSplit'> {
  const ggufs = files.filter(({ kind }) => kind === 'weights.gguf')
  return {
    format: ggufs.length > 0 || file?.endsWith('.gguf') === true ? 'gguf' : 'folder',
    isSplit: ggufs.some(({ part }) => part !== undefined && part > 1)
  }
}

/** @throws CliError for one that is absent or does not load it; where there is none at all, with the way to get one */
function chooseRuntime(
  session: Session,
  model: Pick<ModelToRun, 'format' | 'isSplit'>,
  wanted: RuntimeName | undefined
): Runtime {
  const installed = installedRuntimes(session.terminal.env)
  const fitting = installed.filter((runtime) => misfit(runtime, model) === undefined)
  const hint = HOW_TO_GET[model.format]
  if (wanted === undefined) {
    if (fitting[0] !== undefined) return fitting[0]
    const names = RUNTIMES.filter((runtime) => misfit(runtime, model) === undefined).map(({ program }) => program)
    throw new CliError('failed', `no program that loads this model is installed: ${names.join(', ')}`, { hint })
  }
  const runtime = RUNTIMES.find(({ name }) => name === wanted)!
  const why = misfit(runtime, model)
  if (why !== undefined)
    throw new CliError('usage', why, { candidates: fitting.map(({ name }) => `--with ${name}`), hint })
  if (!installed.includes(runtime)) throw new CliError('failed', `${runtime.program} is not in PATH`, { hint })
  return runtime
}

async function toRun(
  session: Session,
  view: View,
  { file, ...shape }: Pick<ModelToRun, 'format' | 'isSplit'> & { readonly file: string | undefined }
): Promise<ModelToRun> {
  const beside = (role: string, fragment: string): string | undefined =>
    view.files.some((each) => each.role === role) ? loadPath(view, fragment) : undefined
  const context = await contextThatFits(view, await thisMachine(session))
  if (context !== undefined && !context.isFitting)
    session.note(
      `careful: it needs about ${formatBytes(context.needBytes)} with a context of ${count(context.tokens, 'token')}, which is more than this machine can spare`
    )
  return {
    ...shape,
    path: file !== undefined || view.files.some(isWeights) ? loadPath(view, file) : view.folder,
    projector: beside('vision-projector', 'mmproj'),
    draft: beside('draft', 'draft'),
    contextTokens: context?.tokens,
    ref: shortRef(view.ref)
  }
}

/** Ollama keeps models of its own: it copies the file, unless it has these bytes. @throws ChildEnded when it refuses */
async function giveToOllama(session: Session, { path, projector, contextTokens, ref }: ModelToRun): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-'))
  try {
    const lines = [
      `FROM ${path}`,
      ...(projector === undefined ? [] : [`FROM ${projector}`]),
      ...(contextTokens === undefined ? [] : [`PARAMETER num_ctx ${contextTokens}`])
    ]
    const modelfile = join(folder, 'Modelfile')
    writeFileSync(modelfile, lines.map((line) => `${line}\n`).join(''))
    session.note('ollama copies the model into its own store; ollama rm frees that')
    const words = ['ollama', 'create', ref, '-f', modelfile]
    tellCommand(session, words)
    const code = await exitCodeOf(session.terminal, words)
    if (code !== 0) throw new ChildEnded(code)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const tellCommand = ({ note }: Session, words: readonly string[]): void =>
  note(`running: ${words.map(spoken).join(' ')}`)

/** A word as a shell takes it. */
const spoken = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)
