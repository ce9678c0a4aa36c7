// Every kind of repository in the guide's table, by its loader: after every road, the folder equals the original byte for byte, and the loader
// computes the same.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { snapshotDownload } from '@huggingface/hub'
import { startFakeBucket } from '@svc/testkit/fake-bucket'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { haveLlamaCpp, llamaCppVersion } from '@svc/testkit/llama-cpp'
import { haveLlamaVision } from '@svc/testkit/llama-vision'
import { missingForRows, PYTHON, type PythonLoaders, ROWS, startPythonLoaders } from '@svc/testkit/python-loaders'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { folderAt, typed } from './folders.ts'
import { type Computed, LOADER_ROWS, type LoaderContext, type LoaderRow, testedWith } from './loader-rows.ts'
import { laterUndo, ok, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'

const missing = [
  ...missingForRows().map((name) => `${name} for ${PYTHON}`),
  ...(haveLlamaCpp ? [] : ['node-llama-cpp']),
  ...(haveLlamaVision ? [] : ['@fugood/llama.node'])
]
if (missing.length > 0) it.skip(`models that load: ${missing.join(', ')} not installed`, () => {})

const undo = laterUndo()
afterAll(undo.all)
let from: TestDaemon
let byOci: TestDaemon
let byShare: TestDaemon
let byUrl: TestDaemon
let bucket: string
let www: string
let mirror: string
let context: LoaderContext
let work: string

const refOf = (row: LoaderRow): string => repoOf(row).toLowerCase()
const repoOf = ({ kind }: LoaderRow): string => `Acme/${kind.replace(/[ ,]+/g, '-')}`
const originalOf = (row: LoaderRow): string => join(work, repoOf(row))

/** A Windows bitmap of 28 × 28 pixels of 24 bits, all grey. */
function picture(side = 28): Buffer {
  const head = Buffer.alloc(54)
  head.write('BM')
  head.writeUInt32LE(54 + side * side * 3, 2)
  head.writeUInt32LE(54, 10)
  head.writeUInt32LE(40, 14)
  head.writeInt32LE(side, 18)
  head.writeInt32LE(side, 22)
  head.writeUInt16LE(1, 26)
  head.writeUInt16LE(24, 28)
  return Buffer.concat([head, Buffer.alloc(side * side * 3, 128)])
}

beforeAll(async () => {
  if (missing.length > 0) return
  work = mkdtempSync(join(tmpdir(), 'svc-rows-'))
  undo.later(() => rmSync(work, { recursive: true, force: true }))
  writeFileSync(join(work, 'picture.bmp'), picture())
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  const network = { swarm: QUIET_SWARM, hub: { endpoint: hub.endpoint } }
  from = await testDaemon({ fileConfig: { ...network, mirror: { hub_addr: '127.0.0.1:0' } } }, undo.later)
  byOci = await testDaemon({}, undo.later)
  byShare = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } }, undo.later)
  byUrl = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } }, undo.later)
  // the folder of the bucket that anybody may read
  www = join(work, 'www/open')
  mkdirSync(www, { recursive: true })
  const server = await startFakeBucket(join(work, 'www'))
  undo.later(() => server.close())
  bucket = `${server.url}open/`
  mirror = `http://${JSON.parse(readFileSync(join(from.folder, 'runtime.json'), 'utf8')).hubMirrorAddress}`
  const python: PythonLoaders = startPythonLoaders({ HF_ENDPOINT: mirror, HF_HOME: join(work, 'python') }, ROWS)
  undo.later(() => python.close())
  context = { python, picture: join(work, 'picture.bmp') }
  for (const row of LOADER_ROWS) {
    const original = originalOf(row)
    if (row.files === undefined) await python.ask('make', row.kind, original)
    else mkdirSync(original, { recursive: true })
    for (const [name, bytes] of Object.entries(row.files?.() ?? {})) writeFileSync(join(original, name), bytes)
    writeFileSync(join(original, 'README.md'), `# ${row.kind}\n`)
    const files = [...folderAt(original)].map(([path, content]) => ({ path, content }))
    hub.commit({ id: repoOf(row), files })
    await ok(from, 'import', 'hf', repoOf(row))
  }
  // from here on there is no hub but the mirror
  await hub.close()
})

const expected = new Map<string, Computed>()
async function expectLoads(row: LoaderRow, folder: string): Promise<void> {
  expect(Object.fromEntries(folderAt(folder))).toEqual(Object.fromEntries(folderAt(originalOf(row))))
  expect(await row.load(folder, context)).toEqual(expected.get(row.kind))
}

describe.skipIf(missing.length > 0).each(LOADER_ROWS)('$kind', (row) => {
  beforeAll(async () => {
    expected.set(row.kind, await row.load(originalOf(row), context))
  })

  it(`the loader needs ${row.needs}`, async () => {
    const without = join(work, 'without', repoOf(row))
    cpSync(originalOf(row), without, { recursive: true })
    rmSync(join(without, row.needs))
    const computed = await row.load(without, context).catch(() => undefined)
    expect(computed).not.toEqual(expected.get(row.kind))
  })

  it('a view', async () => {
    await expectLoads(row, await ok(from, 'path', refOf(row), '--dir'))
  })

  it('the hub mirror, by the Python client', async () => {
    await expectLoads(row, await context.python.ask<string>('fetch', repoOf(row)))
    if (row.byName) expect(await context.python.ask('load', row.kind, repoOf(row))).toEqual(expected.get(row.kind))
  })

  it('the hub mirror, by the JavaScript client', async () => {
    const repo = { type: 'model' as const, name: repoOf(row) }
    // it tells of every file
    const told = vi.spyOn(console, 'debug').mockReturnValue()
    onTestFinished(() => told.mockRestore())
    await expectLoads(row, await snapshotDownload({ repo, hubUrl: mirror, cacheDir: join(work, 'javascript') }))
  })

  it('what another daemon imports with the command that svc share prints', async () => {
    await typed(byShare, await ok(from, 'share', refOf(row), '--quiet'))
    await expectLoads(row, await ok(byShare, 'path', refOf(row), '--dir'))
  })

  it('a publication, imported from a web server', async () => {
    const printed = await ok(from, 'publish', refOf(row), www, '--url', bucket)
    await typed(byUrl, printed.split('\n')[0]!)
    await expectLoads(row, await ok(byUrl, 'path', refOf(row), '--dir'))
  })

  it('an OCI layout, imported by another daemon', async () => {
    const layout = join(work, 'layouts', repoOf(row))
    await ok(from, 'export', 'oci', refOf(row), layout)
    await ok(byOci, 'import', 'oci', layout, '--as', refOf(row).split(':')[0]!)
    await expectLoads(row, await ok(byOci, 'path', refOf(row), '--dir'))
  })
})

it.skipIf(missing.length > 0)('the guide names no newer version than the one that ran', async () => {
  const versions = testedWith()
  const { 'llama.cpp': _, ...python } = versions
  const running = await context.python.ask<Record<string, string>>('versions', ...Object.keys(python))
  const older = Object.entries(python).filter(([name, documented]) => isOlder(running[name]!, documented))
  expect(older).toEqual([])
  expect(versions['llama.cpp']).toBe(llamaCppVersion())
})

function isOlder(running: string, documented: string): boolean {
  const [a, b] = [running, documented].map((version) => version.split('.').map(Number)) as [number[], number[]]
  const at = b.findIndex((part, i) => part !== (a[i] ?? 0))
  return at >= 0 && (a[at] ?? 0) < b[at]!
}
