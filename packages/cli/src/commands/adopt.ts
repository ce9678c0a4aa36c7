import { resolve } from 'node:path'
import { TOOLS, type Tool } from '@svc/view'
import { Downloads, LOOK_MS, notHere } from '../adopt/downloads.ts'
import { type AdoptableModel, type FoundModels, foundModels, readCaches } from '../adopt/found-models.ts'
import { MovedFiles } from '../adopt/moved.ts'
import { type AdoptOutcome, TakeOver, type TakeOverOptions } from '../adopt/take-over.ts'
import { CliError } from '../errors.ts'
import { count, formatBytes } from '../format.ts'
import { canAsk, saysYes } from '../questions/question.ts'
import { mayShareAdopted } from '../questions/sharing.ts'
import type { Session } from '../session.ts'

export interface AdoptOptions extends TakeOverOptions {
  readonly share?: boolean
  readonly dryRun?: boolean
  readonly move?: boolean
  readonly watch?: boolean
}

/** `svc adopt [TOOL|DIR…]`: imports models from the caches of other tools; asks on a terminal. @throws CliError */
export async function adopt(session: Session, sources: readonly string[], options: AdoptOptions): Promise<void> {
  const named = sources.map((source): Tool | { readonly path: string } =>
    isTool(source) ? source : { path: resolve(session.terminal.cwd, source) }
  )
  if (options.watch === true) return watched(session, named, options)
  const found = await foundModels(session, await readCaches(session, named), options)
  const { models, warnings } = found
  for (const { path, message } of warnings) session.note(`warning: ${path}: ${message}`)
  if (models.length === 0) {
    if (session.json) return session.document({ models: [] })
    return session.note(sources.length === 0 ? 'no other tool has models here' : 'there is nothing to import')
  }
  if (options.dryRun === true) return show(session, models)
  if (!(await isAgreed(session, models, options)))
    throw new CliError('usage', 'nothing was imported', { hint: '--yes skips the question' })
  refuse(await takenOver(session, found, options))
}

/** `svc adopt --watch`: offers what other tools have, and what they download from now on, until Ctrl-C. */
async function watched(
  session: Session,
  named: readonly (Tool | { readonly path: string })[],
  options: AdoptOptions
): Promise<void> {
  const { clock, signal } = session
  const downloads = new Downloads(clock)
  session.note('waiting for what other tools download; Ctrl-C ends it')
  const look = async (): Promise<void> => {
    const came = await downloads.look(await readCaches(session, named))
    if (!came.some(({ wanted }) => wanted.length > 0)) return
    const found = await foundModels(session, came, options)
    const models = await notHere(session, found.models)
    // the tool still uses their files
    const others = found.models.filter((model) => !models.includes(model)).flatMap((model) => model.found.files)
    const usedElsewhere = [...found.usedElsewhere, ...others.map(({ path }) => path)]
    if (models.length > 0 && (await isAgreed(session, models, options)))
      await takenOver(session, { ...found, models, usedElsewhere }, options)
  }
  while (!signal.aborted) {
    try {
      await look()
    } catch (error) {
      // in the midst of a look Ctrl-C ends a request; an import that it leaves behind says so itself
      if (!signal.aborted || error instanceof CliError) throw error
    }
    await clock.sleep(LOOK_MS, signal).catch(() => undefined)
  }
}

/** Shows what would be imported; asks at a terminal. */
async function isAgreed(session: Session, models: readonly AdoptableModel[], options: AdoptOptions): Promise<boolean> {
  if (session.json || session.quiet) return true
  await show(session, models)
  if (options.yes === true || !canAsk(session)) return true
  const what = models.length === 1 ? 'Import it' : `Import these ${models.length}`
  return saysYes(session, `${what}${options.move === true ? ', and remove the originals' : ''}? `)
}

/** Imports, and tells what came of it. */
async function takenOver(session: Session, found: FoundModels, options: AdoptOptions): Promise<AdoptOutcome[]> {
  const outcomes: AdoptOutcome[] = []
  const moved = options.move === true ? new MovedFiles(session, found) : undefined
  const takeOver = new TakeOver(session, { ...options, private: !(await mayShareAdopted(session, options)) })
  try {
    for (const model of found.models) {
      const outcome = await takeOver.run(model)
      outcomes.push(outcome)
      if (!session.json) await tell(session, outcome)
      await moved?.tried(outcome)
    }
  } finally {
    await moved?.clearUp()
  }
  const removedBytes = moved?.removedBytes
  // where a view of the store follows the tool's folder, links take the place of what went
  if (removedBytes) await session.client.standingViews()
  if (session.json) await document(session, outcomes, removedBytes)
  else if (removedBytes !== undefined) session.note(`removed ${formatBytes(removedBytes)} from the other tools`)
  return outcomes
}

/** @throws CliError if something was damaged, or failed */
function refuse(outcomes: readonly AdoptOutcome[]): void {
  const damaged = outcomes.reduce((sum, each) => sum + each.damaged.length, 0)
  if (damaged > 0)
    throw new CliError(
      'verification',
      `${count(damaged, 'file')} of other tools ${damaged === 1 ? 'is' : 'are'} damaged and not imported`,
      {
        code: 'E_VERIFY_FAILED',
        hint: 'fetch these models again with: svc import hf'
      }
    )
  const failed = outcomes.filter(({ error }) => error !== undefined)
  if (failed.length > 0) throw new CliError('failed', `${count(failed.length, 'model')} could not be imported`)
}

async function document(
  session: Session,
  outcomes: readonly AdoptOutcome[],
  removedBytes: number | undefined
): Promise<void> {
  const models: object[] = []
  for (const outcome of outcomes) {
    const { model, members, damaged, error } = outcome
    models.push({
      ...rowOf(model),
      refs: members.map(({ ref }) => ref),
      withheld: await withheldOf(session, outcome),
      damaged: damaged.map(({ name, path }) => ({ name, path })),
      ...(error !== undefined && { error: { code: error.code, message: error.message } })
    })
  }
  session.document({ models, removedBytes })
}

const isTool = (word: string): word is Tool => (TOOLS as readonly string[]).includes(word)

const rowOf = ({ found, as, quants, taken, hereBytes, unknownBytes, sharedBytes, takesBytes, by }: AdoptableModel) => ({
  tool: found.tool,
  source: found.source,
  as,
  quants,
  taken,
  files: found.files.length,
  sizeBytes: found.sizeBytes,
  hereBytes,
  unknownBytes,
  sharedBytes,
  takesBytes,
  by
})

/** Prints what would be imported, the space it takes, and what it saves. */
async function show(session: Session, models: readonly AdoptableModel[]): Promise<void> {
  if (session.json) return session.document({ models: models.map(rowOf) })
  if (session.quiet) {
    for (const { as } of models) session.print(as)
    return
  }
  const rows = models.map(({ found, as, hereBytes, unknownBytes, sharedBytes, takesBytes, by }) => [
    `${found.tool} ${found.source}`,
    as,
    count(found.files.length, 'file'),
    formatBytes(found.sizeBytes),
    knownBytes(hereBytes + sharedBytes, unknownBytes),
    by === 'reflink'
      ? 'nothing: blocks are shared'
      : `${unknownBytes > 0 && takesBytes > 0 ? 'up to ' : ''}${formatBytes(takesBytes)}`
  ])
  session.table([['FROM', 'AS', 'FILES', 'SIZE', 'SAVED', 'TAKES'], ...rows])
  for (const { found, taken } of models) {
    for (const { path, message } of found.warnings) session.note(`warning: ${path}: ${message}`)
    for (const ref of taken)
      session.note(`${ref} is another model here and keeps its name; --replace gives the name to the new one`)
  }
  session.note(
    [
      `${count(models.length, 'model')}, ${sumOf(models, ({ found }) => found.sizeBytes)}:`,
      hereAlready(models),
      `${sumOf(models, ({ sharedBytes }) => sharedBytes)} are duplicates,`,
      `${sumOf(models, sharedOnDisk)} would share blocks with the originals, and ${sumOf(models, ({ takesBytes }) => takesBytes)} would be copied`
    ].join(' ')
  )
  const { freeBytes } = (await session.client.status()).store
  const takes = models.reduce((total, { takesBytes }) => total + takesBytes, 0)
  if (freeBytes !== undefined && takes > freeBytes)
    session.note(
      `warning: only ${formatBytes(freeBytes)} are free on the disk of the store; with --move the space of each original is freed before the next model`
    )
}

/** @param unknown bytes that may be here as well */
function knownBytes(known: number, unknown: number): string {
  if (unknown === 0) return formatBytes(known)
  return known === 0 ? 'not known' : `${formatBytes(known)} or more`
}

function hereAlready(models: readonly AdoptableModel[]): string {
  const total = (of: (model: AdoptableModel) => number): number => models.reduce((sum, model) => sum + of(model), 0)
  const [here, unknown] = [total(({ hereBytes }) => hereBytes), total(({ unknownBytes }) => unknownBytes)]
  if (unknown === 0) return `${formatBytes(here)} of them are here already,`
  const rest = `how much of ${formatBytes(unknown)} is here is not known before they are read,`
  return here === 0 ? rest : `${formatBytes(here)} of them are here already, ${rest}`
}

const sumOf = (models: readonly AdoptableModel[], of: (model: AdoptableModel) => number): string =>
  formatBytes(models.reduce((total, model) => total + of(model), 0))

const sharedOnDisk = ({ found, hereBytes, sharedBytes, by }: AdoptableModel): number =>
  by === 'reflink' ? Math.max(0, found.sizeBytes - hereBytes - sharedBytes) : 0

interface Withheld {
  readonly ref: string
  readonly fact: string
  readonly reason: string
}

/** The imported quants that are withheld from others, and why. */
async function withheldOf({ client }: Session, { members }: AdoptOutcome): Promise<readonly Withheld[]> {
  const found: Withheld[] = []
  for (const { ref } of members) {
    const { doors } = await client.why(`svc:///${ref}`)
    const withheld = doors.find(({ door }) => door === 'export')?.withheld
    if (withheld !== undefined) found.push({ ref, ...withheld })
  }
  return found
}

async function tell(session: Session, outcome: AdoptOutcome): Promise<void> {
  const { model, members, damaged, warnings = [], error } = outcome
  for (const { ref } of members) session.print(ref)
  for (const warning of warnings) session.note(`warning: ${warning}`)
  for (const { ref, reason } of await withheldOf(session, outcome)) session.note(`withheld: ${ref}: ${reason}`)
  for (const { path } of damaged)
    session.note(`damaged: ${path}: its bytes do not match the digest in the cache; it was not imported`)
  if (error !== undefined) session.note(`not imported: ${model.found.tool} ${model.found.source}: ${error.message}`)
}
