import { resolve } from 'node:path'
import { TOOLS, type Tool } from '@svc/view'
import { type AdoptableModel, foundModels } from '../adopt/found-models.ts'
import { removeMoved } from '../adopt/moved.ts'
import { type Outcome, takeOver } from '../adopt/take-over.ts'
import { CliError } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { count, formatBytes, formatTable } from '../format.ts'
import type { Session } from '../session.ts'

export interface AdoptOptions {
  readonly dryRun?: boolean
  readonly move?: boolean
  readonly private?: boolean
  readonly keepNames?: boolean
}

/** `svc adopt [TOOL|DIR…] [--dry-run] [--move]`: takes over what other tools hold. */
export async function adopt(session: Session, sources: readonly string[], options: AdoptOptions): Promise<void> {
  const { terminal } = session
  const named = sources.map((source): Tool | { readonly path: string } =>
    isTool(source) ? source : { path: resolve(terminal.cwd, source) }
  )
  const { models, warnings } = await foundModels(session, named)
  for (const { path, message } of warnings) session.note(`warning: ${path}: ${message}`)
  if (models.length === 0) {
    if (session.json) return session.document({ models: [] })
    return session.note(sources.length === 0 ? 'no other tool holds models here' : 'there is nothing to take over')
  }
  if (options.dryRun === true) return show(session, models)
  if (!session.json && !session.quiet) show(session, models)
  const outcomes: Outcome[] = []
  for (const model of models) {
    const outcome = await takeOver(session, model, options)
    outcomes.push(outcome)
    if (!session.json) tell(session, outcome)
  }
  const removedBytes = options.move === true ? await removeMoved(session, outcomes) : undefined
  if (session.json) {
    session.document({
      models: outcomes.map(({ model, refs, damaged, error }) => ({
        ...rowOf(model),
        refs,
        damaged: damaged.map(({ name, path }) => ({ name, path })),
        ...(error !== undefined && { error: { code: error.code, message: error.message } })
      })),
      ...(removedBytes !== undefined && { removedBytes })
    })
  } else if (removedBytes !== undefined) session.note(`removed ${formatBytes(removedBytes)} over there`)
  const damaged = outcomes.reduce((sum, each) => sum + each.damaged.length, 0)
  if (damaged > 0)
    throw new CliError(EXIT.verification, `${count(damaged, 'file')} over there are damaged, and stayed out`, {
      code: 'E_VERIFY_FAILED',
      hint: 'fetch these models anew with: svc import hf'
    })
  const failed = outcomes.filter(({ error }) => error !== undefined)
  if (failed.length > 0) throw new CliError(EXIT.failed, `${count(failed.length, 'model')} could not be taken over`)
}

const isTool = (word: string): word is Tool => (TOOLS as readonly string[]).includes(word)

const rowOf = ({ found, as, hereBytes, takesBytes, by }: AdoptableModel) => ({
  tool: found.tool,
  source: found.source,
  as,
  files: found.files.length,
  sizeBytes: found.sizeBytes,
  hereBytes,
  takesBytes,
  by
})

/** What would come in, and what it takes. */
function show(session: Session, models: readonly AdoptableModel[]): void {
  if (session.json) return session.document({ models: models.map(rowOf) })
  if (session.quiet) {
    for (const { as } of models) session.print(as)
    return
  }
  const rows = models.map(({ found, as, hereBytes, takesBytes, by }) => [
    `${found.tool} ${found.source}`,
    as,
    count(found.files.length, 'file'),
    formatBytes(found.sizeBytes),
    formatBytes(hereBytes),
    by === 'reflink' ? 'nothing: blocks are shared' : formatBytes(takesBytes)
  ])
  for (const line of formatTable([['FROM', 'AS', 'FILES', 'SIZE', 'HERE', 'TAKES'], ...rows])) session.print(line)
  for (const { found } of models) {
    for (const { path, message } of found.warnings) session.note(`warning: ${path}: ${message}`)
  }
  const sum = (of: (model: AdoptableModel) => number): string =>
    formatBytes(models.reduce((total, model) => total + of(model), 0))
  session.note(
    `${count(models.length, 'model')}, ${sum(({ found }) => found.sizeBytes)}; ${sum((model) => model.hereBytes)} of it is here already, ` +
      `${sum((model) => model.takesBytes)} would be copied`
  )
}

function tell(session: Session, { model, refs, damaged, error }: Outcome): void {
  for (const ref of refs) session.print(ref)
  for (const { path } of damaged)
    session.note(`damaged: ${path}: its bytes are not those that the cache names; it stayed out`)
  if (error !== undefined) session.note(`not taken over: ${model.found.tool} ${model.found.source}: ${error.message}`)
}
