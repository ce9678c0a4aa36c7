/** One import or re-export of a source file. */
export interface Import {
  readonly specifier: string
  readonly line: number
  /** Erased at run time: `import type`, `export type … from`, or `import('x')` in a type position is not told apart. */
  readonly typeOnly: boolean
  /** Named by `new URL('./x', import.meta.url)`: a worker, or a file that a test reads or starts. */
  readonly byUrl: boolean
}

const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

/** The source with its comments blanked out; lines and columns stay. Only comments that begin a line are recognised. */
export const withoutComments = (source: string): string =>
  source.replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, blank).replace(/(^|[ \t])\/\/ .*$/gm, blank)

const STATIC = /^(import|export)\b(?!\s*\()([^'"`;=]*?)(?:\bfrom\s*)?['"]([^'"\n]+)['"]/gm
const DYNAMIC = /\b(?:import|require|import\.meta\.resolve)\(\s*['"]([^'"\n]+)['"]/g
const WORKER = /new URL\(\s*[`'"](\.{1,2}\/[^`'"$\n]+)[`'"$]/g

/** Static, dynamic and worker (`new URL('./x', import.meta.url)`) imports, by a scan that house style makes exact enough. */
export function importsOf(source: string): Import[] {
  const code = withoutComments(source)
  const lineAt = (index: number): number => code.slice(0, index).split('\n').length
  const found: Import[] = []
  for (const match of code.matchAll(STATIC)) {
    const [, keyword, clause = '', specifier = ''] = match
    if (keyword === 'export' && !/[*}]\s*(as\s+\w+\s*)?$|\btype\b[\s\S]*\}\s*$/.test(clause)) continue
    found.push({ specifier, line: lineAt(match.index), typeOnly: isTypeOnly(clause), byUrl: false })
  }
  for (const match of code.matchAll(DYNAMIC)) {
    found.push({ specifier: match[1] as string, line: lineAt(match.index), typeOnly: false, byUrl: false })
  }
  for (const match of code.matchAll(WORKER)) {
    found.push({ specifier: match[1] as string, line: lineAt(match.index), typeOnly: false, byUrl: true })
  }
  return found
}

function isTypeOnly(clause: string): boolean {
  if (/^\s*type\b/.test(clause)) return true
  const names = /\{([\s\S]*)\}/.exec(clause)?.[1]
  if (names === undefined || /^\s*\w+\s*,/.test(clause)) return false
  const each = names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  return each.length > 0 && each.every((name) => name.startsWith('type '))
}
