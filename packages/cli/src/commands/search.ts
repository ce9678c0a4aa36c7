import { ClientError, type HubEntry, type SearchQuery, type SearchResult } from '@svc/client'
import { CliError, usage } from '../errors.ts'
import { formatSince, SCALES, shortCount } from '../format.ts'
import { membersOf } from '../models/models-here.ts'
import type { Session } from '../session.ts'
import { sayingWhatWaits } from '../slow-answer.ts'
import { catalogSearch } from './catalog.ts'
import { ls } from './inventory.ts'

export interface SearchOptions {
  readonly catalog?: boolean
  readonly here?: boolean
  readonly gguf?: boolean
  readonly safetensors?: boolean
  readonly license?: string
  readonly size?: string
  readonly limit?: string
  readonly page?: string
  readonly format?: string
}

/** `svc search WORDS [--catalog|--here] [--gguf|--safetensors] [--size A-B] [--license L] [--limit N] [--page N]` */
export async function search(session: Session, words: readonly string[], options: SearchOptions): Promise<void> {
  const { catalog, here, page = '1', format } = options
  requireSense(words, options)
  if (here === true) return ls(session, words.join(' '), format === undefined ? {} : { format })
  const as: Session = format === 'json' ? { ...session, json: true } : session
  if (catalog === true) return catalogSearch(as, words)
  const query = queryOf(words, options)
  const limit = options.limit === undefined ? DEFAULT_LIMIT : numberOf('limit', options.limit, MAX_LIMIT)
  const { entries, next } = await sayingWhatWaits(
    session,
    'asking the hub',
    pageOf(session, query, { page: numberOf('page', page, MAX_PAGES), limit })
  )
  if (as.json) return as.document({ entries, next })
  if (format === 'ids' || session.quiet) return entries.forEach(({ repo }) => session.print(repo))
  if (entries.length === 0) return session.note('nothing found')
  const known = await reposHere(session)
  const head = ['REPOSITORY', 'PARAMETERS', 'FORMATS', 'LICENSE', 'DOWNLOADS', 'UPDATED', '']
  const rows = entries.map((entry) => rowOf(entry, known, session))
  session.table([head, ...rows])
  if (next !== undefined && Number(page) < MAX_PAGES) session.note(`next page: --page ${Number(page) + 1}`)
  session.note('show one with: svc show hf REPOSITORY')
}

function requireSense(words: readonly string[], { catalog, here, format: _, ...ofHub }: SearchOptions): void {
  if (words.every((word) => word.trim() === '')) throw usage('there are no words to look for')
  if (catalog === true && here === true) throw usage('--catalog and --here exclude each other')
  const [narrows] = Object.keys(ofHub).filter((each) => HUB_OPTIONS.includes(each))
  if ((catalog ?? here) === true && narrows !== undefined) throw usage(`--${narrows} is for a search of the hub`)
}

/** The other options are those of every command. */
const HUB_OPTIONS: readonly string[] = ['gguf', 'safetensors', 'license', 'size', 'limit', 'page']

function queryOf(words: readonly string[], { gguf, safetensors, license, size }: SearchOptions): SearchQuery {
  if (gguf === true && safetensors === true) throw usage('--gguf and --safetensors exclude each other')
  return {
    q: words.join(' '),
    ...(gguf === true && { format: 'gguf' }),
    ...(safetensors === true && { format: 'safetensors' }),
    ...(license !== undefined && { license }),
    ...sizeOf(size)
  }
}

const rowOf = (entry: HubEntry, known: ReadonlySet<string>, { clock }: Session): string[] => [
  entry.repo,
  entry.parameters === undefined ? '' : shortCount(entry.parameters),
  entry.formats.join(', '),
  entry.license ?? '',
  entry.downloads === undefined ? '' : shortCount(entry.downloads),
  formatSince(entry.updatedAt, clock.now()),
  [entry.gated ? 'gated' : '', entry.private ? 'private' : '', known.has(entry.repo.toLowerCase()) ? 'here' : '']
    .filter((word) => word !== '')
    .join(', ')
]

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1_000
/** What the hub gives at once. */
const MAX_ENTRIES = 100
/** For one page: those that a size leaves out count as given. */
const MAX_ANSWERS = 30
const MAX_PAGES = 50

function numberOf(option: string, text: string, most: number): number {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw usage(`--${option} is a number from 1 to ${most}`)
}

/**
 * A page of `limit` entries, from as many answers of the hub as that takes. @throws CliError that says where to look without a network
 */
async function pageOf(
  { client }: Session,
  query: SearchQuery,
  { page, limit }: { readonly page: number; readonly limit: number }
): Promise<SearchResult> {
  try {
    let cursor: string | undefined
    for (let at = 1; ; at++) {
      const entries: HubEntry[] = []
      for (let answers = 0; entries.length < limit && answers < MAX_ANSWERS; answers++) {
        const asked = `${Math.min(limit - entries.length, MAX_ENTRIES)}`
        const answer = await client.search({ ...query, limit: asked, ...(cursor !== undefined && { cursor }) })
        entries.push(...answer.entries)
        cursor = answer.next
        if (cursor === undefined) break
      }
      if (at === page) return { entries, ...(cursor !== undefined && { next: cursor }) }
      if (cursor === undefined) return { entries: [] }
    }
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'E_SOURCE_UNAVAILABLE') throw error
    const hint = 'svc search --here looks among the models in the store, and needs no network'
    throw new CliError('source', error.message, { code: error.code, hint, cause: error })
  }
}

/** The repositories that models here came from, in lower case. */
async function reposHere({ client }: Session): Promise<ReadonlySet<string>> {
  const members = membersOf(await client.models())
  return new Set(members.flatMap(({ origin }) => (origin?.repo === undefined ? [] : [origin.repo.toLowerCase()])))
}

const SIZE = /^(?:(\d+(?:\.\d+)?)([KMB]))?-(?:(\d+(?:\.\d+)?)([KMB]))?$/i
/** `1B-8B`, `-8B`, `70B-`: parameters. @throws CliError */
function sizeOf(text: string | undefined): Pick<SearchQuery, 'minParameters' | 'maxParameters'> {
  if (text === undefined) return {}
  const [, min, minUnit = '', max, maxUnit = ''] = SIZE.exec(text) ?? []
  if (min === undefined && max === undefined)
    throw usage(`"${text}" is not a range of sizes`, '--size 1B-8B, -8B or 70B-')
  const count = (number: string, unit: string): number => Math.round(Number(number) * SCALES[unit.toUpperCase()]!)
  const [least, most] = [min && count(min, minUnit), max && count(max, maxUnit)]
  if (least && most && least > most) throw usage(`the range "${text}" begins above its end`)
  return { ...(least && { minParameters: `${least}` }), ...(most && { maxParameters: `${most}` }) }
}
