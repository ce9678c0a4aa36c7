import type { Inventory, ModelMember } from '@svc/client'
import { tryParseByteSize } from '@svc/client/protocol'
import { CliError, usage } from '../errors.ts'
import { count, formatBytes, formatSince } from '../format.ts'
import { membersOf, repositoryIn, type StoredMember } from '../models/models-here.ts'
import { olderVersions } from '../models/older-versions.ts'
import { unknownRepository } from '../models/unknown-here.ts'
import type { Session } from '../session.ts'

export interface LsOptions {
  readonly filter?: readonly string[]
  readonly sort?: string
  readonly format?: string
}

interface ListedMember extends StoredMember {
  readonly state: string
  readonly shared: string
}

/** `svc ls [TEXT] [--filter F]… [--sort KEY] [--format table|json|csv|ids]`: one line per quant */
export async function ls(session: Session, text: string | undefined, options: LsOptions): Promise<void> {
  const format = formatOf(session, options.format)
  const tests = (options.filter ?? []).map((text) => filterOf(text, session.clock.now()))
  const [inventory, { swarm }] = await Promise.all([session.client.models(), session.client.status()])
  const seeded = new Set(
    swarm.torrents.flatMap(({ state, manifestDigest = '' }) => (state === 'seeding' ? [manifestDigest] : []))
  )
  const words = (text?.toLowerCase().replace(/^svc:\/\/\//, '') ?? '').split(' ')
  const isWanted = (name: string): boolean => words.every((word) => name.includes(word))
  const all = membersOf(inventory).map((member) => lineOf(member, seeded, swarm.enabled && swarm.seed))
  const lines = all
    .sort(SORTS[options.sort ?? 'name'])
    .filter((line) => isWanted(line.ref) && tests.every((test) => test(line)))
  // repositories without readable quants are listed, too, unless a filter applies
  const broken = inventory.namespaces
    .filter(({ ns, name, members }) => members.length === 0 && tests.length === 0 && isWanted(`${ns}/${name}`))
    .map(({ ns, name, indexPresent }) => ({
      ref: `${ns}/${name}`,
      what: `its list of quants ${indexPresent ? 'cannot be read' : 'is gone'}`
    }))
  if (format === 'ids') return lines.forEach(({ ref }) => session.print(ref))
  if (format === 'csv') return printCsv(session, lines)
  const tags = Map.groupBy(inventory.tags, ({ repo }) => repo)
  const tagsOf = (repo: string): string[] => (tags.get(repo) ?? []).map(({ tag }) => tag)
  if (format === 'json')
    return session.document({
      models: lines.map(({ state: _, shared, repo, ...line }) => ({
        ...line,
        shared: shared === 'yes',
        tags: tagsOf(repo)
      })),
      damaged: [...broken, ...(inventory.damaged ?? [])]
    })
  tellDamaged(session, inventory)
  const older = tests.length > 0 ? [] : (await olderVersions(session, inventory)).filter(({ ref }) => isWanted(ref))
  if (lines.length + broken.length + older.length === 0) {
    if (all.length > 0) return session.note(`none of the ${count(all.length, 'model')} here matches`)
    return session.note(
      'no models yet; import one with: svc import hf ORG/NAME, svc import local PATH --as ns/name, or svc adopt'
    )
  }
  const rows = lines.map((line) => [
    line.ref,
    formatBytes(line.sizeBytes),
    line.state,
    line.shared,
    formatSince(line.importedAt, session.clock.now()),
    formatSince(line.lastUsedAt, session.clock.now()),
    tagsOf(line.repo).join(', ')
  ])
  for (const { ref, sizeBytes } of older) rows.push([ref, formatBytes(sizeBytes), 'kept by an upgrade', '', '', '', ''])
  for (const { ref, what } of broken) rows.push([ref, '', `DAMAGED: ${what}`, '', '', '', ''])
  const head = ['MODEL', 'SIZE', 'STATE', 'SHARED', 'IMPORTED', 'USED', rows.some((row) => row[6]) ? 'TAGS' : '']
  session.table([head, ...rows])
}

function formatOf(session: Session, format: string | undefined): string {
  if (session.json) return 'json'
  return format ?? (session.quiet ? 'ids' : 'table')
}

function stateOf({ complete, away, damaged, malformed, missingBytes = 0, newer, pinned }: ModelMember): string {
  const more = `${newer === undefined ? '' : ', newer at the hub'}${pinned === true ? ', pinned' : ''}`
  if (complete) return `${malformed === undefined ? 'complete' : 'NOT A MODEL'}${more}`
  if (away === true && damaged !== true) return `away${more}`
  return `${damaged === true ? 'DAMAGED, ' : ''}${formatBytes(missingBytes)} missing`
}

const lineOf = (member: StoredMember, seeded: ReadonlySet<string>, seeds: boolean): ListedMember => ({
  ...member,
  state: stateOf(member),
  shared: sharedOf(member, seeded, seeds)
})

/** `yes` only if others can fetch it now: an import is announced at the next start, or by `svc share`. */
function sharedOf(member: ModelMember, seeded: ReadonlySet<string>, seeds: boolean): string {
  if (member.private) return 'private'
  if (member.withheld !== undefined && !seeded.has(member.manifest)) return 'held back'
  if (seeded.has(member.manifest)) return 'yes'
  return seeds ? 'not yet' : 'no'
}

const SORTS: Readonly<Record<string, (a: ListedMember, b: ListedMember) => number>> = {
  name: (a, b) => (a.ref < b.ref ? -1 : 1),
  size: (a, b) => b.sizeBytes - a.sizeBytes,
  imported: (a, b) => (b.importedAt ?? '').localeCompare(a.importedAt ?? ''),
  used: (a, b) => (b.lastUsedAt ?? '').localeCompare(a.lastUsedAt ?? '')
}

const FILTER = /^(size|imported|used)([<>])(\d+(?:\.\d+)?)([a-z]*)$/
const WORDS: ReadonlyMap<string, (line: ListedMember) => boolean> = new Map([
  ['complete', ({ complete }) => complete],
  ['incomplete', ({ complete }) => !complete],
  ['away', ({ away }) => away === true],
  ['damaged', ({ damaged }) => damaged === true],
  ['malformed', ({ malformed }) => malformed !== undefined],
  ['private', (line) => line.private]
])
const SPANS: ReadonlyMap<string, number> = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3600],
  ['d', 86_400],
  ['w', 604_800]
])

/** `size>1GB`, `used>30d` (longer ago, or never), `imported<7d`, or one of {@link WORDS}. @throws CliError */
function filterOf(text: string, nowMs: number): (line: ListedMember) => boolean {
  const word = WORDS.get(text)
  if (word !== undefined) return word
  const [, field = '', sign, number, unit = ''] = FILTER.exec(text.toLowerCase()) ?? []
  const scale = SPANS.get(unit)
  const bound = field === 'size' ? tryParseByteSize(`${number}${unit}`) : scale && Number(number) * scale
  if (bound === undefined)
    throw usage(`"${text}" is not a filter`, "--filter 'size>1GB', 'used>30d', 'imported<7d' or damaged")
  return (line) => {
    const at = field === 'used' ? line.lastUsedAt : line.importedAt
    const ageSeconds = at === undefined ? Number.POSITIVE_INFINITY : (nowMs - Date.parse(at)) / 1000
    const value = field === 'size' ? line.sizeBytes : ageSeconds
    return sign === '>' ? value > bound : value < bound
  }
}

/** RFC 4180, with a header line. */
function printCsv(session: Session, lines: readonly ListedMember[]): void {
  const cell = (value: unknown): string => {
    const text = value === undefined ? '' : String(value)
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  const keys = [
    'ref',
    'sizeBytes',
    'complete',
    'missingBytes',
    'damaged',
    'private',
    'importedAt',
    'lastUsedAt'
  ] as const
  session.print(keys.join(','))
  for (const line of lines) session.print(keys.map((key) => cell(line[key])).join(','))
}

/** `svc show ns/name`: the quants and tags of one repository. */
export async function showRepo(session: Session, repo: string): Promise<void> {
  const inventory = await session.client.models()
  const entry = repositoryIn(inventory, repo)
  if (entry === undefined) throw damagedRepo(inventory, repo) ?? unknownRepository(inventory, repo)
  const tags = inventory.tags.filter((tag) => tag.repo === repo)
  if (session.json) return session.document({ ...entry, tags })
  const rows = entry.members.map((member) => [
    `${repo}:${member.quant}`,
    formatBytes(member.sizeBytes),
    stateOf(member)
  ])
  session.table(rows)
  for (const { tag, digest } of tags)
    session.print(`tag ${tag}${digest === entry.indexDigest ? '' : ', an older version'}: ${repo}:${tag}+QUANT`)
}

/** The error for a repository whose record cannot be read. */
function damagedRepo({ damaged = [] }: Inventory, repo: string): CliError | undefined {
  const record = damaged.find(({ file }) => file === `state/repos/${repo}.json`)
  return record && new CliError('verification', `${record.file}: ${record.what}`, { code: 'E_CORRUPTION' })
}

function tellDamaged(session: Session, { damaged = [] }: Inventory): void {
  for (const { file, what } of damaged) session.note(`${file}: ${what}`)
}
