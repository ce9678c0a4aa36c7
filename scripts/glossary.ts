import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** The words of identifiers: `maxPeersPerTorrent` has four. */
const WORD = /[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+/g
/** Comments that begin a line, and texts: what is left are identifiers. */
const PROSE = /^[ \t]*\/\*[\s\S]*?\*\/|(?:^|[ \t])\/\/ .*$|'(?:[^'\\\n]|\\.)*'|`[^`]*`/gm

/** The rows of a table of the glossary: words, and what the page says of them. */
function rowsOf(page: string, head: string): (readonly [word: string, meaning: string])[] {
  const table = page.split(`| ${head} |`)[1]?.split('\n\n')[0] ?? ''
  return [...table.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm)]
    .flatMap(([, cell = '', meaning = '']) => cell.split(', ').map((word) => [word, meaning] as const))
    .filter(([word]) => !word.startsWith('-'))
}

/** Words that mean different things, and must not be mixed up in files about one of them. */
interface Neighbours {
  /** Words of file names. */
  readonly where: readonly string[]
  readonly banned: readonly string[]
  readonly meant: string
  /** Identifiers that the API fixes. */
  readonly fixed: ReadonlySet<string>
}

function neighboursOf(page: string): Neighbours[] {
  const [, table = ''] = page.split('| In | Not | But | Names of the API |')
  return [...table.split('\n\n')[0]!.matchAll(/^\| ([a-z, ]+) \| ([a-z, ]+) \| ([^|]+) \| ([^|\n]*)\|$/gm)].map(
    ([, where = '', banned = '', meant = '', fixed = '']) => ({
      where: where.split(', '),
      banned: banned.split(', '),
      meant,
      fixed: new Set([...fixed.matchAll(/`(\w+)`/g)].map(([, name]) => name!))
    })
  )
}

const codeOf = (text: string): string => text.replace(PROSE, (prose) => prose.replace(/[^\n]/g, ' '))

/** Where a file about one thing has an identifier with the word for its neighbour. */
function mixedUp(sources: ReadonlyMap<string, string>, neighbours: readonly Neighbours[]): string[] {
  const problems: string[] = []
  for (const [path, text] of sources)
    for (const { where, banned, meant, fixed } of neighbours) {
      const named = basename(path).toLowerCase().match(WORD) ?? []
      if (!named.some((word) => where.some((each) => isForm(word, each)))) continue
      for (const [i, line] of codeOf(text).split('\n').entries())
        for (const [name] of line.matchAll(/[A-Za-z_$][\w$]*/g))
          if (!fixed.has(name) && (name.match(WORD) ?? []).some((word) => banned.some((each) => isForm(word, each))))
            problems.push(`${path}:${i + 1}: ${name}: this file is about what the glossary calls "${meant}"`)
    }
  return problems
}

/** `pins`, `pinned` and `unpin` are forms of `pin`. */
const isForm = (word: string, of: string): boolean =>
  new RegExp(`^(?:un)?${of}(?:s|ed|d|${of.at(-1)}ed|ing)?$`).test(word.toLowerCase())

/** Each word of the identifiers and the file names of some sources, in lower case, with where it stands first. */
function identifierWords(sources: ReadonlyMap<string, string>): Map<string, string> {
  const words = new Map<string, string>()
  for (const [path, text] of sources) {
    for (const [i, line] of [basename(path), ...codeOf(text).split('\n')].entries())
      for (const [word] of line.matchAll(WORD)) {
        const lower = word.toLowerCase()
        if (!words.has(lower)) words.set(lower, i === 0 ? path : `${path}:${i}`)
      }
  }
  return words
}

/** Words with two meanings, and such that the page defines twice. */
const ambiguous = (rows: readonly (readonly [word: string, meaning: string])[]): string[] =>
  rows.flatMap(([word, meaning], i) => {
    if (rows.findIndex(([other]) => other === word) !== i) return [`"${word}" is defined twice`]
    return meaning.includes(';') ? [`"${word}" has two meanings: "${meaning}"`] : []
  })

/** Where texts have a word, on its own; `` `name` `` is an identifier. */
function placesOf(word: string, texts: ReadonlyMap<string, string>): string[] {
  const pattern = new RegExp(`(?<![\\w-])${word.replaceAll('`', '')}s?(?![\\w-])`, word.startsWith('`') ? '' : 'i')
  return [...texts].flatMap(([path, text]) => {
    const at = text.split('\n').findIndex((line) => pattern.test(line))
    return at < 0 ? [] : [`${path}:${at + 1}`]
  })
}

/**
 * Compares the words of docs/glossary.md with the identifiers of the sources, and with other documents.
 * @returns what is wrong; empty when each word that the page defines has one meaning and is in use, none that it bans is,
 *   and none stands where its neighbour is meant.
 */
export function checkGlossary(
  page: string,
  sources: ReadonlyMap<string, string>,
  documents: ReadonlyMap<string, string> = new Map()
): string[] {
  const used = identifierWords(sources)
  const has = (word: string): string | undefined => used.get(word) ?? used.get(`${word}s`)
  const [defined, banned] = [rowsOf(page, 'Word'), rowsOf(page, 'Not')]
  if (defined.length === 0 || banned.length === 0) return ['the glossary lacks one of its tables']
  const code = new Map([...sources].map(([path, text]) => [path, codeOf(text)]))
  return [
    ...ambiguous(defined),
    ...defined
      .filter(([term]) => term.split(' ').some((word) => has(word.toLowerCase()) === undefined))
      .map(([term]) => `no identifier has the word "${term}"`),
    ...banned.flatMap(([word]) => {
      const [inCode] = word.startsWith('`') ? placesOf(word, code) : [has(word)]
      return [...(inCode === undefined ? [] : [inCode]), ...placesOf(word, documents)].map(
        (place) => `${place}: the glossary has another word for "${word}"`
      )
    }),
    ...mixedUp(sources, neighboursOf(page))
  ]
}

/** What people read of us, but for the glossary itself. */
export const documentsOf = (root: string): Map<string, string> =>
  new Map(
    globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md'], { cwd: root })
      .filter((path) => path !== 'docs/glossary.md' && !path.includes('node_modules'))
      .sort()
      .map((path) => [path, readFileSync(join(root, path), 'utf8')])
  )

/** The sources of all packages below a folder. */
export const packageSources = (root: string): Map<string, string> =>
  new Map(
    globSync('packages/{*,internal/*}/src/**/*.{ts,tsx}', { cwd: root })
      .sort()
      .map((path) => [path, readFileSync(join(root, path), 'utf8')])
  )
