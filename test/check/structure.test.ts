import { describe, expect, test } from 'vitest'
import { checkFunctions } from '../../scripts/structure/functions.ts'
import { JSON_PARSE } from '../../scripts/structure/json.ts'
import { checkTree, type RuleName } from '../../scripts/structure/rules.ts'
import { TERMINAL } from '../../scripts/structure/terminal.ts'
import { readTree } from '../../scripts/structure/tree.ts'
import { SYSTEM_CLOCK, WALL_TIME } from '../../scripts/structure/wall-time.ts'
import { buildHouse, type Files } from './house.ts'

const functionOf = (name: string, body: string): string =>
  `${name.replace(/(\w+)$/, 'function $1')}(): void {\n${body}}\n`
const cases = (count: number): string => Array.from({ length: count }, (_, n) => `case ${n}: return\n`).join('')

/** A small house without a fault; a test overwrites or adds what it needs. */
const sound: Files = {
  'packages/ref/src/index.ts': `export { parse } from './parse.ts'\nexport type { Ref } from './parse.ts'\n`,
  'packages/ref/src/parse.ts': `export type Ref = string\nexport const parse = (text: string): Ref => text\n`,
  'packages/manifest/src/seal.ts': `import { createHash, type Hash } from 'node:crypto'\nexport const x = (): Hash => createHash('x')\n`,
  'packages/swarm/src/wire/frame.ts': `// Date.${'now'}() in a comment is no fault\nexport const now = 1\n`,
  'packages/swarm/src/wire/mse.ts': `import { randomBytes } from 'node:crypto'\nexport const x = randomBytes\n`,
  'packages/cas/src/long.ts': `export function outer(): void {\n${functionOf('  inner', '1\n'.repeat(28))}${'  1\n'.repeat(28)}}\n`,
  'packages/cas/src/choice.ts': `export function choose(x: number): void {\n  switch (x) {\n${cases(30)}  }\n}\n`
}

function violations(change: Files): { rule: RuleName; path: string; line: number }[] {
  using house = buildHouse({ ...sound, ...change })
  return checkTree(readTree(house.root)).map(({ rule, path, line }) => ({ rule, path, line }))
}

test('the contract has the names of what it describes', () => {
  expect(violations({ 'packages/client/src/protocol/ref.ts': `export type Ref = string\n` })).toEqual([])
})

test('a sound house has no violations', () => {
  expect(violations({})).toEqual([])
})

const broken: [name: string, rule: RuleName, path: string, line: number, content: string][] = [
  [
    'a pure package takes randomness from crypto',
    'pure',
    'packages/manifest/src/seal.ts',
    1,
    `import { createHash, randomInt } from 'node:crypto'\nexport const x = [createHash, randomInt]\n`
  ],
  ['a pure package takes a whole module', 'pure', 'packages/classify/src/a.ts', 2, `\nimport net from 'node:net'\n`],
  ['a pure module reads the clock', 'pure', 'packages/swarm/src/wire/a.ts', 2, `\nexport const x = Date.${'now'}()\n`],
  ['a pure module waits', 'pure', 'packages/metainfo/src/a.ts', 1, `export const x = () => set${'Timeout'}(x, 1)\n`],
  ['ref uses a global of Node', 'pure', 'packages/ref/src/a.ts', 1, `export const x = Buffer.from('x')\n`],
  ['a long function', 'function-size', 'packages/cas/src/a.ts', 2, `\n${functionOf('export f', '1\n'.repeat(60))}`],
  [
    'a short function around a long one that has a name',
    'function-size',
    'packages/cas/src/a.ts',
    1,
    `export function outer(): void {\n${functionOf('  inner', '1\n'.repeat(50))}${'  1\n'.repeat(10)}}\n`
  ],
  [
    'a function with too many decisions',
    'function-size',
    'packages/internal/files/src/a.ts',
    1,
    functionOf('export f', 'if (x && y) return\n'.repeat(11))
  ],
  ['a verb with another spelling', 'spelling', 'docs/api.md', 2, `# Words\n\`svc\` recogni${'s'}es files\n`],
  [
    'an identifier with another spelling',
    'spelling',
    'packages/cas/src/a.ts',
    1,
    `export const Normali${'s'}edName = 1\n`
  ],
  [
    'a remark that begins like a sentence',
    'comment-style',
    'packages/cas/src/a.ts',
    2,
    `export const x = [\n  // The first.\n  // Goes on\n  1\n]\n`
  ],
  [
    'a comment at the margin that does not',
    'comment-style',
    'packages/cas/src/a.ts',
    1,
    `// the first\nexport const x = 1\n`
  ],
  ['a file named after nothing', 'file-name', 'packages/cas/src/utils.ts', 1, 'export {}\n'],
  [
    'a digest that nobody checked',
    'digest-cast',
    'packages/cas/src/a.ts',
    2,
    `\nexport const x = (text: string) => text as Sha256Digest\n`
  ],
  [
    'a private member by a keyword',
    'private-style',
    'packages/cas/src/a.ts',
    2,
    `export class A {\n  private readonly x = 1\n  private constructor() {}\n}\n`
  ],
  [
    'an arrow with statements',
    'arrow-style',
    'packages/cas/test/a.test.ts',
    2,
    `const f = (x: number): number => x\nconst g = async (\n  x: number\n): Promise<number> => {\n  return f(x)\n}\n`
  ],
  ['an index that does something', 'index-only-exports', 'packages/cas/src/index.ts', 1, `export const x = 1\n`],
  ...[
    `const at = Date.${'now'}()`,
    `const now = performance.${'now'}`,
    `const at = new ${'Date'}()`,
    `set${'Timeout'}(run, 5)`,
    `globalThis.set${'Interval'}(run, 5)`,
    `import { set${'Timeout'} as delay } from 'node:timers/promises'`,
    `import {\n  set${'Timeout'} as delay } from 'node:timers/promises'`,
    `await scheduler.${'wait'}(5)`,
    `const signal = AbortSignal.${'timeout'}(5)`,
    `const at = Temporal.${'Now'}.instant()`,
    `const { now } = ${'performance'}`,
    `const delay = promisify(set${'Timeout'})`,
    `import * as timers from ${"'node:timers/promises'"}`,
    `const at = systemClock.${'monotonic'}()`
  ].flatMap((code): [string, RuleName, string, number, string][] =>
    ['cas', 'internal/http'].map((name) => [
      `a source of ${name} with a clock of its own: ${code}`,
      'system-clock',
      `packages/${name}/src/a.ts`,
      code.includes('\n') ? 3 : 2,
      `\n${code}\n`
    ])
  ),
  [
    'a test that blocks its thread',
    'wall-time',
    'packages/cas/test/a.test.ts',
    1,
    `Atomics.${'wait'}(cell, 0, 0, 500)\n`
  ],
  ...[
    `await systemClock.${'sleep'}(5)`,
    `const begun = systemClock.${'now'}()`,
    `const x = performance.${'now'}()`,
    `const { now } = ${'Date'}`,
    `const x = +new ${'Date'}`,
    `await new Promise((resolve) => set${'Timeout'}(resolve, 5))`,
    `await new Promise((resolve) => globalThis.set${'Timeout'}(resolve, 5))`,
    `const delay = promisify(set${'Timeout'})`,
    `import { set${'Timeout'} as delay } from 'node:timers/promises'`,
    `import timers from ${"'node:timers/promises'"}`,
    `await once(server, 'close', { signal: AbortSignal.${'timeout'}(5) })`
  ].flatMap((code): [string, RuleName, string, number, string][] =>
    ['packages/cas/test', 'packages/internal/net/test', 'vectors', 'test'].map((folder) => [
      `a test in ${folder} that waits or measures: ${code}`,
      'wall-time',
      `${folder}/a.test.ts`,
      2,
      `const date = new Date(systemClock.now() + 5)\n${code}\n`
    ])
  ),
  ...[
    `process.std${'out'}.write(name)`,
    `globalThis.process.std${'err'}.write(name)`,
    `const { std${'out'} } = process`,
    `process['std${'out'}'].write(name)`,
    `con${'sole'}.log(name)`,
    `import { write } from 'node:${'tty'}'`,
    `fs.write${'Sync'}(1, name)`,
    `createWriteStream('', { ${'fd'}: 2 })`,
    `pino.${'destination'}({ sync: true })`,
    `spawn(name, { stdio: '${'inherit'}' })`,
    `spawn(name, { stdio: ['ignore', ${1}, 'pipe'] })`,
    `openSync('/dev/${'tty'}')`
  ].flatMap((code): [string, RuleName, string, number, string][] =>
    ['cli/src/a.ts', 'internal/http/src/a.ts', 'cas/bin/a.cjs'].map((file) => [
      `${file} with a way of its own to the terminal: ${code}`,
      'terminal',
      `packages/${file}`,
      2,
      `\n${code}\n`
    ])
  ),
  [
    'a document of strangers parsed at once',
    'json-parse',
    'packages/hub/src/a.ts',
    2,
    `\nconst value = JSON.${'parse'}(text)\n`
  ],
  ['the name of a program in a library', 'program-word', 'packages/cas/src/a.ts', 2, `\nconst next = 'start svcd'\n`],
  ['a second type of one name', 'type-name', 'packages/ref/src/ref.ts', 2, `\nexport interface Ref {}\n`],
  ['a component with the name of a type', 'type-name', 'packages/ui/src/ref.tsx', 1, `export const Ref = () => 'x'\n`],
  ['a note to oneself', 'forbidden-word', 'docs/api.md', 2, `# API\n${'TO'}DO: write it\n`],
  ['a path of a machine', 'forbidden-word', 'packages/cas/src/a.ts', 2, `\nexport const x = '/${'root'}/model'\n`]
]

test('a file that reads no clock needs no exception', () => {
  const list = { path: 'scripts/structure/wall-time.ts', text: '' }
  const text = `performance.${'now'}()`
  const [source, ...sources] = Object.keys(SYSTEM_CLOCK)
  const [first, ...others] = Object.keys(WALL_TIME)
  const found = checkTree([list, { path: source!, text }, { path: first!, text }])
  const idle = [...sources.map(() => 'system-clock'), ...others.map(() => 'wall-time')]
  expect(found.map(({ rule, path }) => [rule, path])).toEqual(idle.map((rule) => [rule, list.path]))
})

test('a file that writes to an Output needs no exception', () => {
  const list = { path: 'scripts/structure/terminal.ts', text: '' }
  const found = checkTree([list]).map(({ rule, path }) => [rule, path])
  expect(found).toEqual(Object.keys(TERMINAL).map(() => ['terminal', list.path]))
})

test('a file that parses no JSON needs no exception', () => {
  const list = { path: 'scripts/structure/json.ts', text: '' }
  const found = checkTree([list]).map(({ rule, path }) => [rule, path])
  expect(found).toEqual(Object.keys(JSON_PARSE).map(() => ['json-parse', list.path]))
})

test('the first tier has no exception', () => {
  expect(Object.keys(WALL_TIME).filter((path) => !path.endsWith('.slow.ts'))).toEqual([])
})

test("the system's clock is passed on, and sockets time themselves out", () => {
  const fine = `const { clock = systemClock } = options\nsocket.set${'Timeout'}(5)\nvi.useFakeTimers({ toFake: ['set${'Timeout'}'] })\n`
  expect(violations({ 'packages/cas/src/a.ts': fine, 'packages/cas/test/a.test.ts': fine })).toEqual([])
})

test('commands and keys are words of programs', () => {
  const texts = ['try svc rm', 'see [swarm] seed', 'svc removes it', 'keys[at] of']
  const found = violations({
    'packages/cli/src/program/remove.ts': "add('rm <ref>', 'remove a name')\n",
    'packages/daemon/src/config/keys.ts': "export const CONFIG_KEYS = {\n  swarm: {\n    seed: flag('seed')\n  }\n}\n",
    'packages/cas/src/a.ts': `// svc rm\n${texts.map((text) => `export const x = '${text}'\n`).join('')}`,
    'packages/cli/src/a.ts': "export const y = 'svc rm'\n"
  })
  const at = { rule: 'program-word', path: 'packages/cas/src/a.ts' }
  expect(found).toEqual([
    { ...at, line: 2 },
    { ...at, line: 3 }
  ])
})

test('a package has a size that one can read, and the daemon less', () => {
  const found = violations({
    'packages/daemon/src/app/a.ts': '\n'.repeat(3001),
    'packages/daemon/src/b.ts': '\n'.repeat(3000),
    'packages/internal/files/src/a.ts': '\n'.repeat(11_001),
    'packages/internal/net/src/a.ts': '\n'.repeat(11_000)
  })
  expect(found.map(({ rule, path }) => [rule, path])).toEqual([
    ['package-size', 'packages/daemon/src'],
    ['package-size', 'packages/internal/files/src']
  ])
})

test('an exception that nothing needs is refused', () => {
  const list = { path: 'scripts/structure/functions.ts', text: '' }
  const long = { path: 'packages/cas/src/a.ts', text: functionOf('f', '1\n'.repeat(60)) }
  expect(checkFunctions([list, long], { 'packages/cas/src/a.ts#f': 'it is a list' })).toEqual([])
  expect(checkFunctions([list], { 'packages/cas/src/a.ts#f': 'it was a list' })).toHaveLength(1)
})

test('a file beside a test is of its tier: also through another, and in a thread, but not one that slow tests alone import', () => {
  const wait = `await new Promise((resolve) => set${'Timeout'}(resolve, 5))\n`
  const found = violations({
    'packages/cas/test/a.test.ts': `import { b } from './support/b.ts'\nconst url = workerUrl('./d-worker', import.meta.url)\n`,
    'packages/cas/test/support/b.ts': `export { c as b } from '../c.ts'\n`,
    'packages/cas/test/c.ts': wait,
    'packages/cas/test/d-worker.ts': wait,
    'packages/cas/test/e.slow.ts': `import './f.ts'\n`,
    'packages/cas/test/f.ts': wait
  })
  expect(found.map(({ rule, path }) => [rule, path])).toEqual([
    ['wall-time', 'packages/cas/test/c.ts'],
    ['wall-time', 'packages/cas/test/d-worker.ts']
  ])
})

describe('each rule fails where it is broken, and no other rule does', () => {
  test.each(broken)('%s', (_name, rule, path, line, content) => {
    expect(violations({ [path]: content })).toEqual([{ rule, path, line }])
  })

  test('no rule is missing', () => {
    const rules: Record<RuleName, true> = {
      pure: true,
      'function-size': true,
      'package-size': true,
      'file-name': true,
      'index-only-exports': true,
      'digest-cast': true,
      'private-style': true,
      'arrow-style': true,
      'forbidden-word': true,
      'system-clock': true,
      terminal: true,
      'wall-time': true,
      'json-parse': true,
      'program-word': true,
      'type-name': true,
      spelling: true,
      'comment-style': true
    }
    const seen = new Set([...broken.map(([, rule]) => rule), 'package-size'])
    expect(Object.keys(rules).filter((rule) => !seen.has(rule as RuleName))).toEqual([])
  })
})
