// Who may import whom: direction, purity, borders of packages, cycles. ARCHITECTURE.md says why; `pnpm check` runs it;
// test/check/dependencies.slow.ts breaks each rule once. Import types count like others: a type is knowledge of the other room too.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const architecture = readFileSync(new URL('ARCHITECTURE.md', import.meta.url), 'utf8')
const names = (cell) => (cell === 'nothing' ? [] : cell.split(', '))

/**
 * What each package's sources may import of ours, from the table of rooms in ARCHITECTURE.md. The private packages under
 * packages/internal are open to all.
 */
const PACKAGES = Object.fromEntries(
  [...architecture.matchAll(/^\| `packages\/([\w-]+)` +\|.*\| ([\w, -]+?) +\|$/gm)].map(([, room, cell]) => [
    room,
    names(cell)
  ])
)
delete PACKAGES.internal
PACKAGES.daemon = Object.keys(PACKAGES).filter((room) => !['cli', 'testkit', 'ui', 'daemon'].includes(room))

/**
 * What the folders of a package may import of each other, from the table of its section in ARCHITECTURE.md. Files beside the
 * folders are open to all.
 */
function roomsOf(heading) {
  const rows = architecture
    .split(`\n## ${heading}\n`)[1]
    .split('\n## ')[0]
    .matchAll(/^\| `(\w+)` +\|.*\| ([\w, ]+?) +\|$/gm)
  const rooms = Object.fromEntries([...rows].map(([, room, cell]) => [room, names(cell)]))
  for (const [room, [first]] of Object.entries(rooms)) if (first === 'all') rooms[room] = Object.keys(rooms)
  return rooms
}

/** No `node:` modules, clock or randomness, in all that they reach. The handshake of wire/mse draws keys. */
const PURE = [
  '^packages/(ref|metainfo|classify|manifest)/src/',
  '^packages/swarm/src/.*(wire/|picker)',
  '^packages/swarm/src/errors[.]ts$'
]
const IMPURE = '^packages/swarm/src/.*wire/mse'

/** Modules whose functions depend on nothing but their input; scripts/structure checks which of their names are used. */
const PURE_MODULES = ['crypto', 'net', 'buffer']

const anyOf = (words) => `(${words.join('|')})`

/** What a package bundles, and therefore needs only where it is built: from its tsup configuration. */
function bundledBy(name) {
  const config = new URL(`packages/${name}/tsup.config.ts`, import.meta.url)
  const [, list = ''] = /\bpackages: \[([^\]]*)\]/.exec(readFileSync(config, 'utf8')) ?? []
  return [...list.matchAll(/'([^']+)'/g)].map(([, bundled]) => `${bundled}/`)
}

const packageRules = Object.entries(PACKAGES).map(([name, allowed]) => ({
  name: `direction-${name}`,
  comment: `packages/${name} imports ${allowed.join(', ') || 'nothing of ours'} (ARCHITECTURE.md, "Direction")`,
  severity: 'error',
  from: { path: `^packages/${name}/src/` },
  to: { path: '^(packages|bench)/', pathNot: `^packages/(internal|${[name, ...allowed].join('|')})/` }
}))
const bundlingRules = Object.keys(PACKAGES)
  .filter((name) => name !== 'testkit')
  .map((name) => ({
    name: 'no-dev-dependency-in-source',
    comment: 'Published code needs it, so it belongs into "dependencies", or into what is bundled in',
    severity: 'error',
    from: { path: `^packages/${name}/src/` },
    to: {
      dependencyTypes: ['npm-dev'],
      dependencyTypesNot: ['npm', 'type-only'],
      pathNot: `/node_modules/${anyOf(['@types/', ...bundledBy(name)])}`
    }
  }))
const roomRules = (room, heading) =>
  Object.entries(roomsOf(heading)).map(([name, allowed]) => ({
    name: `${room}-${name}`,
    comment: `${room}/src/${name} imports ${allowed.join(', ') || 'none of the other rooms'} (ARCHITECTURE.md, "${heading}")`,
    severity: 'error',
    from: { path: `^packages/${room}/src/${name}/` },
    to: { path: `^packages/${room}/src/.+/`, pathNot: `^packages/${room}/src/${anyOf([name, ...allowed])}/` }
  }))

/** What other files say. The cache sees no change of these: each state of them has its own. */
const readRules = [
  ...packageRules,
  ...bundlingRules,
  ...roomRules('library', 'The library'),
  ...roomRules('daemon', 'The daemon'),
  ...roomRules('swarm', 'The engine')
]
const state = createHash('sha256').update(JSON.stringify(readRules)).digest('hex').slice(0, 16)

export default {
  forbidden: [
    ...readRules,
    {
      name: 'daemon-and-cli-are-leaves',
      comment: 'Nobody imports the daemon or the command line: talk to them over the socket',
      severity: 'error',
      from: { path: '/src/', pathNot: '^packages/(daemon|cli)/' },
      to: { path: '^packages/(daemon|cli)/' }
    },
    {
      name: 'state-through-library',
      comment: 'Two copies of it would not know each other’s errors: others take its parts from @svc/library/parts',
      severity: 'error',
      from: { path: '/src/', pathNot: '^packages/(library|internal/state)/' },
      to: { path: '^packages/internal/state/' }
    },
    {
      name: 'direction-state',
      comment: 'The state of a store lies below everything that works with it',
      severity: 'error',
      from: { path: '^packages/internal/state/src/' },
      to: { path: '^packages/', pathNot: `^packages/(internal|${PACKAGES.library.join('|')})/` }
    },
    {
      name: 'contract-above-libraries',
      comment:
        'Libraries have types of their own, which daemon/src/api makes the contract’s of: of the client they know the class alone',
      severity: 'error',
      from: {
        path: '^packages/(internal/)?[^/]+/src/',
        pathNot:
          '^packages/((client|daemon|cli|ui|internal/services)/|internal/bridge/|library/src/embedded/open-or-connect)'
      },
      to: { path: '^packages/client/' }
    },
    {
      name: 'contract-of-programs',
      comment: 'Routes, bodies and their schemas are for programs and the page',
      severity: 'error',
      from: {
        path: '^packages/(internal/)?[^/]+/src/',
        pathNot: '^packages/(client|daemon|cli|ui|internal/services)/'
      },
      to: { path: '^packages/client/src/protocol' }
    },
    {
      name: 'direction-server',
      comment: 'What listens knows blobs, and nothing of what is served',
      severity: 'error',
      from: { path: '^packages/internal/server/src/' },
      to: { path: '^packages/', pathNot: '^packages/(internal/(?!state)|cas/)' }
    },
    {
      name: 'library-knows-no-daemon',
      comment: 'What works in any process knows no log or command line of a program',
      severity: 'error',
      from: { path: '^packages/(library|mirror|sharing|sources|catalog|internal/(state|server|bridge))/src/' },
      to: { path: '/node_modules/(pino|commander|smol-toml|typebox|undici|webtorrent)/' }
    },
    {
      name: 'page-takes-types',
      comment: 'A browser gets the contract’s types and none of its code, which is for Node',
      severity: 'error',
      from: { path: '^packages/ui/src/' },
      to: { path: '^packages/(?!ui/)', dependencyTypesNot: ['type-only'] }
    },
    {
      name: 'pure-modules',
      comment: 'Pure code reaches no module that reads files, sockets or clocks: bytes come in through readers',
      severity: 'error',
      from: { path: PURE, pathNot: IMPURE },
      to: { dependencyTypes: ['core'], pathNot: `^${anyOf(PURE_MODULES)}$` }
    },
    {
      name: 'pure-imports-pure',
      comment: 'What pure code calls is pure as well; only types may come from elsewhere',
      severity: 'error',
      from: { path: PURE, pathNot: IMPURE },
      to: { path: '^packages/[^/]+/src/', pathNot: [...PURE, '^packages/internal/'], dependencyTypesNot: ['type-only'] }
    },
    {
      name: 'ref-needs-no-node',
      comment: 'packages/ref runs where there is no Node, so it may not even hash',
      severity: 'error',
      from: { path: '^packages/ref/src/' },
      to: { dependencyTypes: ['core'] }
    },
    {
      name: 'no-deep-import',
      comment: 'A source file leaves its package by the other package’s name',
      severity: 'error',
      from: { path: '^packages/((internal/)?[^/]+)/src/' },
      to: { path: '^(packages|bench|test|scripts|vectors)/', pathNot: '^packages/$1/', dependencyTypes: ['local'] }
    },
    {
      name: 'resolves',
      comment: 'The file, the package or the subpath in its "exports" exists',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true }
    },
    {
      name: 'no-cycle',
      comment:
        'No import leads back, not even one of types. The ambient declarations of a package without types are part of the file that refers to them',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { pathNot: 'untyped[.]d[.]ts$' } }
    },
    {
      name: 'declared-dependency',
      comment: 'What is imported stands in the package.json beside it, or in the root’s for tests',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/|^packages/internal/[^/]+/src/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] }
    },
    {
      name: 'no-test-in-source',
      comment: 'Sources import no tests and no test parts',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: '^packages/testkit/' },
      to: { path: '/test/|^packages/testkit/' }
    }
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: ['node_modules'] },
    exclude: { path: ['/dist/', 'tsup\\.config\\.ts$'] },
    detectProcessBuiltinModuleCalls: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['svc-source', 'types', 'import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.js', '.d.ts']
    },
    cache: { folder: `node_modules/.cache/dependency-cruiser/${state}`, strategy: 'content' }
  }
}
