// `svc catalog search` and `svc import catalog` against a provider, a hub and a v1 seeder that is not ours.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type FakeCatalog, startFakeCatalog } from '@svc/testkit/fake-catalog'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { haveLibtorrent, startV1Peer } from '@svc/testkit/v1-peer'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, QUIET_SWARM, type TestDaemon, testDaemon, typing } from './support.ts'

const REPO = 'Org/Model-GGUF'
const GGUF = 'model-q8_0.gguf'
const undo = laterUndo()
const content = makeGguf({ seed: 3 })
let hub: FakeHub
let catalog: FakeCatalog
let daemon: TestDaemon

beforeAll(async () => {
  hub = await startFakeHub()
  undo.later(() => hub.close())
  catalog = await startFakeCatalog()
  undo.later(() => catalog.close())
  const fileConfig = { hub: { endpoint: hub.endpoint }, catalog: { endpoint: catalog.endpoint }, swarm: QUIET_SWARM }
  daemon = await testDaemon({ fileConfig }, undo.later)
}, 60_000)
afterAll(undo.all)

function line(repo: string, infohash: string, commit: string) {
  const webseed = encodeURIComponent(`${hub.endpoint}/${repo}/resolve/${commit}`)
  return { repo, seeds: 3, magnet: `magnet:?xt=urn:btih:${infohash}&dn=${GGUF}&ws=${webseed}` }
}

it('searches', async () => {
  catalog.list([line(REPO, 'a'.repeat(40), 'b'.repeat(40)), line('Other/One', 'c'.repeat(40), 'd'.repeat(40))])
  const plain = await daemon.svc('catalog', 'search', 'model', 'gguf')
  const [head, row, ...more] = plain.stdout.split('\n').map((text) => text.split(/ {2,}/))
  expect(head).toEqual(['MODEL', 'QUANT', 'SIZE', 'SEEDS', 'NAME'])
  expect(row).toEqual([REPO, 'q8_0', '1.0 GiB', '3', GGUF])
  expect(more).toEqual([['']])
  const json = await daemon.svc('catalog', 'search', 'other', '--json')
  expect(JSON.parse(json.stdout).entries).toMatchObject([{ repo: 'Other/One', seeds: 3 }])
  expect(await daemon.svc('catalog', 'search', 'nothing', '-q')).toEqual({ code: 0, stdout: '', stderr: '' })
})

it('lists several quants with sizes and asks which to import; without a terminal it exits with 2', async () => {
  const [a, b, c] = ['1', '2', '3'].map((digit) => digit.repeat(40)) as [string, string, string]
  const quant = (infohash: string, name: string) => ({
    repo: 'Org/Many-GGUF',
    seeds: 1,
    magnet: `magnet:?xt=urn:btih:${infohash}&dn=${name}`
  })
  catalog.list([quant(a, 'Many-7B.Q4_K_M.gguf'), quant(b, 'Many-7B-Q8_0.gguf'), quant(c, 'Many-7B-Q2_K.gguf')])
  const found = await daemon.svc('catalog', 'search', 'many')
  expect(found.stdout).toMatch(/^Org\/Many-GGUF +q4_k_m +1\.0 GiB +1 +Many-7B\.Q4_K_M\.gguf$/m)
  const ran = await daemon.svc('import', 'catalog', 'org/many-gguf')
  expect(ran).toMatchObject({ code: 2, stdout: '' })
  for (const row of ['q4_k_m +1\\.0 GiB', 'q8_0 +1\\.0 GiB', 'q2_k +1\\.0 GiB'])
    expect(ran.stderr).toMatch(new RegExp(`^ +${row}`, 'm'))
  expect(ran.stderr).toContain('svc import catalog Org/Many-GGUF:q4_k_m, or --all')
  const json = await daemon.svc('import', 'catalog', 'Org/Many-GGUF', '--json')
  expect(JSON.parse(json.stderr).error.candidates).toEqual(['q4_k_m', 'q8_0', 'q2_k'])

  // svc asks the hub for each chosen quant in turn; the hub has none, and the first failure ends the command
  const lost = { code: 2, stdout: '' }
  for (const [answer, ...args] of [['Q8'], ['q2_k, q8_0'], ['', '--all'], ['', '--quant', 'Q8_0,q2_k']] as const) {
    const ran = await daemon.svcWith(['import', 'catalog', 'Org/Many-GGUF', ...args], {
      columns: 100,
      stdin: typing(answer)
    })
    expect(ran).toMatchObject(lost)
    expect(ran.stderr.includes('Which?')).toBe(args.length === 0)
    expect(ran.stderr).toContain('--trust-catalog')
  }
  const none = await daemon.svcWith(['import', 'catalog', 'Org/Many-GGUF'], {
    columns: 100,
    stdin: typing('')
  })
  expect(none).toMatchObject(lost)
  expect(none.stderr).toContain('nothing was chosen')
})

it('reports unlisted models, and how to trust the catalog for models that the hub no longer has', async () => {
  const unlisted = await daemon.svc('import', 'catalog', 'Org/None')
  expect(unlisted).toMatchObject({ code: 3, stdout: '' })
  catalog.list([line('Org/Gone', 'e'.repeat(40), 'f'.repeat(40))])
  catalog.record('Org/Gone', new Map([[GGUF, '0'.repeat(64)]]))
  const gone = await daemon.svc('import', 'catalog', 'Org/Gone')
  expect(gone).toMatchObject({ code: 2, stdout: '' })
  expect(gone.stderr).toContain('--trust-catalog')
  catalog.fail(503)
  const down = await daemon.svc('catalog', 'search', 'x')
  catalog.fail(undefined)
  expect(down).toMatchObject({ code: 6, stdout: '' })
}, 60_000)

it.skipIf(!haveLibtorrent)('pulls from the listed swarm', { timeout: 90_000 }, async () => {
  const path = join(daemon.folder, 'seed', 'model', GGUF)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  const folder = join(daemon.folder, 'seed')
  const seed = await startV1Peer({ mode: 'seed', folder, name: 'model', piece_length: 65_536 })
  undo.later(() => seed.stop())
  const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content, lfs: true }] })
  catalog.list([line(REPO, seed.infohash, commit)])
  const options = ['--quant', 'q8_0', '--peer', seed.address, '--as', 'me/pulled']
  // an import does not replace another model unless it is told to
  writeFileSync(join(daemon.folder, 'own-q8_0.gguf'), makeGguf({ seed: 99 }))
  expect((await daemon.svc('import', 'local', 'own-q8_0.gguf', '--as', 'me/pulled')).code).toBe(0)
  const refused = await daemon.svc('import', 'catalog', REPO, ...options, '--json')
  expect(refused.code).toBe(2)
  expect(JSON.parse(refused.stderr).error).toMatchObject({ code: 'E_NAME_TAKEN', candidates: ['me/pulled:q8_0'] })
  const ran = await daemon.svc('import', 'catalog', REPO, ...options, '--replace')
  expect(ran).toMatchObject({ code: 0, stdout: 'me/pulled:q8_0\n' })
  const { stdout } = await daemon.svc('cat', 'me/pulled:q8_0')
  expect(stdout === content.toString('latin1')).toBe(true)
})
