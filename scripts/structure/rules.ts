import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import type { Import } from './imports.ts'
import type { Package, SourceFile, Tree } from './tree.ts'

export type RuleName =
  | 'direction'
  | 'pure'
  | 'deep-import'
  | 'cycle'
  | 'file-size'
  | 'file-name'
  | 'index-only-exports'
  | 'undeclared-dependency'
  | 'unused-dependency'
  | 'forbidden-word'

export interface Violation {
  readonly rule: RuleName
  readonly path: string
  readonly line: number
  readonly message: string
}

/** What each room's sources may import of ours: a package name, or one declared subpath of it (ARCHITECTURE.md). */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  ref: [],
  metainfo: [],
  cas: ['@svc/ref'],
  classify: ['@svc/ref'],
  manifest: ['@svc/ref', '@svc/metainfo'],
  swarm: ['@svc/ref', '@svc/metainfo'],
  'swarm-v1': ['@svc/metainfo'],
  hub: ['@svc/ref'],
  client: ['@svc/ref'],
  view: ['@svc/ref', '@svc/manifest'],
  cli: ['@svc/ref', '@svc/client', '@svc/client/protocol'],
  daemon: [
    '@svc/ref',
    '@svc/metainfo',
    '@svc/cas',
    '@svc/classify',
    '@svc/manifest',
    '@svc/swarm',
    '@svc/swarm-v1',
    '@svc/hub',
    '@svc/client',
    '@svc/view'
  ],
  testkit: [
    '@svc/ref',
    '@svc/metainfo',
    '@svc/cas',
    '@svc/classify',
    '@svc/manifest',
    '@svc/swarm',
    '@svc/hub',
    '@svc/client'
  ],
  bench: [
    '@svc/ref',
    '@svc/metainfo',
    '@svc/cas',
    '@svc/classify',
    '@svc/manifest',
    '@svc/swarm',
    '@svc/swarm-v1',
    '@svc/hub',
    '@svc/client',
    '@svc/testkit'
  ]
}
/** Private packages under packages/internal, bundled into whoever uses them: a dev dependency, allowed to every room. */
const isInternal = (specifier: string): boolean => specifier.startsWith('@svc/internal-')
/** Rooms whose allowance covers all subpaths of the packages in their list. */
const ANY_SUBPATH = new Set(['daemon', 'testkit', 'bench'])

/**
 * Sources without clock, randomness or `node:` modules, but for {@link PURE_NAMES}; and all that they import. The encryption handshake (wire/mse) draws keys, so it is none of them.
 */
const PURE = [
  /^packages\/(?:ref|metainfo|manifest|classify)\/src\//,
  /^packages\/swarm\/src\/(?:[a-z-]+\/)*(?:wire\/(?!mse)|picker)/
]
const IMPURE =
  /\b(?:Date\.now|Math\.random|performance\.now|getRandomValues|randomUUID|randomBytes|set(?:Timeout|Interval|Immediate))\b|\bnew Date\(\)/
const NODE_GLOBALS = /\b(?:Buffer|process|__dirname)\b/

const MAX_LINES = 400
const VAGUE_NAME = /(?:^|\/)(?:utils?|helpers?|common|misc)\.ts$/
// Written in two halves, so that this file passes its own rule.
const FORBIDDEN = new RegExp(
  [
    `\\b${'TO'}DO\\b`,
    `\\b${'FIX'}ME\\b`,
    `\\b${'XX'}X\\b`,
    `/${'work'}/(?:main|shared|\\.)`,
    `/${'root'}/`,
    `\\.\\./${'shared'}/`,
    `registry\\.${'npmjs'}`
  ].join('|')
)

const BUILTIN = new Set(builtinModules)
const isBuiltin = (specifier: string): boolean => specifier.startsWith('node:') || BUILTIN.has(specifier)
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
const isRelative = (specifier: string): boolean => specifier.startsWith('.')
const target = (file: SourceFile, { specifier }: Import): string => posix.join(posix.dirname(file.path), specifier)

/** All violations, in a stable order. */
export function checkTree(tree: Tree): Violation[] {
  return [
    ...tree.packages.flatMap((each) => [
      ...checkDirection(each),
      ...checkPurity(each),
      ...checkDeepImports(each, tree),
      ...checkCycles(each),
      ...checkFiles(each),
      ...checkDependencies(each, tree)
    ]),
    ...checkWords(tree)
  ]
}

function checkDirection({ room, name, src }: Package): Violation[] {
  const allowed = MAY_IMPORT[room] ?? []
  return src.flatMap((file) =>
    file.imports.flatMap(({ specifier, line }): Violation[] => {
      if (!specifier.startsWith('@svc/') || packageOf(specifier) === name || isInternal(specifier)) return []
      if (allowed.includes(specifier) || (ANY_SUBPATH.has(room) && allowed.includes(packageOf(specifier)))) return []
      return [
        {
          rule: 'direction',
          path: file.path,
          line,
          message: `${room} must not import ${specifier}; it may import ${allowed.join(', ') || 'nothing of ours'}`
        }
      ]
    })
  )
}

function pureFiles(src: readonly SourceFile[]): Set<SourceFile> {
  const found = new Set<SourceFile>()
  const add = (file: SourceFile): void => {
    if (found.has(file)) return
    found.add(file)
    const paths = file.imports
      .filter((each) => isRelative(each.specifier) && !each.typeOnly)
      .map((each) => target(file, each))
    src.filter(({ path }) => paths.includes(path)).forEach(add)
  }
  src.filter(({ path }) => PURE.some((pattern) => pattern.test(path))).forEach(add)
  return found
}

function checkPurity({ room, src }: Package): Violation[] {
  const violations: Violation[] = []
  for (const file of pureFiles(src)) {
    for (const { specifier, line } of file.imports.filter((each) => isBuiltin(each.specifier))) {
      if (room !== 'ref' && importsPureNames(file, specifier)) continue
      violations.push({ rule: 'pure', path: file.path, line, message: `a pure module must not import ${specifier}` })
    }
    file.code.split('\n').forEach((text, index) => {
      const word = IMPURE.exec(text)?.[0] ?? (room === 'ref' ? NODE_GLOBALS.exec(text)?.[0] : undefined)
      if (word === undefined) return
      violations.push({ rule: 'pure', path: file.path, line: index + 1, message: `a pure module must not use ${word}` })
    })
  }
  return violations
}

/** Names in `node:` modules that are functions of their input, and so keep a module pure outside of ref. */
const PURE_NAMES: Readonly<Record<string, string>> = {
  'node:crypto': 'createHash|hash',
  'node:net': 'isIP|isIPv4|isIPv6|BlockList',
  'node:buffer': '[A-Za-z]+'
}

function importsPureNames(file: SourceFile, specifier: string): boolean {
  const names = PURE_NAMES[specifier]
  if (names === undefined) return false
  const allowed = new RegExp(`^(?:type )?\\{\\s*(?:(?:${names}|type \\w+)\\s*,?\\s*)+\\}$`)
  return [...file.code.matchAll(/^import\s+([^'"]*?)\s+from\s+'([^']+)'/gm)]
    .filter(([, , from]) => from === specifier)
    .every(([, clause = '']) => allowed.test(clause))
}

function checkDeepImports({ name, folder, src, other }: Package, tree: Tree): Violation[] {
  return [...src, ...other].flatMap((file) =>
    file.imports.flatMap((each): Violation[] => {
      const { specifier, line } = each
      const refuse = (message: string): Violation[] => [{ rule: 'deep-import', path: file.path, line, message }]
      if (isRelative(specifier)) {
        const path = target(file, each)
        if (path.startsWith(`${folder}/`)) return []
        // Tests share data and start programs of other packages; the base of the build configuration is shared too.
        if (
          (!src.includes(file) || folder === 'bench') &&
          (each.byUrl || path.startsWith('vectors/') || path === 'tsup.base.ts')
        )
          return []
        return refuse(`${specifier} leaves the package; import the other package by its name`)
      }
      if (!specifier.startsWith('@svc/') || isInternal(specifier)) return []
      const owner = tree.packages.find((candidate) => candidate.name === packageOf(specifier))
      const subpath = `.${specifier.slice(packageOf(specifier).length)}`
      if (owner?.subpaths.some((declared) => declared === subpath || covers(declared, subpath)) === true) return []
      return refuse(
        owner === undefined
          ? `there is no package ${packageOf(specifier)}`
          : `${specifier} is no declared export of ${owner.name}${owner.name === name ? ' itself' : ''}`
      )
    })
  )
}

/** A pattern of `exports`, such as `./*`. */
function covers(declared: string, subpath: string): boolean {
  const [before = '', after] = declared.split('*')
  return (
    after !== undefined &&
    subpath.length > before.length + after.length &&
    subpath.startsWith(before) &&
    subpath.endsWith(after)
  )
}

function checkCycles({ src }: Package): Violation[] {
  const byPath = new Map(src.map((file) => [file.path, file]))
  const state = new Map<string, 'open' | 'done'>()
  const violations: Violation[] = []
  const visit = (file: SourceFile, trail: readonly string[]): void => {
    state.set(file.path, 'open')
    for (const each of file.imports) {
      if (!isRelative(each.specifier) || each.typeOnly) continue
      const next = byPath.get(target(file, each))
      if (next === undefined || next === file) continue
      if (state.get(next.path) === 'open') {
        const loop = [...trail.slice(trail.indexOf(next.path)), next.path].map((path) => posix.basename(path))
        violations.push({
          rule: 'cycle',
          path: file.path,
          line: each.line,
          message: `import cycle ${loop.join(' → ')}`
        })
      } else if (!state.has(next.path)) {
        visit(next, [...trail, next.path])
      }
    }
    state.set(file.path, 'done')
  }
  for (const file of src) if (!state.has(file.path)) visit(file, [file.path])
  return violations
}

function checkFiles({ src, other }: Package): Violation[] {
  const violations: Violation[] = []
  for (const { path, text, code } of [...src, ...other]) {
    const lines = text.split('\n').length - 1
    const header = /^(?:#!.*\n)?\s*(\/\*[\s\S]*?\*\/|(?:\/\/.*\n)+)/.exec(text)?.[1] ?? ''
    if (lines > MAX_LINES && !/\b(?:because|one file|so that)\b/i.test(header)) {
      violations.push({
        rule: 'file-size',
        path,
        line: 1,
        message: `${lines} lines: split it, or say in a comment at its top why it is one file`
      })
    }
    if (VAGUE_NAME.test(path)) {
      violations.push({ rule: 'file-name', path, line: 1, message: 'name the file after the one noun that it holds' })
    }
    if (/\/src\/index\.ts$/.test(path)) {
      const rest = code.replace(/^export\s[^'"=]*?\bfrom\s*['"][^'"]+['"];?$/gm, '').trim()
      if (rest !== '') {
        violations.push({
          rule: 'index-only-exports',
          path,
          line: 1,
          message: 'index.ts only re-exports: export … from'
        })
      }
    }
  }
  return violations
}

function checkDependencies(own: Package, tree: Tree): Violation[] {
  const violations: Violation[] = []
  const declared = new Set([...own.dependencies, ...(own.isPrivate ? own.devDependencies : []), own.name])
  const inTests = new Set([...declared, ...own.devDependencies, ...tree.rootDependencies])
  const outside = (files: readonly SourceFile[]) =>
    files.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => !isRelative(specifier) && !isBuiltin(specifier))
        .map((each) => ({ file, line: each.line, name: packageOf(each.specifier) }))
    )

  // A name in quotes is a use too: `import(specifier)` where a package without types is loaded.
  const quoted = (names: readonly string[], files: readonly SourceFile[]): string[] =>
    names.filter((name) => files.some(({ code }) => code.includes(`'${name}'`)))
  const used = new Set(quoted(own.dependencies, own.src))
  for (const { file, line, name } of outside(own.src)) {
    used.add(name)
    if (!declared.has(name) && !declared.has(`@types/${name}`) && !isInternal(name)) {
      violations.push({
        rule: 'undeclared-dependency',
        path: file.path,
        line,
        message: `${name} is not in "dependencies"`
      })
    }
  }
  // Starting another package's program from a test is a use of it, which orders the builds.
  const started = tree.packages.filter(({ folder }) =>
    own.other.some(({ code }) => code.includes(`${folder.replace('packages', '..')}/`))
  )
  const usedInTests = new Set([...used, ...quoted(own.devDependencies, own.other), ...started.map(({ name }) => name)])
  for (const { file, line, name } of outside(own.other)) {
    usedInTests.add(name)
    if (!inTests.has(name)) {
      violations.push({
        rule: 'undeclared-dependency',
        path: file.path,
        line,
        message: `${name} is in neither "dependencies" nor "devDependencies"`
      })
    }
  }
  const unused = (name: string, users: ReadonlySet<string>): boolean =>
    !users.has(name) && !users.has(name.replace(/^@types\//, ''))
  const isDeclaredInVain = (names: readonly string[], users: ReadonlySet<string>, field: string) =>
    names
      .filter((name) => unused(name, users))
      .map(
        (name): Violation => ({
          rule: 'unused-dependency',
          path: `${own.folder}/package.json`,
          line: 1,
          message: `nothing imports ${name} of "${field}"`
        })
      )
  return [
    ...violations,
    ...isDeclaredInVain(own.dependencies, used, 'dependencies'),
    ...isDeclaredInVain(own.devDependencies, usedInTests, 'devDependencies')
  ]
}

function checkWords({ texts }: Tree): Violation[] {
  return texts.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index): Violation[] => {
      const word = FORBIDDEN.exec(line)?.[0]
      return word === undefined
        ? []
        : [{ rule: 'forbidden-word', path, line: index + 1, message: `"${word}" has no place here` }]
    })
  )
}
