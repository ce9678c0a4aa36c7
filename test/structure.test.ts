import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { importsOf } from '../scripts/structure/imports.ts'
import { checkTree, type RuleName } from '../scripts/structure/rules.ts'
import { readTree } from '../scripts/structure/tree.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true })
})

type Files = Record<string, string | object>

/** A small house without a fault; a test overwrites or adds what it needs. */
const sound: Files = {
  'package.json': { name: 'house', devDependencies: { vitest: '1' } },
  'packages/ref/package.json': { name: '@svc/ref', exports: { '.': './src/index.ts' } },
  'packages/ref/src/index.ts': `export { parse } from './parse.ts'\nexport type { Ref } from './parse.ts'\n`,
  'packages/ref/src/parse.ts': `export type Ref = string\nexport const parse = (text: string): Ref => text\n`,
  'packages/ref/test/parse.test.ts': `import { test } from 'vitest'\nimport { parse } from '../src/index.ts'\ntest('x', () => parse('x'))\n`,
  'packages/cas/package.json': {
    name: '@svc/cas',
    exports: { '.': 'x', './contract': 'y' },
    dependencies: { '@svc/ref': '1' }
  },
  'packages/cas/src/store.ts': `import { createReadStream } from 'node:fs'\nimport { parse } from '@svc/ref'\nexport const x = [createReadStream, parse]\n`,
  'packages/manifest/package.json': {
    name: '@svc/manifest',
    exports: { '.': 'x' },
    dependencies: { '@svc/swarm': '1' }
  },
  'packages/manifest/src/seal.ts': `import { createHash } from 'node:crypto'\nimport { root } from '@svc/metainfo'\nexport const x = [root, createHash]\n`,
  'packages/swarm/package.json': { name: '@svc/swarm', exports: { '.': 'x', './merkle': 'y' } },
  'packages/swarm/src/merkle.ts': `export const root = 1\n`
}

function violations(change: Files): { rule: RuleName; path: string; line: number }[] {
  const root = mkdtempSync(join(tmpdir(), 'svc-structure-'))
  roots.push(root)
  for (const [path, content] of Object.entries({ ...sound, ...change })) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return checkTree(readTree(root)).map(({ rule, path, line }) => ({ rule, path, line }))
}

test('a sound house has no violations', () => {
  expect(violations({})).toEqual([])
})

const TYPES_ONLY = `import type { B } from './b.ts'\nexport type A = B\n`
const broken: [name: string, rule: RuleName, path: string, line: number, change: Files][] = [
  [
    'ref imports one of ours',
    'direction',
    'packages/ref/src/parse.ts',
    1,
    {
      'packages/ref/package.json': { name: '@svc/ref', exports: { '.': 'x' }, dependencies: { '@svc/cas': '1' } },
      'packages/ref/src/parse.ts': `import { x } from '@svc/cas'\nexport const parse = x\nexport type Ref = string\n`
    }
  ],
  [
    'manifest imports the whole of swarm',
    'direction',
    'packages/manifest/src/seal.ts',
    2,
    {
      'packages/manifest/src/seal.ts': `\nimport type { Session } from '@svc/swarm'\nexport type X = Session\n`
    }
  ],
  [
    'somebody imports the daemon',
    'direction',
    'packages/cas/src/store.ts',
    2,
    {
      'packages/daemon/package.json': { name: '@svc/daemon', exports: { '.': 'x' } },
      'packages/cas/package.json': { name: '@svc/cas', dependencies: { '@svc/ref': '1', '@svc/daemon': '1' } },
      'packages/cas/src/store.ts': `import { parse } from '@svc/ref'\nexport const later = () => import('@svc/daemon')\nexport const x = parse\n`
    }
  ],
  [
    'a pure package reads files',
    'pure',
    'packages/manifest/src/seal.ts',
    3,
    {
      'packages/manifest/src/seal.ts': `import { root } from '@svc/metainfo'\nexport const x = root\nimport { readFileSync } from 'node:fs'\nexport const y = readFileSync\n`
    }
  ],
  [
    'a pure package takes randomness from crypto',
    'pure',
    'packages/manifest/src/seal.ts',
    1,
    {
      'packages/manifest/src/seal.ts': `import { createHash, randomInt } from 'node:crypto'\nimport { root } from '@svc/metainfo'\nexport const x = [root, createHash, randomInt]\n`
    }
  ],
  [
    'a pure module reads the clock',
    'pure',
    'packages/swarm/src/merkle.ts',
    2,
    {
      'packages/swarm/src/merkle.ts': `// Date.now() in a comment is no fault\nexport const root = Date.now()\n`
    }
  ],
  [
    'a pure module imports one that is not',
    'pure',
    'packages/swarm/src/pieces.ts',
    1,
    {
      'packages/swarm/src/merkle.ts': `import { pieces } from './pieces.ts'\nexport const root = pieces\n`,
      'packages/swarm/src/pieces.ts': `import { statSync } from 'node:fs'\nexport const pieces = statSync\n`
    }
  ],
  [
    'ref uses a global of Node',
    'pure',
    'packages/ref/src/parse.ts',
    2,
    {
      'packages/ref/src/parse.ts': `export type Ref = string\nexport const parse = (text: string) => Buffer.from(text).toString()\n`
    }
  ],
  [
    'an undeclared subpath',
    'deep-import',
    'packages/cas/test/store.test.ts',
    1,
    {
      'packages/cas/test/store.test.ts': `import { parse } from '@svc/ref/src/parse.ts'\nexport const x = parse\n`
    }
  ],
  [
    'a relative way into another package',
    'deep-import',
    'packages/cas/test/store.test.ts',
    2,
    {
      'packages/cas/test/store.test.ts': `import { x } from '../src/store.ts'\nimport { parse } from '../../ref/src/parse.ts'\nexport const y = [x, parse]\n`
    }
  ],
  [
    'a package that is not there',
    'deep-import',
    'packages/cas/test/store.test.ts',
    1,
    {
      'packages/cas/package.json': {
        name: '@svc/cas',
        dependencies: { '@svc/ref': '1' },
        devDependencies: { '@svc/none': '1' }
      },
      'packages/cas/test/store.test.ts': `import { x } from '@svc/none'\nexport const y = x\n`
    }
  ],
  [
    'a cycle of two files',
    'cycle',
    'packages/cas/src/b.ts',
    1,
    {
      'packages/cas/src/a.ts': `import { b } from './b.ts'\nexport const a = () => b\n`,
      'packages/cas/src/b.ts': `import { a } from './a.ts'\nexport const b = () => a\n`
    }
  ],
  [
    'a long file without a reason',
    'file-size',
    'packages/cas/src/long.ts',
    1,
    {
      'packages/cas/src/long.ts': `/** A long file. */\n${'export {}\n'.repeat(400)}`
    }
  ],
  [
    'a file named after nothing',
    'file-name',
    'packages/cas/src/utils.ts',
    1,
    { 'packages/cas/src/utils.ts': 'export {}\n' }
  ],
  [
    'an index that does something',
    'index-only-exports',
    'packages/ref/src/index.ts',
    1,
    {
      'packages/ref/src/index.ts': `export { parse } from './parse.ts'\nexport const x = 1\n`
    }
  ],
  [
    'a dependency used but not declared',
    'undeclared-dependency',
    'packages/cas/src/store.ts',
    2,
    {
      'packages/cas/src/store.ts': `import { parse } from '@svc/ref'\nimport { x } from 'left-pad/sub'\nexport const y = [x, parse]\n`
    }
  ],
  [
    'a test tool used in sources',
    'undeclared-dependency',
    'packages/cas/src/store.ts',
    2,
    {
      'packages/cas/src/store.ts': `import { parse } from '@svc/ref'\nexport * from 'vitest'\nexport const y = parse\n`
    }
  ],
  [
    'a dependency declared but not used',
    'unused-dependency',
    'packages/swarm/package.json',
    1,
    {
      'packages/swarm/package.json': { name: '@svc/swarm', exports: { './merkle': 'y' }, dependencies: { undici: '1' } }
    }
  ],
  [
    'a dependency that only a comment uses',
    'unused-dependency',
    'packages/swarm/package.json',
    1,
    {
      'packages/swarm/package.json': {
        name: '@svc/swarm',
        exports: { './merkle': 'y' },
        dependencies: { undici: '1' }
      },
      'packages/swarm/src/merkle.ts': `/**\nimport { x } from 'undici'\n */\nexport const root = 1\n`
    }
  ],
  ['a note to oneself', 'forbidden-word', 'docs/api.md', 2, { 'docs/api.md': `# API\n${'TO'}DO: write it\n` }],
  [
    'a path of a machine',
    'forbidden-word',
    'packages/cas/src/store.ts',
    2,
    {
      'packages/cas/src/store.ts': `import { parse } from '@svc/ref'\nexport const x = [parse, '/${'root'}/model']\n`
    }
  ]
]

describe('each rule fails where it is broken, and no other rule does', () => {
  test.each(broken)('%s', (_name, rule, path, line, change) => {
    expect(violations(change)).toEqual([{ rule, path, line }])
  })
})

describe('what is allowed', () => {
  test.each<[string, Files]>([
    [
      'subpaths declared by a pattern',
      {
        'packages/testkit/package.json': { name: '@svc/testkit', private: true, exports: { './*': './src/*.ts' } },
        'packages/cas/package.json': {
          name: '@svc/cas',
          dependencies: { '@svc/ref': '1' },
          devDependencies: { '@svc/testkit': '1' }
        },
        'packages/cas/test/a.test.ts': `import '@svc/testkit/fake-hub'\n`
      }
    ],
    [
      'a cycle of types, which is erased',
      {
        'packages/cas/src/a.ts': TYPES_ONLY,
        'packages/cas/src/b.ts': `import type { A } from './a.ts'\nexport type B = A[]\n`
      }
    ],
    [
      'a long file with its reason',
      {
        'packages/cas/src/long.ts': `/** One file because the table must be read as a whole. */\n${'export {}\n'.repeat(400)}`
      }
    ],
    [
      'a dependency that is loaded by a name in a constant',
      {
        'packages/swarm/package.json': {
          name: '@svc/swarm',
          exports: { './merkle': 'y' },
          dependencies: { undici: '1' }
        },
        'packages/swarm/src/load.ts': `const specifier = 'undici'\nexport const load = () => import(specifier)\n`
      }
    ],
    [
      'a program of another package, started by a test',
      {
        'packages/daemon/package.json': { name: '@svc/daemon', exports: { '.': 'x' } },
        'packages/cas/package.json': {
          name: '@svc/cas',
          dependencies: { '@svc/ref': '1' },
          devDependencies: { '@svc/daemon': '1' }
        },
        'packages/cas/test/a.test.ts': `export const main = new URL('../../daemon/src/main.ts', import.meta.url)\n`
      }
    ],
    [
      'a type package used through its subject',
      {
        'packages/cas/package.json': {
          name: '@svc/cas',
          dependencies: { '@svc/ref': '1' },
          devDependencies: { tar: '1', '@types/tar': '1' }
        },
        'packages/cas/test/a.test.ts': `import 'tar'\n`
      }
    ],
    [
      'test data at the root',
      {
        'packages/cas/test/a.test.ts': `import rows from '../../../vectors/rows.json' with { type: 'json' }\nexport const x = rows\n`
      }
    ]
  ])('%s', (_name, change) => {
    expect(violations(change)).toEqual([])
  })
})

test('imports are found in every spelling', () => {
  const source = [
    `import a from 'a'`,
    `import b, { c } from "b"`,
    `import {\n  d,\n  e as f\n} from 'c'`,
    `import * as g from 'd'`,
    `import 'e'`,
    `import type { H } from 'f'`,
    `import { type I, type J } from 'g'`,
    `import { type K, l } from 'h'`,
    `export * from 'i'`,
    `export { m } from 'j'`,
    `export type { N } from 'k'`,
    `const o = await import('l')`,
    `new Worker(new URL('./m.ts', import.meta.url))`,
    `// import p from 'no'`,
    `/* import q from 'no' */`,
    `export const s = 'from "no"'`,
    `export const t = ["from", 'no']`
  ].join('\n')
  const found = importsOf(source)
  expect(found.map(({ specifier }) => specifier).sort()).toEqual([
    './m.ts',
    'a',
    'b',
    'c',
    'd',
    'e',
    'f',
    'g',
    'h',
    'i',
    'j',
    'k',
    'l'
  ])
  expect(
    found
      .filter(({ typeOnly }) => typeOnly)
      .map(({ specifier }) => specifier)
      .sort()
  ).toEqual(['f', 'g', 'k'])
  expect(found.find(({ specifier }) => specifier === 'd')?.line).toBe(7)
})
