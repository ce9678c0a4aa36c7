import type { TextFile } from './tree.ts'

/** What works in any program knows no command line and no configuration file: it gives advice, and programs put it into words. */
const LIBRARY =
  /^packages\/(?:internal\/(?:state|models|server)|library|sources|sharing|mirror|catalog|cas|view|hub|oci)\/src\//
const COMMAND = /\b(?:add|group|renaming)\(\s*'([a-z]+)/g
const SECTION = /^ {2}(\w+): \{$/gm
/** Sections of the configuration whose keys have other tables. */
const TABLES = ['trust', 'views', 'webseed']

export interface ProgramWord {
  readonly path: string
  readonly line: number
  readonly message: string
}

/** Commands of `svc`, `svcd`, and keys of the configuration in the code of libraries. @param codeOf a file without its comments */
export function checkProgramWords(tree: readonly TextFile[], codeOf: (text: string) => string): ProgramWord[] {
  const named = (under: string, pattern: RegExp): string[] =>
    tree
      .filter(({ path }) => path.startsWith(under))
      .flatMap(({ text }) => [...text.matchAll(pattern)].map(([, name = '']) => name))
  const commands = new Set(named('packages/cli/src/program/', COMMAND))
  const sections = new Set([...named('packages/daemon/src/config/keys.ts', SECTION), ...TABLES])
  const oneOf = (words: ReadonlySet<string>): string => (words.size === 0 ? '(?!)' : `(?:${[...words].join('|')})`)
  const pattern = new RegExp(`\\bsvcd\\b|\\bsvc ${oneOf(commands)}\\b|\\[${oneOf(sections)}(?:\\.\\w+)?\\] \\w`, 'g')
  return tree
    .filter(({ path }) => LIBRARY.test(path))
    .flatMap(({ path, text }) => {
      const code = codeOf(text)
      return [...code.matchAll(pattern)].map(({ index, 0: word }) => ({
        path,
        line: code.slice(0, index).split('\n').length,
        message: `"${word}" is of a program: give an Advice, whose sentence daemon/src/advice.ts makes`
      }))
    })
}
