import { readdirSync } from 'node:fs'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options'
import { describe, expect, test } from 'vitest'
import { buildHouse, type Files } from './house.ts'

const { cache: _, ...options } = await extractDepcruiseOptions(
  new URL('../../.dependency-cruiser.js', import.meta.url).pathname
)

const manifest = (name: string, dependencies: object = {}, devDependencies: object = {}): object => ({
  name: `@svc/${name}`,
  type: 'module',
  exports: { '.': './src/index.ts' },
  dependencies,
  devDependencies
})

/** A small house without a fault; a test overwrites or adds what it needs. */
const sound: Files = {
  'package.json': { name: 'house', type: 'module' },
  'node_modules/left-pad/package.json': { name: 'left-pad', main: 'index.js' },
  'node_modules/left-pad/index.js': 'module.exports = 1\n',
  'packages/ref/package.json': manifest('ref'),
  'packages/ref/src/index.ts': `export { parse } from './parse.ts'\n`,
  'packages/ref/src/parse.ts': `export const parse = (text: string): string => text\n`,
  'packages/metainfo/package.json': manifest('metainfo'),
  'packages/metainfo/src/index.ts': `import { createHash } from 'node:crypto'\nexport const x = createHash\n`,
  'packages/cas/package.json': manifest('cas', { '@svc/ref': '1' }, { '@svc/internal-gate': '1' }),
  'packages/cas/src/index.ts': `import { createReadStream } from 'node:fs'\nimport { parse } from '@svc/ref'\nimport { gate } from '@svc/internal-gate'\nexport const x = [createReadStream, parse, gate]\n`,
  'packages/internal/gate/package.json': manifest('internal-gate'),
  'packages/internal/gate/src/index.ts': `export const gate = 1\n`,
  'packages/swarm/package.json': manifest('swarm', { '@svc/metainfo': '1' }),
  'packages/swarm/src/index.ts': `export { frame } from './wire/frame.ts'\n`,
  'packages/swarm/src/clock.ts': `export interface Clock { now(): number }\nexport const clock: Clock = Date\n`,
  'packages/swarm/src/wire/frame.ts': `import type { Clock } from '../clock.ts'\nimport { x } from '@svc/metainfo'\nexport const frame = (clock: Clock): unknown => [clock.now(), x]\n`,
  'packages/hub/package.json': manifest('hub', { '@svc/ref': '1' }),
  'packages/hub/src/index.ts': `export { parse } from '@svc/ref'\n`,
  'packages/testkit/package.json': manifest('testkit'),
  'packages/testkit/src/index.ts': `export const kit = 1\n`,
  'packages/daemon/package.json': manifest('daemon', { '@svc/cas': '1' }, { '@svc/testkit': '1' }),
  'packages/daemon/src/index.ts': `export { serve } from './app/serve.ts'\n`,
  'packages/daemon/src/app/serve.ts': `import { route } from '../api/route.ts'\nexport const serve = route\n`,
  'packages/daemon/src/api/route.ts': `import { x } from '@svc/cas'\nexport const route = x\n`,
  'packages/internal/state/package.json': manifest('internal-state'),
  'packages/internal/state/src/index.ts': `export const models = 1\n`,
  'packages/library/package.json': manifest('library', { '@svc/internal-state': '1' }),
  'packages/library/src/index.ts': `export { open } from './embedded/open.ts'\nexport { models } from '@svc/internal-state'\n`,
  'packages/library/src/embedded/open.ts': `import { bring } from '../import/bring.ts'\nexport const open = bring\n`,
  'packages/library/src/import/bring.ts': `export const bring = 1\n`,
  'packages/daemon/test/serve.test.ts': `import { kit } from '@svc/testkit'\nimport { serve } from '../src/app/serve.ts'\nexport const y = [kit, serve]\n`
}

async function violations(change: Files): Promise<string[]> {
  using house = buildHouse({ ...sound, ...change })
  const { output } = await cruise(['packages'], { ...options, validate: true, baseDir: house.root })
  return (output as ICruiseResult).summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`)
}

test('each package has a rule, and each room of the daemon and of the engine', () => {
  const names = options.ruleSet?.forbidden?.map(({ name }) => name) ?? []
  const folders = ['daemon', 'library', 'swarm'].flatMap((room) =>
    readdirSync(new URL(`../../packages/${room}/src`, import.meta.url), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${room}-${name}`)
  )
  const packages = readdirSync(new URL('../../packages', import.meta.url)).filter((name) => name !== 'internal')
  folders.push(...packages.map((name) => `direction-${name}`))
  expect(folders.filter((name) => !names.includes(name))).toEqual([])
})

test('a sound house has no violations', async () => {
  expect(await violations({})).toEqual([])
})

const broken: [name: string, change: Files, found: string[]][] = [
  [
    'the library writes the log of a program',
    {
      'packages/library/package.json': manifest('library', { '@svc/internal-state': '1', pino: '1' }),
      'packages/library/node_modules/pino/package.json': { name: 'pino', main: 'index.js' },
      'packages/library/node_modules/pino/index.js': 'module.exports = 1\n',
      'packages/library/src/import/bring.ts': `import pino from 'pino'\nexport const bring = pino\n`
    },
    ['library-knows-no-daemon: packages/library/src/import/bring.ts → packages/library/node_modules/pino/index.js']
  ],
  [
    'the daemon has the state of a store without the library',
    {
      'packages/daemon/package.json': manifest('daemon', { '@svc/cas': '1', '@svc/internal-state': '1' }),
      'packages/daemon/src/api/route.ts': `import { models } from '@svc/internal-state'\nexport const route = models\n`
    },
    ['state-through-library: packages/daemon/src/api/route.ts → packages/internal/state/src/index.ts']
  ],
  [
    'the state of a store imports what works with it',
    {
      'packages/internal/state/package.json': manifest('internal-state', { '@svc/oci': '1' }),
      'packages/oci/package.json': manifest('oci'),
      'packages/oci/src/index.ts': `export const pull = 1\n`,
      'packages/internal/state/src/index.ts': `import { pull } from '@svc/oci'\nexport const models = pull\n`
    },
    ['direction-state: packages/internal/state/src/index.ts → packages/oci/src/index.ts']
  ],
  [
    'what listens knows the contract',
    {
      'packages/client/package.json': manifest('client'),
      'packages/client/src/index.ts': `export const PATHS = 1\n`,
      'packages/internal/server/package.json': manifest('internal-server', { '@svc/client': '1' }),
      'packages/internal/server/src/index.ts': `import { PATHS } from '@svc/client'\nexport const paths = PATHS\n`
    },
    [
      'contract-above-libraries: packages/internal/server/src/index.ts → packages/client/src/index.ts',
      'direction-server: packages/internal/server/src/index.ts → packages/client/src/index.ts'
    ]
  ],
  [
    'a library takes its types from the contract',
    {
      'packages/client/package.json': { ...manifest('client'), exports: { './protocol': './src/protocol.ts' } },
      'packages/client/src/protocol.ts': `export type View = string\n`,
      'packages/library/package.json': manifest('library', { '@svc/client': '1' }),
      'packages/library/src/import/bring.ts': `import type { View } from '@svc/client/protocol'\nexport type Shown = View\n`
    },
    [
      'contract-above-libraries: packages/library/src/import/bring.ts → packages/client/src/protocol.ts',
      'contract-of-programs: packages/library/src/import/bring.ts → packages/client/src/protocol.ts'
    ]
  ],
  [
    'the page takes code of the client',
    {
      'packages/client/package.json': manifest('client'),
      'packages/client/src/index.ts': `export const PATHS = 1\nexport type Paths = number\n`,
      'packages/ui/package.json': manifest('ui', { '@svc/client': '1' }),
      'packages/ui/src/index.ts': `export { rows } from './rows.tsx'\n`,
      'packages/ui/src/rows.tsx': `import type { Paths } from '@svc/client'\nimport { paths } from './paths.ts'\nexport const rows: Paths = paths\n`,
      'packages/ui/src/paths.ts': `import { PATHS } from '@svc/client'\nexport const paths = PATHS\n`
    },
    ['page-takes-types: packages/ui/src/paths.ts → packages/client/src/index.ts']
  ],
  [
    'ref imports one of ours',
    {
      'packages/ref/package.json': manifest('ref', { '@svc/metainfo': '1' }),
      'packages/ref/src/parse.ts': `import type { x } from '@svc/metainfo'\nexport const parse = (y: typeof x) => y\n`
    },
    ['direction-ref: packages/ref/src/parse.ts → packages/metainfo/src/index.ts']
  ],
  [
    'somebody imports the daemon',
    { 'packages/testkit/src/index.ts': `export const kit = () => import('../../daemon/src/index.ts')\n` },
    [
      'daemon-and-cli-are-leaves: packages/testkit/src/index.ts → packages/daemon/src/index.ts',
      'direction-testkit: packages/testkit/src/index.ts → packages/daemon/src/index.ts',
      'no-deep-import: packages/testkit/src/index.ts → packages/daemon/src/index.ts'
    ]
  ],
  [
    'a room of the daemon imports against the direction',
    {
      'packages/daemon/src/config/file.ts': `import type { route } from '../api/route.ts'\nexport type X = typeof route\n`
    },
    ['daemon-config: packages/daemon/src/config/file.ts → packages/daemon/src/api/route.ts']
  ],
  [
    'a room of the engine imports against the direction',
    {
      'packages/swarm/src/peer/peer.ts': `import type { Torrent } from '../torrent/torrent.ts'\nexport type Peer = Torrent\n`,
      'packages/swarm/src/torrent/torrent.ts': `export interface Torrent { readonly name: string }\n`
    },
    ['swarm-peer: packages/swarm/src/peer/peer.ts → packages/swarm/src/torrent/torrent.ts']
  ],
  [
    'a pure package reads files',
    { 'packages/metainfo/src/index.ts': `import { readFileSync } from 'node:fs'\nexport const x = readFileSync\n` },
    ['pure-modules: packages/metainfo/src/index.ts → fs']
  ],
  [
    'a pure module calls one that is not',
    { 'packages/swarm/src/wire/frame.ts': `import { clock } from '../clock.ts'\nexport const frame = clock\n` },
    ['pure-imports-pure: packages/swarm/src/wire/frame.ts → packages/swarm/src/clock.ts']
  ],
  [
    'ref hashes with Node',
    { 'packages/ref/src/parse.ts': `import { hash } from 'node:crypto'\nexport const parse = hash\n` },
    ['ref-needs-no-node: packages/ref/src/parse.ts → crypto']
  ],
  [
    'a relative way into another package',
    { 'packages/hub/src/index.ts': `export { parse } from '../../ref/src/parse.ts'\n` },
    ['no-deep-import: packages/hub/src/index.ts → packages/ref/src/parse.ts']
  ],
  [
    'an undeclared subpath',
    { 'packages/hub/src/index.ts': `export { parse } from '@svc/ref/src/parse.ts'\n` },
    ['resolves: packages/hub/src/index.ts → @svc/ref/src/parse.ts']
  ],
  [
    'a cycle of types alone',
    {
      'packages/cas/src/a.ts': `import type { B } from './b.ts'\nexport type A = B\n`,
      'packages/cas/src/b.ts': `import type { A } from './a.ts'\nexport type B = A[]\n`
    },
    ['no-cycle: packages/cas/src/a.ts → packages/cas/src/b.ts']
  ],
  [
    'a package that is used but not declared',
    { 'packages/cas/src/a.ts': `import pad from 'left-pad'\nexport const a = pad\n` },
    ['declared-dependency: packages/cas/src/a.ts → node_modules/left-pad/index.js']
  ],
  [
    'a development dependency in published code',
    {
      'packages/cas/package.json': manifest('cas', { '@svc/ref': '1' }, { '@svc/internal-gate': '1', 'left-pad': '1' }),
      'packages/cas/src/a.ts': `import pad from 'left-pad'\nexport const a = pad\n`
    },
    ['no-dev-dependency-in-source: packages/cas/src/a.ts → node_modules/left-pad/index.js']
  ],
  [
    'published code imports test parts',
    { 'packages/daemon/src/app/serve.ts': `import { kit } from '@svc/testkit'\nexport const serve = kit\n` },
    [
      'direction-daemon: packages/daemon/src/app/serve.ts → packages/testkit/src/index.ts',
      'no-test-in-source: packages/daemon/src/app/serve.ts → packages/testkit/src/index.ts'
    ]
  ]
]

describe('each rule fails where it is broken, and no other rule does', () => {
  test.each(broken)('%s', async (_name, change, found) => {
    expect((await violations(change)).sort()).toEqual(found)
  })

  test('no rule is missing', () => {
    const rules = options.ruleSet?.forbidden?.map(({ name = '' }) => name) ?? []
    const seen = new Set(broken.flatMap(([, , found]) => found.map((line) => line.split(':')[0] as string)))
    // the rules of packages and rooms are made of two tables by the same lines; one of each stands for all.
    const made = (name: string): boolean =>
      /^(?:direction|daemon|library|swarm)-/.test(name) &&
      !['daemon-and-cli-are-leaves', 'direction-state', 'library-knows-no-daemon'].includes(name)
    expect(rules.filter((name) => !made(name) && !seen.has(name))).toEqual([])
  })
})
