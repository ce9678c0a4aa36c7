import type { Inventory, ModelMember } from '@svc/client'
import { CliError, usage } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { count, formatBytes, formatTable, shortDigest } from '../format.ts'
import { asRepo, canonicalRef, shortRef } from '../reference.ts'
import type { Session } from '../session.ts'

export interface LsOptions {
  readonly filter?: readonly string[]
  readonly sort?: string
  readonly format?: string
}

interface Line extends ModelMember {
  readonly ref: string
  readonly state: string
  readonly shared: string
}

/** `svc ls [TEXT] [--filter F]… [--sort KEY] [--format table|json|csv|ids]`: a line per quant */
export async function ls(session: Session, text: string | undefined, options: LsOptions): Promise<void> {
  const format = formatOf(session, options.format)
  const tests = (options.filter ?? []).map(filterOf)
  const [inventory, { swarm }] = await Promise.all([session.client.models(), session.client.status()])
  const seeded = new Set(
    swarm.torrents.flatMap(({ state, manifestDigest = '' }) => (state === 'seeding' ? [manifestDigest] : []))
  )
  const fits = (repo: string): boolean => text === undefined || repo.includes(text.toLowerCase())
  const namespaces = inventory.namespaces.filter(({ ns, name }) => fits(`${ns}/${name}`))
  if (session.json) {
    const tags = inventory.tags.filter(({ repo }) => fits(repo))
    return session.document({ ...inventory, namespaces, tags })
  }
  const lines = sorted(
    namespaces.flatMap(({ ns, name, members }) =>
      members.map((member) => lineOf(`${ns}/${name}`, member, seeded, swarm.enabled && swarm.seed))
    ),
    options.sort ?? 'name'
  ).filter((line) => tests.every((test) => test(line)))
  if (format === 'ids') return lines.forEach(({ ref }) => session.print(ref))
  if (format === 'json') return session.document(lines.map(({ shared: _, ...line }) => line))
  if (format === 'csv') return printCsv(session, lines)
  const broken = namespaces.filter(({ members }) => members.length === 0)
  if (lines.length === 0 && broken.length === 0) {
    const empty = 'nothing here yet; import with: svc import local PATH --as ns/name'
    return session.note(text === undefined && tests.length === 0 ? empty : 'nothing fits')
  }
  const tagsOf = (repo: string): string =>
    inventory.tags.flatMap((each) => (each.repo === repo ? [each.tag] : [])).join(', ')
  const rows = lines.map((line) => [
    line.ref,
    formatBytes(line.sizeBytes),
    line.state,
    line.shared,
    since(line.importedAt),
    since(line.lastUsedAt),
    tagsOf(line.ref.slice(0, line.ref.indexOf(':')))
  ])
  for (const { ns, name, indexPresent } of broken)
    rows.push([`${ns}/${name}`, '', indexPresent ? 'index invalid' : 'index missing', '', '', '', ''])
  const head = ['MODEL', 'SIZE', 'STATE', 'SHARED', 'IMPORTED', 'USED', rows.some((row) => row[6]) ? 'TAGS' : '']
  for (const row of formatTable([head, ...rows])) session.print(row)
}

function formatOf(session: Session, format: string | undefined): string {
  if (format === undefined) return session.quiet ? 'ids' : 'table'
  if (['table', 'json', 'csv', 'ids'].includes(format)) return format
  throw usage(`"${format}" is no format`, '--format table, json, csv or ids')
}

const lineOf = (repo: string, member: ModelMember, seeded: ReadonlySet<string>, seeds: boolean): Line => ({
  ...member,
  ref: `${repo}:${member.quant}`,
  state: member.complete
    ? 'complete'
    : `${member.damaged === true ? 'DAMAGED, ' : ''}${formatBytes(member.missingBytes ?? 0)} missing`,
  shared: sharedOf(member, seeded, seeds)
})

/** `yes` only of what others get now: an import is announced from the next start on, or when it is shared. */
function sharedOf(member: ModelMember, seeded: ReadonlySet<string>, seeds: boolean): string {
  if (member.private) return 'private'
  if (member.restricted === true && !seeded.has(member.manifest)) return 'held back'
  if (seeded.has(member.manifest)) return 'yes'
  return seeds ? 'not yet' : 'no'
}

const SORTS: Readonly<Record<string, (a: Line, b: Line) => number>> = {
  name: (a, b) => (a.ref < b.ref ? -1 : 1),
  size: (a, b) => b.sizeBytes - a.sizeBytes,
  imported: (a, b) => (b.importedAt ?? '').localeCompare(a.importedAt ?? ''),
  used: (a, b) => (b.lastUsedAt ?? '').localeCompare(a.lastUsedAt ?? '')
}

function sorted(lines: Line[], key: string): Line[] {
  const order = SORTS[key]
  if (order === undefined) throw usage(`there is no order "${key}"`, `--sort ${Object.keys(SORTS).join(', ')}`)
  return lines.sort(order)
}

const FILTER = /^(size|imported|used)([<>])(\d+(?:\.\d+)?)([a-z]*)$/i
const WORDS: Readonly<Record<string, (line: Line) => boolean>> = {
  complete: ({ complete }) => complete,
  incomplete: ({ complete }) => !complete,
  damaged: ({ damaged }) => damaged === true,
  private: (line) => line.private
}
const SIZES: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40
}
const SPANS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `size>1GB`, `used>30d` (so long ago, or never), `imported<7d`, `complete`, `incomplete`, `damaged`, `private`. @throws CliError */
function filterOf(text: string): (line: Line) => boolean {
  const word = WORDS[text]
  if (word !== undefined) return word
  const match = FILTER.exec(text)
  const [, field, sign, number, unit] = (match ?? []) as unknown as [string, string, string, string, string]
  const scale = match === null ? undefined : (field.toLowerCase() === 'size' ? SIZES : SPANS)[unit.toLowerCase()]
  if (scale === undefined)
    throw usage(`"${text}" is no filter`, "--filter 'size>1GB', 'used>30d', 'imported<7d' or damaged")
  const bound = Number(number) * scale
  return (line) => {
    const at = field.toLowerCase() === 'used' ? line.lastUsedAt : line.importedAt
    const value =
      field.toLowerCase() === 'size'
        ? line.sizeBytes
        : at === undefined
          ? Number.POSITIVE_INFINITY
          : (Date.now() - Date.parse(at)) / 1000
    return sign === '>' ? value > bound : value < bound
  }
}

/** RFC 4180, with a line of names. */
function printCsv(session: Session, lines: readonly Line[]): void {
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

/** `3 days ago`, for a column. */
function since(at: string | undefined): string {
  if (at === undefined) return ''
  const seconds = Math.max(0, (Date.now() - Date.parse(at)) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${count(Math.floor(seconds / 3600), 'hour')} ago`
  return `${count(Math.floor(seconds / 86_400), 'day')} ago`
}

/** `svc du [REF]`: what each model costs alone, and what it shares with others. */
export async function du(session: Session, text: string | undefined): Promise<void> {
  const { namespaces } = await session.client.models()
  const wanted = text === undefined ? undefined : (asRepo(text) ?? shortRef(await canonicalRef(session, text)))
  const models: { ref: string; blobs: Map<string, number> }[] = []
  const users = new Map<string, number>()
  for (const { ns, name, quants } of namespaces)
    for (const quant of quants) {
      const { files } = await session.client.open(`svc:///${ns}/${name}:${quant}`)
      const blobs = new Map(files.map(({ digest, size }) => [digest, size]))
      for (const digest of blobs.keys()) users.set(digest, (users.get(digest) ?? 0) + 1)
      models.push({ ref: `${ns}/${name}:${quant}`, blobs })
    }
  const rows = models
    .filter(({ ref }) => wanted === undefined || ref === wanted || ref.startsWith(`${wanted}:`))
    .map(({ ref, blobs }) => {
      const sum = (which: (digest: string) => boolean): number =>
        [...blobs].reduce((bytes, [digest, size]) => (which(digest) ? bytes + size : bytes), 0)
      const alone = sum((digest) => users.get(digest) === 1)
      return { ref, bytes: sum(() => true), aloneBytes: alone, sharedBytes: sum((digest) => users.get(digest)! > 1) }
    })
  if (text !== undefined && rows.length === 0)
    throw new CliError(EXIT.notFound, `there is no ${text} here`, { code: 'E_UNKNOWN_REF' })
  const { result } = await session.client.waitJob(await session.client.gc({ dryRun: true, graceSeconds: 0 }))
  if (session.json) return session.document({ models: rows, freeableBytes: result?.bytes ?? 0 })
  const table = rows.map(({ ref, bytes, aloneBytes, sharedBytes }) => [
    ref,
    formatBytes(bytes),
    formatBytes(aloneBytes),
    formatBytes(sharedBytes)
  ])
  for (const line of formatTable([['MODEL', 'SIZE', 'ALONE', 'SHARED'], ...table])) session.print(line)
  if ((result?.bytes ?? 0) > 0)
    session.note(`${formatBytes(result!.bytes!)} belong to no model: svc gc gives them back`)
}

/** `svc show ns/name`: the quants and tags of one repository. */
export async function showRepo(session: Session, repo: string): Promise<void> {
  const inventory = await session.client.models()
  const entry = inventory.namespaces.find(({ ns, name }) => `${ns}/${name}` === repo)
  if (entry === undefined) throw unknownRepo(inventory, repo)
  const tags = inventory.tags.filter((tag) => tag.repo === repo)
  if (session.json) return session.document({ ...entry, tags })
  session.print(`${repo}  index ${shortDigest(entry.indexDigest)}${entry.indexPresent ? '' : ' (missing)'}`)
  for (const quant of entry.quants) session.print(`  ${repo}:${quant}`)
  for (const { tag, digest } of tags) session.print(`  tag ${tag}  ${shortDigest(digest)}`)
}

function unknownRepo(inventory: Inventory, repo: string): CliError {
  const ns = repo.split('/', 1)[0]
  const candidates = inventory.namespaces.filter((entry) => entry.ns === ns).map((entry) => `${entry.ns}/${entry.name}`)
  return new CliError(EXIT.notFound, `there is no ${repo} here`, { code: 'E_UNKNOWN_REF', candidates })
}
