import { dirname, join } from 'node:path/posix'
import { checkFunctions } from './functions.ts'
import { JSON_PARSE } from './json.ts'
import { checkProgramWords } from './programs.ts'
import { checkStyle, type StyleFault } from './style.ts'
import { TERMINAL } from './terminal.ts'
import type { TextFile } from './tree.ts'
import { SYSTEM_CLOCK, WALL_TIME } from './wall-time.ts'

export type RuleName =
  | 'pure'
  | 'function-size'
  | 'package-size'
  | 'file-name'
  | 'index-only-exports'
  | 'digest-cast'
  | 'private-style'
  | 'arrow-style'
  | 'forbidden-word'
  | 'type-name'
  | 'system-clock'
  | 'terminal'
  | 'wall-time'
  | 'json-parse'
  | 'program-word'
  | StyleFault['rule']

export interface Violation {
  readonly rule: RuleName
  readonly path: string
  readonly line: number
  readonly message: string
}

/**
 * Sources without clock or randomness. Which modules they may import is dependency-cruiser's affair; it cannot tell names
 * within a module, nor globals. The encryption handshake (wire/mse) draws keys, so it is none of them.
 */
const PURE =
  /^packages\/(?:(?:ref|metainfo|manifest|classify)\/src\/|swarm\/src\/(?:[a-z-]+\/)*(?:wire\/(?!mse)|picker|errors\.ts))/
const IMPURE =
  /\b(?:Date\.now|Math\.random|performance\.now|getRandomValues|randomUUID|randomBytes|set(?:Timeout|Interval|Immediate))\b|\bnew Date\(\)/
const NODE_GLOBALS = /\b(?:Buffer|process|__dirname)\b/
/** Names in `node:` modules that are functions of their input. */
const PURE_NAMES: Readonly<Record<string, RegExp>> = {
  'node:crypto': /^(?:createHash|hash)$/,
  'node:net': /^(?:isIP|isIPv4|isIPv6|BlockList)$/,
  'node:buffer': /^[A-Za-z]+$/
}

/** A digest is minted where its spelling is checked, and nowhere else. */
const DIGEST_CAST = /\bas (?:readonly )?Sha256Digest\b/g
const MINT = 'packages/ref/src/digest.ts'
/** `#name` is private at run time too; only a constructor has no such spelling. */
const PRIVATE_KEYWORD = /^\s*private (?!constructor\b).*$/gm
/** An arrow is an expression. What needs statements, and a name of its own in a file, is a function. */
const ARROW_WITH_BODY =
  /^(?:export )?const \w+ = (?:async )?(?:<[^\n]*>)?(?:\((?:[^()\n]|\([^()\n]*\))*\)|\(\n(?: .*\n)+\))(?:: [^\n]+)? => \{$/gm
const VAGUE_NAME = /(?:^|\/)(?:utils?|helpers?|common|misc)\.ts$/
/** Lines of the sources of a package; what composes and what calls is smaller than what they are made of. */
const MAX_PACKAGE_LINES: Readonly<Record<string, number>> = { daemon: 6_000 }
const MAX_LINES_OF_OTHERS = 11_000
/** Notes to oneself, and somebody's home folder: examples say /home/me. No pattern matches itself. */
const FORBIDDEN = /\b(?:TO(?:DO)|FIX(?:ME)|XX(?:X))\b|\/(?:home|Users)\/(?!me\b)[a-z]|\/root[/]/

/** Mutations are text of the product, which slow tests put in its place. */
const TEST_FILE = /^(?:packages\/(?:internal\/)?[^/]+\/test|vectors|test)\/.*(?<!\bmutations)\.ts$/
const RELATIVE = /'(\.\.?\/[^'\n]+?)(?:\.ts)?'/g
const SOURCE = /^packages\/(?:internal\/)?(?!testkit\/)[^/]+\/src\//
/** Reads a clock, or waits for time to pass. */
const TIME =
  /\b(?:Date\.now|performance\.(?:now|timeOrigin|mark|measure)|process\.(?:hrtime|uptime)|scheduler\.wait|Temporal\.Now|AbortSignal\.timeout)\b|\bnew Date(?:\(\)|(?![\w(]))|\} = (?:Date|performance)\b|\bpromisify\(set(?:Timeout|Interval)\b|\bimport (?:\* as )?\w+ from 'node:timers/
/** A name that is imported or passed on counts, a socket's own timeout does not; the system's clock is passed on and not called. */
const SYSTEM_TIME = new RegExp(
  `${TIME.source}|(?<![.\\w'"])(?:globalThis\\.)?set(?:Timeout|Interval)\\b|\\bsystemClock\\.\\w+\\(`,
  'g'
)
/** A test may make dates around now, and peers that say something again and again. */
const WALL = new RegExp(
  `${TIME.source}|(?:globalThis\\.|(?<![.\\w]))setTimeout\\(|\\bsetTimeout\\b[^'"]* from 'node:timers|\\bimport\\('node:timers|\\bAtomics\\.wait\\(|(?<!new Date\\()\\bsystemClock\\.\\w+\\(`,
  'g'
)
const MAX_EXCEPTIONS = 10
/** What the daemon runs on its event loop. */
const SERVED = /^packages\/(?!(?:testkit|cas-testsuite|cli|client|ui)\/)(?:internal\/)?[^/]+\/src\//

/** What runs in the programs, their launchers included. The page has no terminal. */
const PROGRAM = /^packages\/(?:internal\/)?(?!testkit\/|cas-testsuite\/|ui\/)[^/]+\/(?:src|bin)\//
/** Ways to a terminal. What a child inherits, it writes to. */
const TO_TERMINAL =
  /\bprocess(?:\??\.(?:stdout|stderr|_rawDebug|report)\b|\[)|\bstd(?:out|err)\b[^}\n]*\} = (?:globalThis\.)?process\b|\bconsole\s*(?:\?\.|[.[])|['"]node:(?:console|tty|process)['"]|\bpino\.(?:destination|transport)\b|\bwritev?Sync\(\s*[12]\b|\b(?:fd|dest): [12]\b|['"]inherit['"]|\bstdio: \[[^\]\n]*\b[12]\b|\/dev\/(?:tty|stdout|stderr|fd\/[12])\b/g

/** Types, and the components of the page. */
const DECLARED_TYPE =
  /^(?:export )?(?:(?:abstract )?(?:type|interface|class) (\w+)|(?:function|const) ([A-Z][a-z]\w*))/gm
/** The contract has the names of what it describes. */
const CONTRACT = 'packages/client/src/protocol/'

const blank = (text: string): string => text.replace(/[^\n]/g, ' ')
/** The source with its comments blanked out; lines and columns stay. Only comments that begin a line are recognized. */
const withoutComments = (source: string): string =>
  source.replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, blank).replace(/(^|[ \t])\/\/ .*$/gm, blank)

/** What no tool of others checks: all violations, in a stable order. */
export function checkTree(tree: readonly TextFile[]): Violation[] {
  const firstTier = firstTierOf(tree)
  return [
    ...tree
      .filter(({ path }) => /^(?:packages|bench|scripts|test|vectors)\/.*\.(?:tsx?|cjs)$/.test(path))
      .flatMap((file) => [...checkPurity(file), ...checkFile(file), ...checkListed(file, firstTier)]),
    ...checkTypeNames(tree),
    ...checkPackageSizes(tree),
    ...checkExceptions(tree),
    ...checkFunctions(tree).map((fault) => ({ rule: 'function-size', ...fault }) as const),
    ...checkProgramWords(tree, withoutComments).map((fault) => ({ rule: 'program-word', ...fault }) as const),
    ...tree.flatMap(checkWords),
    ...tree.flatMap(checkStyle)
  ]
}

/** The tests of the first tier, and the files beside them that these import or run in a thread. */
function firstTierOf(tree: readonly TextFile[]): ReadonlySet<string> {
  const texts = new Map(tree.filter(({ path }) => TEST_FILE.test(path)).map(({ path, text }) => [path, text]))
  const found = new Set([...texts.keys()].filter((path) => path.endsWith('.test.ts')))
  // a set gives also what is added on the way
  for (const path of found)
    for (const [, name = ''] of texts.get(path)!.matchAll(RELATIVE)) {
      const imported = `${join(dirname(path), name)}.ts`
      if (texts.has(imported)) found.add(imported)
    }
  return found
}

function checkPurity({ path, text }: TextFile): Violation[] {
  if (!PURE.test(path)) return []
  const code = withoutComments(text)
  const isRef = path.startsWith('packages/ref/')
  const violations: Violation[] = []
  const refuse = (index: number, what: string): void => {
    const line = code.slice(0, index).split('\n').length
    violations.push({ rule: 'pure', path, line, message: `a pure module must not use ${what}` })
  }
  for (const { index, 0: word } of code.matchAll(new RegExp(IMPURE, 'g'))) refuse(index, word)
  if (isRef) for (const { index, 0: word } of code.matchAll(new RegExp(NODE_GLOBALS, 'g'))) refuse(index, word)
  for (const match of code.matchAll(/^import\s+([^'"]*?)\s+from\s+'(node:[^']+)'/gm)) {
    const [, clause = '', module = ''] = match
    const allowed = PURE_NAMES[module]
    const names = /^\{([\s\S]*)\}$/.exec(clause)?.[1]?.split(',') ?? [clause]
    const impure = names
      .map((name) => name.trim())
      .find((name) => name !== '' && !name.startsWith('type ') && !(allowed?.test(name) ?? false))
    if (impure !== undefined) refuse(match.index, `${impure} of ${module}`)
  }
  return violations
}

function checkFile({ path, text }: TextFile): Violation[] {
  const violations: Violation[] = []
  const refuseEach = (rule: RuleName, pattern: RegExp, message: string): void => {
    for (const { index } of text.matchAll(pattern))
      violations.push({ rule, path, line: text.slice(0, index).split('\n').length, message })
  }
  refuseEach('private-style', PRIVATE_KEYWORD, 'write #name instead of private name')
  refuseEach('arrow-style', ARROW_WITH_BODY, 'write function name() { … }: an arrow is for an expression')
  if (path.includes('/src/') && path !== MINT)
    refuseEach('digest-cast', DIGEST_CAST, 'parse it: parseDigest, tryParseDigest, digestFromHex')
  if (VAGUE_NAME.test(path)) {
    const message = 'name the file after the one noun that it holds'
    violations.push({ rule: 'file-name', path, line: 1, message })
  }
  if (/\/src\/index\.ts$/.test(path)) {
    const rest = withoutComments(text).replace(/^export\s[^'"=]*?\bfrom\s*['"][^'"]+['"];?$/gm, '')
    if (rest.trim() !== '') {
      const message = 'index.ts only re-exports: export … from'
      violations.push({ rule: 'index-only-exports', path, line: 1, message })
    }
  }
  return violations
}

/** Rules with exceptions. Pure modules have one of their own, without. */
const LISTED_RULES = [
  {
    rule: 'terminal',
    list: 'scripts/structure/terminal.ts',
    appliesTo: (path: string, _: ReadonlySet<string>) => PROGRAM.test(path),
    pattern: TO_TERMINAL,
    exceptions: TERMINAL,
    message: "write to an Output (@svc/internal-terminal): strangers' text would control the terminal"
  },
  {
    rule: 'system-clock',
    list: 'scripts/structure/wall-time.ts',
    appliesTo: (path: string, _: ReadonlySet<string>) => SOURCE.test(path) && !PURE.test(path),
    pattern: SYSTEM_TIME,
    exceptions: SYSTEM_CLOCK,
    message: 'time comes from the Clock that was given: a test could not let it pass otherwise'
  },
  {
    rule: 'wall-time',
    list: 'scripts/structure/wall-time.ts',
    appliesTo: (path: string, firstTier: ReadonlySet<string>) => firstTier.has(path),
    pattern: WALL,
    exceptions: WALL_TIME,
    message: 'a test of the first tier gives its own clock, or awaits an event: a busy machine fails it otherwise'
  },
  {
    rule: 'json-parse',
    list: 'scripts/structure/json.ts',
    appliesTo: (path: string, _: ReadonlySet<string>) => SERVED.test(path),
    pattern: /\bJSON\.parse\b/g,
    exceptions: JSON_PARSE,
    most: 30,
    message:
      'whoever wrote the text decides how long that takes: bound it, or read it in a thread, and say so in the list'
  }
] as const

function checkListed({ path, text }: TextFile, firstTier: ReadonlySet<string>): Violation[] {
  const code = withoutComments(text)
  return LISTED_RULES.filter(
    ({ appliesTo, exceptions }) => appliesTo(path, firstTier) && !(path in exceptions)
  ).flatMap(({ rule, pattern, message }) =>
    [...code.matchAll(pattern)].map(({ index }) => {
      const line = code.slice(0, index).split('\n').length
      return { rule, path, line, message }
    })
  )
}

/** A package that grows beyond what one reads is several. */
function checkPackageSizes(tree: readonly TextFile[]): Violation[] {
  const lines = new Map<string, number>()
  for (const { path, text } of tree) {
    const name = /^packages\/((?:internal\/)?[^/]+)\/src\/.*\.tsx?$/.exec(path)?.[1]
    if (name !== undefined) lines.set(name, (lines.get(name) ?? 0) + text.split('\n').length - 1)
  }
  return [...lines].flatMap(([name, count]): Violation[] => {
    const most = MAX_PACKAGE_LINES[name] ?? MAX_LINES_OF_OTHERS
    const message = `its sources have ${count} lines, at most ${most}: move what is of another kind to its home`
    return count <= most ? [] : [{ rule: 'package-size', path: `packages/${name}/src`, line: 1, message }]
  })
}

/** Two things of one name are read as one. */
function checkTypeNames(tree: readonly TextFile[]): Violation[] {
  const places = new Map<string, string>()
  const declared = tree
    .filter(({ path }) => SOURCE.test(path) && !path.startsWith(CONTRACT))
    .flatMap(({ path, text }) =>
      [...text.matchAll(DECLARED_TYPE)].map(({ 1: type = '', 2: name = type, index }) => ({ path, text, name, index }))
    )
  return declared.flatMap(({ path, text, name, index }): Violation[] => {
    const other = places.get(name)
    places.set(name, path)
    if (other === undefined || other === path) return []
    const line = text.slice(0, index).split('\n').length
    return [
      { rule: 'type-name', path, line, message: `${other} has another ${name}: name one of them after what it is` }
    ]
  })
}

/** The lists are short, and name only what needs it. */
function checkExceptions(tree: readonly TextFile[]): Violation[] {
  return LISTED_RULES.filter(({ list }) => tree.some(({ path }) => path === list)).flatMap(
    ({ rule, list, pattern, exceptions, ...rest }) => {
      const most = 'most' in rest ? rest.most : MAX_EXCEPTIONS
      const refuse = (message: string): Violation => ({ rule, path: list, line: 1, message })
      const idle = Object.keys(exceptions).filter((path) => {
        const file = tree.find((each) => each.path === path)
        return file === undefined || withoutComments(file.text).search(pattern) === -1
      })
      return [
        ...idle.map((path) => refuse(`${path} needs no exception`)),
        ...(Object.keys(exceptions).length > most ? [refuse(`more than ${most} exceptions`)] : [])
      ]
    }
  )
}

const checkWords = ({ path, text }: TextFile): Violation[] =>
  text.split('\n').flatMap((line, index): Violation[] => {
    const word = FORBIDDEN.exec(line)?.[0]
    if (word === undefined) return []
    return [{ rule: 'forbidden-word', path, line: index + 1, message: `"${word}" has no place here` }]
  })
