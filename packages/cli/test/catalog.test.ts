// `svc catalog search` and `svc import catalog` against a provider, a hub and a v1 seeder that is not ours.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type FakeCatalog, startFakeCatalog } from '@svc/testkit/fake-catalog'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { haveLibtorrent, startV1Peer } from '@svc/testkit/v1-peer'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'

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

it('says what is not listed, and how to trust the catalog for what the hub has lost', async () => {
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
  const ran = await daemon.svc('import', 'catalog', REPO, ...options)
  expect(ran).toMatchObject({ code: 0, stdout: 'me/pulled:q8_0\n' })
  const { stdout } = await daemon.svc('cat', 'me/pulled:q8_0')
  expect(stdout === content.toString('latin1')).toBe(true)
})
