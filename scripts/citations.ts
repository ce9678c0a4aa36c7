import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The pages whose paragraphs may be clauses, the page that says which area stands where, and the page of the decisions. */
const DOCS = 'docs/'
const INDEX = 'docs/README.md'
const DECISIONS = 'docs/decisions.md'

/** A clause begins a paragraph: its bold number, or those of several that are told together, then its text. */
const CLAUSE = /^\*\*([a-z]+\.\d+(?:, [a-z]+\.\d+)*)\*\*/gm
const ENTRY = /^\*\*(\d{4})\*\* \*\*[^*]+\.\*\* \S/gm
const ID = '[a-z]+\\.\\d+'
/** Between the words of a citation may be a line break, with the mark of a comment behind it. */
const GAP = '(?:[ \\t]+|[ \\t]*\\r?\\n[ \\t]*(?:(?:\\*|//|#)[ \\t]+)?)'
const CITATION = new RegExp(`\\b[Ss]pec${GAP}(${ID}(?:(?:,|${GAP}and|${GAP}to)${GAP}${ID})*)`, 'g')
const DECISION = new RegExp(`\\b[Dd]ecision${GAP}(\\d{4})\\b`, 'g')
/** Sections of documents that this repository does not have. */
const OLD_FORM = new RegExp(`\\b(?:API|[Dd]ecisions?)(?: document)?${GAP}(?:\u00a7|section${GAP}\\d)`, 'g')
const PAGE = /(?<![\w/.-])docs\/[\w/-]+\.md\b/g

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

/** The clauses of the pages, and what is wrong with them: each once, no gap, every page in the row of the area. */
function readClauses(pages: readonly Page[]): { clauses: Set<string>; problems: string[] } {
  const clauses = new Set<string>()
  const problems: string[] = []
  const index = pages.find(({ path }) => path === INDEX)?.text ?? ''
  const numbers = new Map<string, number[]>()
  for (const { path, text } of pages.filter(({ path }) => path.startsWith(DOCS))) {
    for (const match of text.matchAll(CLAUSE)) {
      const where = `${path}:${lineOf(text, match.index)}`
      for (const id of idsIn(match[1] as string)) {
        if (clauses.has(id)) problems.push(`${where}: clause ${id} exists already`)
        clauses.add(id)
        const [area = '', digits] = id.split('.')
        numbers.set(area, [...(numbers.get(area) ?? []), Number(digits)])
        const row = index.split('\n').find((line) => line.startsWith(`| \`${area}\` |`)) ?? ''
        if (!row.includes(`](${path.slice(DOCS.length)})`))
          problems.push(`${INDEX}: the row of "${area}" lacks ${path}, which has ${id}`)
      }
    }
  }
  for (const [area, given] of numbers) {
    const absent = Array.from({ length: Math.max(...given) }, (_, i) => i + 1).filter((n) => !given.includes(n))
    if (absent.length > 0) problems.push(`${DOCS}: ${area}.${absent.join(`, ${area}.`)} is missing`)
  }
  return { clauses, problems }
}

/** Numbers of the decisions, and what is wrong with them: each once, with a title and a reason. */
function readDecisions(pages: readonly Page[]): { decisions: Set<string>; problems: string[] } {
  const text = pages.find(({ path }) => path === DECISIONS)?.text ?? ''
  const given = [...text.matchAll(ENTRY)].map(([, number]) => number as string)
  const begun = text.match(/^\*\*\d{4}\*\*/gm)?.length ?? 0
  const problems = given
    .filter((number, i) => given.indexOf(number) !== i)
    .map((number) => `${DECISIONS}: number ${number} is taken`)
  if (begun > given.length) problems.push(`${DECISIONS}: a decision lacks its title or its reason`)
  return { decisions: new Set(given), problems }
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

  // pages refer to clauses by their bare numbers; anywhere else a bare number is a citation that was not completed.
  const areas = [...new Set([...known].map((id) => id.split('.')[0]))].join('|')
  if (areas === '') return problems
  if (path.startsWith(DOCS)) {
    const prose = text.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length))
    for (const match of prose.matchAll(new RegExp(`\\b(?:${areas})\\.\\d+\\b`, 'g')))
      if (!known.has(match[0])) report(match.index, `there is no clause ${match[0]}`)
  } else {
    const rest = text.replaceAll(CITATION, (citation) => citation.replaceAll(/[^\n]/g, ' '))
    for (const match of rest.matchAll(new RegExp(`(?<![\\w./'"\`-])(?:${areas})\\.\\d+\\b`, 'g')))
      report(match.index, `write "spec ${match[0]}"`)
  }
  return problems
}

/**
 * Checks that the clauses of the pages in docs and the decisions are well numbered, and that every citation of them
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
