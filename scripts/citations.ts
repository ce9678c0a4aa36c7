import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Where the numbered clauses and the decisions live, from the root of the repository. */
const SPEC = 'docs/spec'
const DECISIONS = 'docs/decisions'

/** A clause begins a paragraph: its bold number, then its text. */
const CLAUSE = /^\*\*([a-z]+)\.(\d+)\*\*/gm
const ID = '[a-z]+\\.\\d+'
/** Between the words of a citation may be a line break, with the mark of a comment behind it. */
const GAP = '(?:[ \\t]+|[ \\t]*\\r?\\n[ \\t]*(?:(?:\\*|//|#)[ \\t]+)?)'
const CITATION = new RegExp(`\\b[Ss]pec${GAP}(${ID}(?:(?:,|${GAP}and|${GAP}to)${GAP}${ID})*)`, 'g')
const DECISION = new RegExp(`\\b[Dd]ecision${GAP}(\\d{4})\\b`, 'g')
/** Sections of documents that this repository does not have. */
const OLD_FORM = new RegExp(`\\b(?:API|[Dd]ecisions?)(?: document)?${GAP}(?:\u00a7|section${GAP}\\d)`, 'g')
const PAGE = new RegExp(`\\b(?:${SPEC}|${DECISIONS})/[\\w-]+\\.md\\b`, 'g')

const TEXT = /\.(?:[cm]?[jt]sx?|json|md|ya?ml|toml|sh|py|c|service|socket)$/
const SKIPPED = new Set(['node_modules', 'dist', 'coverage', 'CHANGELOG.md', 'pnpm-lock.yaml'])
const HIDDEN = new Set(['.changeset', '.ci', '.github'])

/** Every text file below a folder, sorted; generated folders and hidden ones left out. */
function textFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !SKIPPED.has(name) && (!name.startsWith('.') || HIDDEN.has(name)))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return textFiles(path)
      return entry.isFile() && TEXT.test(entry.name) ? [path] : []
    })
    .sort()
}

const lineOf = (text: string, index: number): number => text.slice(0, index).split('\n').length

const idsIn = (text: string): string[] => text.match(new RegExp(ID, 'g')) ?? []

interface Page {
  /** From the root of the repository. */
  readonly path: string
  readonly text: string
}

/** Clause numbers of the pages, and what is wrong with them: each once, one area a page, no gap, every page listed. */
function readClauses(pages: readonly Page[]): { clauses: Set<string>; problems: string[] } {
  const clauses = new Set<string>()
  const problems: string[] = []
  const index = pages.find(({ path }) => path === `${SPEC}/README.md`)?.text ?? ''
  const areas = new Map<string, string>()
  for (const { path, text } of pages) {
    if (!path.startsWith(`${SPEC}/`) || path === `${SPEC}/README.md`) continue
    const numbers: number[] = []
    for (const match of text.matchAll(CLAUSE)) {
      const [area = '', digits = ''] = [match[1], match[2]]
      const id = `${area}.${digits}`
      const where = `${path}:${lineOf(text, match.index)}`
      if (clauses.has(id)) problems.push(`${where}: clause ${id} exists already`)
      clauses.add(id)
      numbers.push(Number(digits))
      const home = areas.get(area) ?? path
      areas.set(area, home)
      if (home !== path) problems.push(`${where}: clauses of "${area}" stand in ${home}`)
    }
    const absent = numbers.map((_, i) => i + 1).filter((number) => !numbers.includes(number))
    if (absent.length > 0) problems.push(`${path}: number ${absent.join(', ')} is missing`)
    const own = [...areas].filter(([, home]) => home === path).map(([area]) => area)
    if (own.length !== 1) problems.push(`${path}: has clauses of ${own.length} areas, not of one`)
    const row = new RegExp(`^\\|\\s*\`${own[0]}\`\\s*\\|\\s*\\[[^\\]]+\\]\\(${path.slice(SPEC.length + 1)}\\)`, 'm')
    if (!row.test(index)) problems.push(`${SPEC}/README.md: no row for ${path}`)
  }
  return { clauses, problems }
}

const SECTIONS = ['What was open', 'Decision', 'Why', 'Consequences']

/** Numbers of the decisions, and what is wrong with the pages: name, heading, sections, and their row in the index. */
function readDecisions(pages: readonly Page[]): { decisions: Set<string>; problems: string[] } {
  const decisions = new Set<string>()
  const problems: string[] = []
  const index = pages.find(({ path }) => path === `${DECISIONS}/README.md`)?.text ?? ''
  const rows = [...index.matchAll(/^\|\s*(\d{4})\s*\|\s*\[([^\]]+)\]\(([^)]+)\)/gm)].map((match) => ({
    number: match[1] as string,
    title: match[2] as string,
    file: match[3] as string
  }))
  for (const { path, text } of pages) {
    const file = path.slice(DECISIONS.length + 1)
    if (!path.startsWith(`${DECISIONS}/`) || file === 'README.md') continue
    const number = /^(\d{4})-[a-z0-9-]+\.md$/.exec(file)?.[1]
    if (number === undefined) {
      problems.push(`${path}: is not named NNNN-title.md`)
      continue
    }
    if (decisions.has(number)) problems.push(`${path}: number ${number} is taken`)
    decisions.add(number)
    const title = new RegExp(`^# ${number}\\. (.+)$`, 'm').exec(text)?.[1]
    const row = rows.filter((each) => each.file === file)
    if (title === undefined) problems.push(`${path}: has no heading "# ${number}. Title"`)
    if (row.length !== 1) problems.push(`${DECISIONS}/README.md: ${row.length} rows for ${file}, not one`)
    else if (row[0]?.number !== number || row[0].title !== title)
      problems.push(`${DECISIONS}/README.md: the row of ${file} has another number or title than the page`)
    const lacking = SECTIONS.filter((name) => !text.includes(`\n## ${name}\n`))
    if (lacking.length > 0) problems.push(`${path}: lacks ${lacking.join(', ')}`)
  }
  for (const { file } of rows)
    if (!pages.some(({ path }) => path === `${DECISIONS}/${file}`))
      problems.push(`${DECISIONS}/README.md: ${file} does not exist`)
  return { decisions, problems }
}

/** What one file cites that leads nowhere. */
function checkPage({ path, text }: Page, known: Set<string>, decisions: Set<string>, paths: Set<string>): string[] {
  const problems: string[] = []
  const report = (index: number, what: string): void => void problems.push(`${path}:${lineOf(text, index)}: ${what}`)
  for (const match of text.matchAll(CITATION))
    for (const id of idsIn(match[1] as string)) if (!known.has(id)) report(match.index, `there is no clause ${id}`)
  for (const match of text.matchAll(DECISION))
    if (!decisions.has(match[1] as string)) report(match.index, `there is no decision ${match[1]}`)
  for (const match of text.matchAll(OLD_FORM)) report(match.index, `"${match[0]}" is no citation: name a clause`)
  for (const match of text.matchAll(PAGE)) if (!paths.has(match[0])) report(match.index, `there is no ${match[0]}`)

  // Clauses refer to one another by their bare numbers; anywhere else a bare number is a citation that was not completed.
  const areas = [...new Set([...known].map((id) => id.split('.')[0]))].join('|')
  if (path.startsWith(`${SPEC}/`)) {
    for (const match of text.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length)).matchAll(/\b[a-z]+\.\d+\b/g))
      if (!known.has(match[0])) report(match.index, `there is no clause ${match[0]}`)
  } else if (areas !== '') {
    const rest = text.replaceAll(CITATION, (citation) => citation.replaceAll(/[^\n]/g, ' '))
    for (const match of rest.matchAll(new RegExp(`(?<![\\w./'"\`-])(?:${areas})\\.\\d+\\b`, 'g')))
      report(match.index, `write "spec ${match[0]}"`)
  }
  return problems
}

/**
 * Checks that the contract in docs/spec and the decisions in docs/decisions are well numbered, and that every citation of them
 * below `root` (code, tests, vectors, documents) leads to one.
 * @returns what is wrong, as `path:line: what`; empty when all is well.
 */
export function checkCitations(root: string): string[] {
  const pages = textFiles(root).map((path) => ({ path: relative(root, path), text: readFileSync(path, 'utf8') }))
  const { clauses, problems: ofClauses } = readClauses(pages)
  const { decisions, problems: ofDecisions } = readDecisions(pages)
  const paths = new Set(pages.map(({ path }) => path))
  return [...ofClauses, ...ofDecisions, ...pages.flatMap((page) => checkPage(page, clauses, decisions, paths))]
}
