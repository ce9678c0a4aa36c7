// Each rule that the repository's configuration of a tool switches on, seen to fail once: small houses with one fault in each
// file, held against copies of the very files that `pnpm check` reads, by the commands that it runs.
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CHECKS, type Check, type CheckName, runStep } from '../../scripts/checks.ts'
import { buildHouse, type Files } from './house.ts'

const root = join(import.meta.dirname, '../..')
const text = (path: string): string => readFileSync(join(root, path), 'utf8')
const copied = (...paths: readonly string[]): Files => Object.fromEntries(paths.map((path) => [path, text(path)]))
const manifest = (name: string, more: object = {}): object => ({ name, type: 'module', private: true, ...more })

/** The last step of a check, over a house, with further arguments. */
async function check(name: CheckName, files: Files, ...args: readonly string[]): ReturnType<typeof runStep> {
  using house = buildHouse({ 'node_modules/.gitkeep': '', ...files })
  symlinkSync(join(root, 'node_modules/@types'), join(house.root, 'node_modules/@types'))
  const { steps }: Check = CHECKS.find((each) => each.name === name)!
  return await runStep([...steps.at(-1)!, ...args], house.root)
}

/** The names of what a configuration switches on, whatever their group. */
function switchedOn(value: unknown, name = ''): string[] {
  if (value === 'error' || value === true) return [name]
  if (typeof value !== 'object' || value === null) return []
  if ('level' in value) return switchedOn(value.level, name)
  return Object.entries(value).flatMap(([key, inner]) => switchedOn(inner, key))
}

/** Faults that Biome finds, by file; a file is in `src/`. */
const UNTIDY: Readonly<Record<string, readonly [code: string, ...rules: string[]]>> = {
  'indentation.ts': ['export function f(): number {\n    return 1\n}\n', 'format'],
  'semicolons.ts': ['export const x = 1;\n', 'format'],
  'quotes.ts': ['export const x = "a"\n', 'format'],
  'commas.ts': ['export const x = [\n  // one\n  1,\n]\n', 'format'],
  'columns.ts': [`export const x = [${"'a word', ".repeat(12)}'the last word']\n`, 'format'],
  'arrow-parentheses.ts': ['export const f: (x: number) => number = x => x\n', 'format'],
  'arrow-return.ts': ['export const f = () => {\n  return 1\n}\n', 'useConsistentArrowReturn'],
  'arrow-function.ts': ['export const f = function () {\n  return 1\n}\n', 'useArrowFunction'],
  'const.ts': ['let x = 1\nexport const y = x\n', 'useConst'],
  'import-type.ts': ["import { A } from './a.ts'\n\nexport type B = A\n", 'useImportType'],
  'import-order.ts': ["import b from './b.ts'\nimport a from './a.ts'\n\nexport { a, b }\n", 'organizeImports'],
  'template.ts': ["export const f = (x: string) => 'a' + x\n", 'useTemplate'],
  'node-protocol.ts': ["import fs from 'fs'\n\nexport { fs }\n", 'useNodejsImportProtocol'],
  'callback.ts': [
    'export const f = (x: number[]) =>\n  x.map((y) => {\n    if (y > 1) return y\n  })\n',
    'useIterableCallbackReturn'
  ],
  'unused-import.ts': ["import { a } from './a.ts'\n\nexport {}\n", 'noUnusedImports'],
  'unused-variable.ts': ['const x = 1\n\nexport {}\n', 'noUnusedVariables'],
  'unused-member.ts': ['export class A {\n  #x = 1\n}\n', 'noUnusedPrivateClassMembers'],
  'literal-key.ts': ["export const f = (x: { a: number }) => x['a']\n", 'useLiteralKeys'],
  'recommended.ts': ['export const f = (x: number) => x == 1\n', 'noDoubleEquals']
}

test('format: each rule of biome.json fails where it is broken', async () => {
  const { code, output } = await check(
    'format',
    {
      ...copied('biome.json', '.gitignore'),
      'src/sound.ts': 'export const f = (x: string): string => x.trim()\n',
      ...Object.fromEntries(Object.entries(UNTIDY).map(([path, [content]]) => [`src/${path}`, content]))
    },
    '--reporter=github'
  )
  const found = [...output.matchAll(/title=([\w/]+),file=.*\/src\/([\w.-]+),/g)].map(
    ([, rule = '', path]) => `${path}: ${rule.split('/').at(-1)}`
  )
  const expected = Object.entries(UNTIDY).flatMap(([path, [, ...rules]]) => rules.map((rule) => `${path}: ${rule}`))
  expect(found.sort()).toEqual(expected.sort())
  expect(code).toBe(1)

  const { rules } = (JSON.parse(text('biome.json')) as { linter: { rules: object } }).linter
  const seen = Object.values(UNTIDY).flatMap(([, ...names]) => names)
  expect(switchedOn(rules).filter((rule) => !seen.includes(rule))).toEqual([])
})

/** What the compiler refuses, by the option that has it do so. */
const MISTYPED: Readonly<Record<string, readonly [code: string, error: string]>> = {
  strict: ['export const f = (x) => x\n', 'TS7006'],
  noUncheckedIndexedAccess: ['export const f = (x: readonly number[]): number => x[0]\n', 'TS2322'],
  exactOptionalPropertyTypes: ['export const x: { readonly y?: number } = { y: undefined }\n', 'TS2375'],
  noImplicitOverride: ['class A {\n  f(): void {}\n}\nexport class B extends A {\n  f(): void {}\n}\n', 'TS4114'],
  noUnusedLocals: ['export function f(): void {\n  const x = 1\n}\n', 'TS6133'],
  noUnusedParameters: ['export const f = (x: number): number => 1\n', 'TS6133'],
  noFallthroughCasesInSwitch: [
    'export function f(x: number): number {\n  switch (x) {\n    case 1:\n      x++\n    default:\n      return x\n  }\n}\n',
    'TS7029'
  ],
  verbatimModuleSyntax: [
    "import { PathLike } from 'node:fs'\nexport const f = (x: PathLike): PathLike => x\n",
    'TS1484'
  ],
  erasableSyntaxOnly: ['export enum A {\n  B\n}\n', 'TS1294'],
  isolatedModules: ["import type { A } from './erasableSyntaxOnly.ts'\nexport { A }\n", 'TS1448']
}
/** Options that make no code wrong. */
const NO_RULES = ['allowImportingTsExtensions', 'rewriteRelativeImportExtensions', 'skipLibCheck', 'declaration']

test('types: each rule of tsconfig.base.json fails where it is broken', async () => {
  const { code, output } = await check('types', {
    ...copied('tsconfig.json', 'tsconfig.base.json'),
    'package.json': manifest('house'),
    'scripts/sound.ts': "import type { PathLike } from 'node:fs'\nexport const f = (x: PathLike): PathLike => x\n",
    ...Object.fromEntries(Object.entries(MISTYPED).map(([option, [content]]) => [`scripts/${option}.ts`, content]))
  })
  const found = [...output.matchAll(/^scripts\/(\w+)\.ts\(.*?: error (TS\d+):/gm)].map(
    ([, path, error]) => `${path}: ${error}`
  )
  const expected = Object.entries(MISTYPED).map(([option, [, error]]) => `${option}: ${error}`)
  expect(found.sort()).toEqual(expected.sort())
  expect(code).not.toBe(0)

  const { compilerOptions } = JSON.parse(text('tsconfig.base.json')) as { compilerOptions: object }
  expect(switchedOn(compilerOptions).filter((option) => !(option in MISTYPED || NO_RULES.includes(option)))).toEqual([])
})

test('dead: unused exports, parts for other packages included, and undeclared dependencies', async () => {
  const { code, output } = await check(
    'dead',
    {
      ...copied('knip.json', 'pnpm-workspace.yaml'),
      'package.json': manifest('house', { devDependencies: { 'dead-tool': '1' } }),
      'node_modules/left-pad/package.json': manifest('left-pad'),
      'scripts/package.json': manifest('scripts'),
      'bench/package.json': manifest('bench'),
      'packages/a/package.json': manifest('@svc/a', {
        exports: { '.': './src/index.ts' },
        dependencies: { '@svc/b': '1', '@svc/library': '1', 'dead-library': '1' }
      }),
      'packages/a/src/index.ts': "export { a } from './a.ts'\n",
      'packages/a/src/a.ts':
        "import { b } from '@svc/b'\nimport { part } from '@svc/library/parts'\nimport pad from 'left-pad'\nimport { gone } from './gone.ts'\n" +
        'export const a = [b, part, pad, gone]\n' +
        'export const deadExport = 1\nexport type DeadType = string\n',
      'packages/a/src/dead-file.ts': 'export const lost = 1\n',
      'packages/b/package.json': manifest('@svc/b', { exports: { '.': './src/index.ts' } }),
      'packages/b/src/index.ts': 'export const b = 1\n',
      'packages/library/package.json': manifest('@svc/library', {
        exports: { '.': './src/index.ts', './parts': './src/parts.ts' }
      }),
      'packages/library/src/index.ts': 'export const promised = 1\n',
      'packages/library/src/parts.ts': 'export const part = 1\nexport const deadPart = 1\n'
    },
    '--reporter=json'
  )
  const { issues } = JSON.parse(output) as { issues: readonly Readonly<Record<string, unknown>>[] }
  const found = issues.flatMap(({ file, ...kinds }) =>
    Object.entries(kinds).flatMap(([kind, names]) =>
      (names as readonly { readonly name: string }[]).map(({ name }) => `${kind}: ${name} of ${String(file)}`)
    )
  )
  expect(found.sort()).toEqual([
    'dependencies: dead-library of packages/a/package.json',
    'devDependencies: dead-tool of package.json',
    'exports: deadExport of packages/a/src/a.ts',
    'exports: deadPart of packages/library/src/parts.ts',
    'files: packages/a/src/dead-file.ts of packages/a/src/dead-file.ts',
    'types: DeadType of packages/a/src/a.ts',
    'unlisted: left-pad of packages/a/src/a.ts',
    'unresolved: ./gone.ts of packages/a/src/a.ts'
  ])
  expect(code).toBe(1)
})

test('docs: a broken link, and a public type that cannot be imported', async () => {
  const { code, output } = await check(
    'docs',
    {
      ...copied('typedoc.json', 'tsconfig.docs.json', 'tsconfig.base.json'),
      'package.json': manifest('house'),
      'packages/a/src/index.ts': "export { a } from './a.ts'\n",
      'packages/a/src/a.ts':
        '/** See {@link nowhere}. */\nexport const a = (x: Hidden): Hidden => x\n/** Not exported. */\nexport interface Hidden {\n  readonly y: number\n}\n'
    },
    ...['--entryPoints', 'packages/a/src/index.ts']
  )
  expect(output).toMatch(/Hidden, .* is referenced by a /)
  expect(output).toMatch(/"nowhere"/)
  expect(output).toMatch(/0 errors and 2 warnings/)
  expect(code).not.toBe(0)
})
