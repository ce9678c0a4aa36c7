import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** The words of identifiers: `maxPeersPerTorrent` has four. */
const WORD = /[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+/g
/** Comments that begin a line, and texts: what is left are identifiers. */
const PROSE = /^[ \t]*\/\*[\s\S]*?\*\/|(?:^|[ \t])\/\/ .*$|'(?:[^'\\\n]|\\.)*'|`[^`]*`/gm

/** The first cells of a table of the glossary, one word each. */
function wordsOf(page: string, head: string): string[] {
  const table = page.split(`| ${head} |`)[1]?.split('\n\n')[0] ?? ''
  return [...table.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)]
    .flatMap(([, cell = '']) => cell.split(', '))
    .filter((word) => !word.startsWith('-'))
}

/** Each word of the identifiers and the file names of some sources, in lower case, with where it stands first. */
function identifierWords(sources: ReadonlyMap<string, string>): Map<string, string> {
  const words = new Map<string, string>()
  for (const [path, text] of sources) {
    const code = text.replace(PROSE, (prose) => prose.replace(/[^\n]/g, ' '))
    for (const [i, line] of [basename(path), ...code.split('\n')].entries())
      for (const [word] of line.matchAll(WORD)) {
        const lower = word.toLowerCase()
        if (!words.has(lower)) words.set(lower, i === 0 ? path : `${path}:${i}`)
      }
  }
  return words
}

/**
 * Compares the words of docs/glossary.md with the identifiers of the sources.
 * @returns what is wrong; empty when the code uses every word that the page defines, and none that it bans.
 */
export function checkGlossary(page: string, sources: ReadonlyMap<string, string>): string[] {
  const used = identifierWords(sources)
  const has = (word: string): string | undefined => used.get(word) ?? used.get(`${word}s`)
  const [defined, banned] = [wordsOf(page, 'Word'), wordsOf(page, 'Not')]
  if (defined.length === 0 || banned.length === 0) return ['the glossary lacks one of its tables']
  return [
    ...defined
      .filter((word) => has(word.toLowerCase()) === undefined)
      .map((word) => `no identifier has the word "${word}"`),
    ...banned.flatMap((word) => {
      const place = has(word)
      return place === undefined ? [] : [`${place}: the glossary has another word for "${word}"`]
    })
  ]
}

/** The sources of all packages below a folder. */
export const packageSources = (root: string): Map<string, string> =>
  new Map(
    globSync('packages/{*,internal/*}/src/**/*.{ts,tsx}', { cwd: root })
      .sort()
      .map((path) => [path, readFileSync(join(root, path), 'utf8')])
  )
