import type { CatalogEntry, Job } from '@svc/client'
import { count } from '../format.ts'
import { tryParseHubSource } from '../hub/hub-source.ts'
import { importName } from '../models/reference.ts'
import { chooseQuants } from '../questions/choose-quants.ts'
import type { ReplaceField } from '../questions/replacing.ts'
import type { Session } from '../session.ts'
import { sayingWhatWaits } from '../slow-answer.ts'
import { auxOf, type ChoiceOptions, choiceOf, finishImport } from './imports.ts'

/** `svc catalog search TERMS` */
export async function catalogSearch(session: Session, terms: readonly string[]): Promise<void> {
  const { entries } = await session.client.searchCatalog(terms.join(' '), { names: 'normalized' })
  if (session.json) return session.document({ entries })
  if (entries.length === 0) return session.note('nothing found')
  const rows = entries.map((entry) => [entry.repo, entry.quant ?? '', entry.sizeLabel, `${entry.seeds}`, entry.name])
  session.table([['MODEL', 'QUANT', 'SIZE', 'SEEDS', 'NAME'], ...rows])
  session.note('import one with: svc import catalog MODEL:QUANT')
}

export interface CatalogImportOptions extends ChoiceOptions {
  readonly trustCatalog?: boolean
  readonly peer?: readonly string[]
  readonly all?: boolean
}

/** `svc import catalog owner/name[:QUANT[,QUANT]]`: a torrent of the catalog has one quant, so each is an import. */
export async function importCatalog(session: Session, text: string, options: CatalogImportOptions): Promise<void> {
  const { repo, quant = options.quant } = tryParseHubSource(text) ?? { repo: text }
  const { quant: _, ...choice } = options
  const named = quant?.split(',').filter((each) => each !== '')
  const wanted = named ?? (options.file === undefined ? await listedQuants(session, repo, options) : [undefined])
  const start = (quant: string | undefined, field: ReplaceField): Promise<Job> => {
    const job = session.client.importCatalog({
      repo,
      ...choiceOf(choice),
      ...auxOf(choice),
      ...(quant !== undefined && { quant }),
      ...(options.trustCatalog === true && { trustCatalog: true }),
      ...(options.as !== undefined && { as: importName(options.as, repo) }),
      ...(options.peer !== undefined && { peers: [...options.peer] }),
      ...field
    })
    return sayingWhatWaits(session, `asking the catalog and the hub about ${repo}`, job)
  }
  for (const each of wanted) await finishImport(session, (field) => start(each, field), options)
}

/** If no quant was given: the only one, or those that the user picks. `undefined` leaves it to the daemon. */
async function listedQuants(
  session: Session,
  repo: string,
  { all, keepNames }: CatalogImportOptions
): Promise<readonly (string | undefined)[]> {
  const search = session.client.searchCatalog(repo, keepNames === true ? {} : { names: 'normalized' })
  const { entries } = await sayingWhatWaits(session, `asking the catalog what it has of ${repo}`, search)
  const lines = linesOf(entries, repo)
  // none, one, or an ambiguous name: the daemon accepts it or explains the problem
  if (lines.length < 2) return [undefined]
  const quants = lines.map(({ quant }) => quant ?? '')
  // torrents without distinct quants are identified by their files
  const names = new Set(quants).size === quants.length ? quants : lines.map(({ name }) => name)
  if (all === true) return names
  const rows = lines.map(({ sizeLabel, seeds, name }, i) => [`  ${quants[i]}`, sizeLabel, `${seeds}`, name])
  const chosen = await chooseQuants(session, {
    what: lines[0]!.repo,
    command: 'svc import catalog',
    names,
    table: [['  QUANT', 'SIZE', 'SEEDS', 'NAME'], ...rows],
    all: `--all for ${count(lines.length, 'torrent')}`
  })
  return chosen ?? names
}

/** The torrents of one repository, without duplicates; ignores case only if that is not ambiguous. */
function linesOf(entries: readonly CatalogEntry[], repo: string): readonly CatalogEntry[] {
  const exact = entries.filter((entry) => entry.repo === repo)
  const folded = entries.filter((entry) => entry.repo.toLowerCase() === repo.toLowerCase())
  const own = exact.length > 0 ? exact : new Set(folded.map((entry) => entry.repo)).size === 1 ? folded : []
  return [...new Map(own.map((entry) => [entry.infohash, entry])).values()]
}
