// A repository that was taken as it is goes every way that other models go: to peers, web servers, registries, mirrors and tools.
import { createCipheriv } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { startFakeXet } from '@svc/testkit/fake-xet'
import { haveNginx, startNginx } from '@svc/testkit/nginx'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { typed } from './folders.ts'
import { laterUndo, manifestOf, ok, QUIET_SWARM, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })
const undo = laterUndo()
const REPO = 'Acme/Speech-ONNX'
const REF = 'acme/speech-onnx:raw'
const MIB = 2 ** 20
const noise = (sizeBytes: number, seed: number): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(sizeBytes))
/** Of smaller files no differences are worth the requests. */
const WEIGHTS = noise(9 * MIB, 1)
/** 9,024 bytes more near its start. */
const NEWER = Buffer.concat([WEIGHTS.subarray(0, 40_000), noise(9_024, 2), WEIGHTS.subarray(40_000)])
const FILES = {
  'config.json': Buffer.from('{"model_type":"bert"}'),
  'onnx/model.onnx': WEIGHTS,
  'README.md': Buffer.from('# Speech')
}
let hub: FakeHub
let here: TestDaemon

const commit = (files: Readonly<Record<string, Buffer>>): string =>
  hub.commit({ id: REPO, files: Object.entries(files).map(([path, content]) => ({ path, content })) })
const other = (): Promise<TestDaemon> => testDaemon({ fileConfig: { swarm: QUIET_SWARM } })

async function expectSame(daemon: TestDaemon, ref = REF): Promise<void> {
  expect(await manifestOf(daemon, ref)).toBe(await manifestOf(here, REF))
  const folder = await ok(daemon, 'path', '--dir', ref)
  for (const [name, content] of Object.entries(FILES))
    expect(readFileSync(join(folder, name)).equals(content), name).toBe(true)
}

beforeAll(async () => {
  const xet = await startFakeXet({ packing: () => 'plain' })
  undo.later(() => xet.close())
  hub = await startFakeHub({ xet })
  undo.later(() => hub.close())
  commit(FILES)
  const fileConfig = {
    swarm: { ...QUIET_SWARM, webseed_addr: '' },
    hub: { endpoint: hub.endpoint },
    mirror: { hub_addr: '127.0.0.1:0', oci_addr: '127.0.0.1:0', s3_addr: '127.0.0.1:0' }
  }
  here = await testDaemon({ fileConfig }, undo.later)
  await ok(here, 'import', 'hf', REPO, '--opaque')
}, 60_000)
afterAll(undo.all)

it('a peer imports it by its pin, with the command that share prints', async () => {
  const there = await other()
  await typed(there, await ok(here, 'share', REF, '--quiet'))
  await expectSame(there)
  // and gives it on
  const third = await other()
  await typed(third, await ok(there, 'share', REF, '--quiet'))
  await expectSame(third)
})

it.skipIf(!haveNginx)('another store imports it from a published folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-opaque-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  const root = join(folder, 'www')
  mkdirSync(root)
  const nginx = await startNginx(join(folder, 'nginx'), root)
  undo.later(() => nginx.stop())
  const { models } = JSON.parse(await ok(here, 'publish', REF, join(root, 'm'), '--url', `${nginx.url}m/`, '--json'))
  const there = await other()
  await typed(there, models[0].command)
  await expectSame(there)
  const byAddress = await other()
  await ok(byAddress, 'import', `${nginx.url}m/#${REF}`, '--opaque')
  await expectSame(byAddress)
})

it('another store imports it from the mirrors: the registry, and the hub', async () => {
  const { ociMirrorAddress, hubMirrorAddress } = JSON.parse(readFileSync(join(here.folder, 'runtime.json'), 'utf8'))
  const there = await testDaemon({
    fileConfig: { swarm: { enabled: false }, hub: { endpoint: `http://${hubMirrorAddress}` } }
  })
  await ok(there, 'import', 'oci', `${ociMirrorAddress}/acme/speech-onnx:raw`, '--opaque', '--as', 'oci/speech')
  await expectSame(there, 'oci/speech:raw')
  await ok(there, 'import', 'hf', REPO, '--opaque')
  await expectSame(there)
})

it('an object store for others has its files', async () => {
  const { s3MirrorAddress } = JSON.parse(readFileSync(join(here.folder, 'runtime.json'), 'utf8'))
  for (const [name, content] of Object.entries(FILES)) {
    const answer = await fetch(`http://${s3MirrorAddress}/models/acme/speech-onnx/raw/${name}`)
    expect([name, answer.status, Buffer.from(await answer.arrayBuffer()).equals(content)]).toEqual([name, 200, true])
  }
})

it("the hub's cache of a tool shows it under the publisher's names, and a folder of copies has every file", async () => {
  await ok(here, 'view', 'add', 'hf', 'cache')
  const repo = join(here.folder, 'cache/models--Acme--Speech-ONNX')
  const commitNow = readFileSync(join(repo, 'refs/main'), 'utf8')
  for (const [name, content] of Object.entries(FILES))
    expect(readFileSync(join(repo, 'snapshots', commitNow, name)).equals(content), name).toBe(true)
  expect(Object.keys(JSON.parse(readFileSync(join(repo, `trees/${commitNow}.json`), 'utf8')).files).sort()).toEqual(
    Object.keys(FILES).sort()
  )
  await ok(here, 'view', REF, 'copies', '--copy')
  expect(readFileSync(join(here.folder, 'copies/onnx/model.onnx')).equals(WEIGHTS)).toBe(true)
  // tools that load one kind of file alone show nothing of it
  for (const layout of ['llama', 'lmstudio', 'ollama']) {
    await ok(here, 'view', 'add', layout, layout)
    const names = readdirSync(join(here.folder, layout), { recursive: true }).map(String)
    expect(
      names.filter((name) => /speech/i.test(name)),
      layout
    ).toEqual([])
  }
})

it('of a newer commit only the differences are fetched, and its views follow', async () => {
  const now = commit({ ...FILES, 'onnx/model.onnx': NEWER })
  expect(await ok(here, 'outdated', '-q')).toContain(REF)
  const before = hub.bytesSent.get('onnx/model.onnx') ?? 0
  await ok(here, 'upgrade', REF)
  expect((hub.bytesSent.get('onnx/model.onnx') ?? 0) - before).toBeLessThan(MIB)
  expect(readFileSync(join(await ok(here, 'path', '--dir', REF), 'onnx/model.onnx')).equals(NEWER)).toBe(true)
  const file = join(here.folder, 'cache/models--Acme--Speech-ONNX/snapshots', now, 'onnx/model.onnx')
  await expect.poll(() => existsSync(file) && readFileSync(file).equals(NEWER), { timeout: 20_000 }).toBe(true)
})
