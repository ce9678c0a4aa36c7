import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { type TestDaemon, testDaemon } from '../support/daemon.ts'
import { gguf, safetensors, writeFiles } from '../support/models.ts'

vi.setConfig({ testTimeout: 60_000 })

const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const sha256 = (bytes: string | Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const gitSha1 = (bytes: string | Buffer): string =>
  createHash('sha1')
    .update(`blob ${Buffer.byteLength(bytes)}\0`)
    .update(bytes)
    .digest('hex')

const FILES = {
  'model.safetensors': safetensors(4_000),
  'tiny-q8_0.gguf': gguf(7_000),
  'config.json': '{"model_type":"llama"}\n',
  'tokenizer.json': '{"version":"1.0"}',
  'chat_template.jinja': '{{ messages }}'
} as const

/** The same files under names that say nothing, as in a cache. */
function cached(folder: string) {
  const entries = Object.entries(FILES)
  writeFiles(folder, Object.fromEntries(entries.map(([, bytes], i) => [`blobs/${i}`, bytes])))
  return entries.map(([name, bytes], i) => ({
    name,
    path: join(folder, `blobs/${i}`),
    ...(/safetensors|gguf/.test(name) ? { sha256: sha256(bytes) } : { gitSha1: gitSha1(bytes) })
  }))
}

async function adopt(daemon: TestDaemon, body: object) {
  const answer = await daemon.post('/v1/adopt', { as: 'me/adopted', ...body })
  expect([answer.status, answer.body.error]).toEqual([201, undefined])
  return daemon.finished(answer.body)
}
async function manifestOf(daemon: TestDaemon, ref: string) {
  const { files, manifestDigest } = (await daemon.open(ref)).body
  const { path } = files.find(({ digest }: { digest: string }) => digest === manifestDigest)
  return { manifestDigest, ...JSON.parse(readFileSync(path, 'utf8')) }
}

test('files with other names on disk become the same artifacts as under their real names', async () => {
  const daemon = await testDaemon()
  const files = cached(join(daemon.folder, 'cache'))
  expect(await adopt(daemon, { files })).toMatchObject({ state: 'done', kind: 'import-local', as: 'me/adopted' })
  const plain = await daemon.import([writeFiles(join(daemon.folder, 'Plain'), FILES)], 'me/plain')
  const job = await adopt(daemon, { files, as: 'me/again' })
  expect(job.result?.manifests).toEqual(plain.result?.manifests)
  expect(statSync(files[0]!.path).nlink).toBe(1)
})

test('the manifest names the hub if and only if every byte was compared', async () => {
  const daemon = await testDaemon()
  const files = cached(join(daemon.folder, 'cache'))
  const hub = { repo: 'Acme/Tiny', revision: COMMIT }
  await adopt(daemon, { files, hub, as: 'me/known' })
  const known = await manifestOf(daemon, 'svc:///me/known:q8_0')
  expect(known.annotations).toMatchObject({ 'svc.hf.repo': 'Acme/Tiny', 'svc.hf.revision': COMMIT })
  const state = JSON.parse(
    readFileSync(join(daemon.root, `state/artifacts/${known.manifestDigest.slice(7)}.json`), 'utf8')
  )
  expect(state.source).toEqual({ kind: 'hf', ...hub, companions: state.companions['me/known'] })
  await adopt(daemon, { files: files.map(({ name, path }) => ({ name, path })), hub, as: 'me/unknown' })
  expect((await manifestOf(daemon, 'svc:///me/unknown:q8_0')).annotations ?? {}).not.toHaveProperty('svc.hf.repo')
})

test.each(Object.keys(FILES))('a damaged %s is named, and nothing is imported', async (name) => {
  const daemon = await testDaemon()
  const files = cached(join(daemon.folder, 'cache'))
  const { path } = files.find((file) => file.name === name)!
  const bytes = readFileSync(path)
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(path, bytes)
  const job = await adopt(daemon, { files })
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE', candidates: [name] } })
  expect((await daemon.get('/v1/models')).body.namespaces).toEqual([])
})

test('adopted files are the caller’s own only if the caller says so', async () => {
  const daemon = await testDaemon()
  const accessOf = async (bytes: Buffer, body: object): Promise<string> => {
    const path = join(writeFiles(join(daemon.folder, sha256(bytes).slice(-8)), { m: bytes }), 'm')
    await adopt(daemon, { files: [{ name: 'm-q8_0.gguf', path }], ...body })
    return (await daemon.get('/v1/why?ref=svc:///me/adopted:q8_0')).body.access
  }
  expect(await accessOf(gguf(7_000, 1), {})).toBe('unknown')
  expect(await accessOf(gguf(7_000, 2), { own: false })).toBe('unknown')
  expect(await accessOf(gguf(7_000, 3), { own: true })).toBe('own')
  // without a hub to ask, the name of a repository is no more than that
  expect(await accessOf(gguf(7_000, 4), { own: true, hub: { repo: 'Acme/Tiny' } })).toBe('unknown')
})

test('a large file of which the cache has only its git name is compared with that', async () => {
  const daemon = await testDaemon()
  const bytes = Buffer.concat([gguf(7_000), Buffer.alloc(33 << 20)])
  const path = join(writeFiles(join(daemon.folder, 'cache'), { weights: bytes }), 'weights')
  const file = { name: 'tiny-q8_0.gguf', path }
  const hub = { repo: 'Acme/Tiny', revision: COMMIT }
  const wrong = await adopt(daemon, { files: [{ ...file, gitSha1: gitSha1('another') }], hub })
  expect(wrong).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE', candidates: [file.name] } })
  expect(await adopt(daemon, { files: [{ ...file, gitSha1: gitSha1(bytes) }], hub })).toMatchObject({ state: 'done' })
})

test('a file whose disk goes away before it is read ends the job, and leaves no half model', async () => {
  const daemon = await testDaemon()
  const cache = join(daemon.folder, 'disk')
  const files = cached(cache)
  renameSync(cache, `${cache}-away`)
  const gone = await daemon.post('/v1/adopt', { as: 'me/gone', files })
  expect([gone.status, gone.body.error.code]).toEqual([400, 'E_BAD_REQUEST'])
  expect((await daemon.get('/v1/models')).body.namespaces).toEqual([])
  renameSync(`${cache}-away`, cache)
  expect(await adopt(daemon, { files })).toMatchObject({ state: 'done' })
})

test('files whose digests are in the store are not read again', async () => {
  const daemon = await testDaemon()
  await daemon.import([writeFiles(join(daemon.folder, 'Plain'), FILES)], 'me/plain')
  const files = cached(join(daemon.folder, 'cache'))
  const weights = files.find(({ name }) => name === 'tiny-q8_0.gguf')!
  // other bytes of the same length: whoever read them would notice
  writeFileSync(weights.path, Buffer.alloc(FILES['tiny-q8_0.gguf'].length))
  expect(await adopt(daemon, { files })).toMatchObject({ state: 'done' })
})

test('links, absent files, duplicate names and malformed digests are refused before a byte is read', async () => {
  const daemon = await testDaemon()
  const { folder } = daemon
  const [file, ...rest] = cached(join(folder, 'cache'))
  const { name, path } = file!
  symlinkSync(path, join(folder, 'link'))
  symlinkSync(join(folder, 'cache'), join(folder, 'linked'))
  mkdirSync(join(folder, 'dir'))
  const code = async (files: object[], more: object = {}) => {
    const { status, body } = await daemon.post('/v1/adopt', { as: 'me/bad', files, ...more })
    return [status, body.error?.code]
  }
  const irregular = [400, 'E_SOURCE_NOT_REGULAR']
  expect(await code([{ name, path: join(folder, 'link') }])).toEqual(irregular)
  expect(await code([{ name, path: join(folder, 'linked/blobs/0') }])).toEqual(irregular)
  expect(await code([{ name, path: join(folder, 'dir') }])).toEqual(irregular)
  const bad = [400, 'E_BAD_REQUEST']
  expect(await code([])).toEqual(bad)
  expect(await code([{ name, path: join(folder, 'absent') }])).toEqual(bad)
  expect(await code([{ name, path: 'cache/blobs/0' }])).toEqual(bad)
  expect(await code([{ name, path: `${folder}/cache/../cache/blobs/0` }])).toEqual(bad)
  expect(await code([file!, { ...rest[0]!, name }])).toEqual(bad)
  expect(await code([{ name: '../escape.gguf', path }])).toEqual(bad)
  expect(await code([{ name, path, sha256: 'abc' }])).toEqual(bad)
  expect(await code([{ name, path, gitSha1: 'abc' }])).toEqual(bad)
  expect(await code([file!], { hub: { repo: 'Acme/../x', revision: 'main' } })).toEqual(bad)
  expect(await code([file!], { as: 'library/x' })).toEqual(bad)
})

test('a file that becomes a link after the listing is not followed', async () => {
  const daemon = await testDaemon()
  const secret = join(daemon.folder, 'secret')
  writeFileSync(secret, gguf(7_000, 9))
  const path = join(daemon.folder, 'cache', 'weights')
  writeFiles(join(daemon.folder, 'cache'), { weights: gguf(7_000, 8) })
  const { body } = await daemon.post('/v1/adopt', { as: 'me/swapped', files: [{ name: 'm-q8_0.gguf', path }] })
  rmSync(path)
  symlinkSync(secret, path)
  const job = await daemon.finished(body)
  // either the job had opened the file before the swap, or it refused: the secret is in neither
  expect(['done', 'failed']).toContain(job.state)
  expect((await daemon.get(`/v1/blob/${sha256(readFileSync(secret))}`)).status).toBe(404)
})
