import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { recordText } from '@svc/testkit/records'
import { expect, it } from 'vitest'
import { oneChunk } from '../../../internal/state/src/small-blob.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { blobFile } from './members.ts'

/** The models `me/hurt`, which has a view, `me/fine` and `me/gone`, with the files of the first. */
async function threeModels() {
  const api = await testDaemon()
  for (const [seed, name] of ['hurt', 'fine', 'gone'].entries()) {
    const folder = writeFiles(join(api.folder, name), { 'm-q8_0.gguf': gguf(5_000, seed + 1) })
    expect((await api.import([folder], `me/${name}`)).state).toBe('done')
  }
  const place = join(temporaryFolder(), 'view')
  expect((await api.post('/v1/views', { ref: 'svc:///me/hurt:q8_0', path: place })).status).toBe(200)
  const opened = (await api.open('svc:///me/hurt:q8_0')).body
  const digests = opened.files.map(({ digest }: { digest: string }) => digest) as Sha256Digest[]
  const files = {
    repo: 'state/repos/me/hurt.json',
    artifact: `state/artifacts/${digestHex(opened.manifestDigest)}.json`,
    view: `state/views/${readdirSync(join(api.root, 'state/views'))[0]}`
  }
  return { api, files, digests, place, manifest: opened.manifestDigest as Sha256Digest }
}

function flipped(path: string): void {
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(path, bytes)
}
function newer(path: string): void {
  const {
    version: _,
    readers: __,
    checksum: ___,
    ...body
  } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  writeFileSync(path, recordText(body, 99))
}
async function listed(api: Pick<TestDaemon, 'get'>) {
  const { status, body } = await api.get('/v1/models')
  expect([status, body.error]).toEqual([200, undefined])
  const files = (body.damaged ?? []).map(({ file }: { file: string }) => file)
  return { names: body.namespaces.map(({ name }: { name: string }) => name), files, namespaces: body.namespaces }
}
const collect = async (api: TestDaemon) =>
  api.finished((await api.post('/v1/gc', { dryRun: false, graceSeconds: 0, views: true })).body)

it.each([
  ['damaged', 'repo', flipped],
  ['damaged', 'artifact', flipped],
  ['damaged', 'view', flipped],
  ['newer', 'artifact', newer]
] as const)('a %s record of a %s affects only what it names, and stays as it is', async (_, kind, spoil) => {
  const { api, files, digests } = await threeModels()
  const path = join(api.root, files[kind])
  spoil(path)
  const spoilt = readFileSync(path)
  const { names, files: shown } = await listed(api)
  expect(names).toEqual(kind === 'repo' ? ['fine', 'gone'] : ['fine', 'gone', 'hurt'])
  expect(shown).toEqual(kind === 'view' ? [] : [files[kind]])
  expect((await api.get('/v1/status')).body.damaged).toMatchObject([{ file: files[kind] }])
  expect((await api.open('svc:///me/fine:q8_0')).body.missing).toBeUndefined()
  expect((await api.get('/v1/views')).status).toBe(200)
  expect((await api.post('/v1/views', { ref: 'svc:///me/fine:q8_0' })).status).toBe(200)
  const stray = await api.running.context.store.ingest(oneChunk(Buffer.from('nobody needs this')))
  expect((await api.call('DELETE', '/v1/models/me/gone')).status).toBe(200)
  expect(await collect(api)).toMatchObject({ state: 'done', result: { unreadable: 1 } })
  // the record could name any blob
  for (const digest of [stray.digest, ...digests]) expect(existsSync(blobFile(api, digest))).toBe(true)
  const { error, verify } = await api.verify('all')
  expect([error!.code, verify!.mismatched, verify!.missing]).toEqual(['E_VERIFY_FAILED', [], []])
  expect(verify!.stateErrors).toEqual([expect.stringContaining(files[kind])])
  const other = writeFiles(join(api.folder, 'other'), { 'o-q4_0.gguf': gguf(5_000, 9) })
  expect((await api.import([other], 'me/other')).state).toBe('done')
  await api.running.close({ quick: true })
  const again = await testDaemon({ folder: api.folder })
  expect((await listed(again)).names).toContain('other')
  expect(readFileSync(path)).toEqual(spoilt)
})

it('a collection resumes once the record is readable again', async () => {
  const { api, files } = await threeModels()
  const path = join(api.root, files.artifact)
  const before = readFileSync(path)
  const stray = await api.running.context.store.ingest(oneChunk(Buffer.from('nobody needs this')))
  flipped(path)
  expect((await collect(api)).result).toMatchObject({ blobs: 0, unreadable: 1 })
  writeFileSync(path, before)
  expect((await collect(api)).result).toMatchObject({ blobs: 1 })
  expect(existsSync(blobFile(api, stray.digest))).toBe(false)
})

it('a damaged repository is set aside when its name is removed, and its name can be used again', async () => {
  const { api, files, digests } = await threeModels()
  const path = join(api.root, files.repo)
  flipped(path)
  const spoilt = readFileSync(path)
  // nothing is merged into an unreadable record
  expect((await api.import([join(api.folder, 'hurt')], 'me/hurt')).error!.code).toBe('E_INTERNAL')
  expect((await api.call('DELETE', '/v1/models/me/hurt')).body).toMatchObject({ ref: 'me/hurt', quants: [] })
  const folder = join(api.root, 'state/damaged/repos/me')
  expect(readdirSync(folder).map((name) => readFileSync(join(folder, name)))).toEqual([spoilt])
  expect((await api.import([join(api.folder, 'hurt')], 'me/hurt')).state).toBe('done')
  expect((await listed(api)).names).toEqual(['fine', 'gone', 'hurt'])
  for (const digest of digests) expect(existsSync(blobFile(api, digest))).toBe(true)
})

it('a model whose record was damaged stays private when it is imported again, until the owner says otherwise', async () => {
  const { api, files, manifest } = await threeModels()
  const ref = 'svc:///me/hurt:q8_0'
  expect((await api.call('PUT', '/v1/private', { body: { ref, private: true } })).status).toBe(200)
  flipped(join(api.root, files.artifact))
  const { artifacts } = api.running.context
  const shown = async () =>
    (await listed(api)).namespaces.find(({ name }: { name: string }) => name === 'hurt').members[0]
  expect(await shown()).toMatchObject({ private: true, restricted: true, complete: true })
  expect((await api.import([join(api.folder, 'hurt')], 'me/hurt')).state).toBe('done')
  expect(await artifacts.read(manifest)).toMatchObject({
    provenance: { access: 'unknown', decision: { is: 'private' } }
  })
  expect((await listed(api)).files).toEqual([])
  expect(readdirSync(join(api.root, 'state/damaged/artifacts'))).toHaveLength(1)
  expect((await api.call('PUT', '/v1/private', { body: { ref, private: false } })).status).toBe(200)
  expect(await shown()).toMatchObject({ private: false })
})

it('the owner may repeat the decision of a damaged record', async () => {
  const { api, files, manifest } = await threeModels()
  flipped(join(api.root, files.artifact))
  const body = { ref: 'svc:///me/hurt:q8_0', private: false }
  expect((await api.call('PUT', '/v1/private', { body })).status).toBe(200)
  const provenance = { access: 'unknown', decision: { is: 'shared' } }
  expect(await api.running.context.artifacts.read(manifest)).toMatchObject({ provenance })
  expect(readdirSync(join(api.root, 'state/damaged/artifacts'))).toHaveLength(1)
})

it("another import does not make the bytes of a model with a damaged record the owner's own", async () => {
  const { api, files } = await threeModels()
  flipped(join(api.root, files.artifact))
  // the same weights in another artifact
  const folder = writeFiles(join(api.folder, 'again'), {
    'm-q8_0.gguf': gguf(5_000, 1),
    'chat_template.jinja': 'x'
  })
  const job = await api.import([folder], 'me/again')
  const manifest = job.result!.manifests[0] as Sha256Digest
  expect(await api.running.context.artifacts.read(manifest)).toMatchObject({ provenance: { access: 'unknown' } })
})

it('a damaged record of a view is set aside when the view is made again or removed', async () => {
  const { api, files, place } = await threeModels()
  for (const again of [true, false]) {
    flipped(join(api.root, files.view))
    if (again) expect((await api.post('/v1/views', { ref: 'svc:///me/fine:q8_0', path: place })).status).toBe(200)
    else expect((await api.call('DELETE', '/v1/views', { body: { path: place } })).status).toBe(200)
    expect((await api.get('/v1/status')).status).toBe(200)
    expect((await api.verify('all')).error).toBeUndefined()
  }
  expect(readdirSync(join(api.root, 'state/damaged/views'))).toHaveLength(2)
  expect(existsSync(place)).toBe(false)
})

it('a folder in place of a record is state that cannot be read', async () => {
  const api = await testDaemon()
  mkdirSync(join(api.root, 'state/repos/me/x.json'), { recursive: true })
  const { status, body } = await api.get('/v1/models')
  expect([status, body.error.code]).toEqual([500, 'E_INTERNAL'])
})
