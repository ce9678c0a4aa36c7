import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { ModelMember, ViewEntry } from '@svc/client/protocol'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { describe, expect, test } from 'vitest'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const shared = { 'tokenizer.json': '{"version":"1.0"}', 'config.json': '{"model_type":"llama"}' }
const quants = (...names: string[]) =>
  Object.fromEntries(names.map((quant, i) => [`m-${quant}.gguf`, gguf(50_000 + i, quant.length * 7 + i)]))

async function importAs(api: TestDaemon, as: string, files: Record<string, string | Buffer>): Promise<void> {
  const job = await api.import([writeFiles(temporaryFolder(), files)], as)
  expect(job.error).toBeUndefined()
}
async function gc(api: TestDaemon, body: object = { graceSeconds: 0 }) {
  const { status, body: job } = await api.post('/v1/gc', body)
  expect(status).toBe(201)
  return api.finished(job)
}
const remove = (api: TestDaemon, path: string) => api.call('DELETE', `/v1/models/${path}`)
const members = async (api: TestDaemon): Promise<ModelMember[]> =>
  (await api.get('/v1/models')).body.namespaces.flatMap((entry: { members: ModelMember[] }) => entry.members)

function blobs({ root }: TestDaemon): Sha256Digest[] {
  const folder = join(root, 'blobs', 'sha256')
  return readdirSync(folder).flatMap((two) =>
    existsSync(join(folder, two)) ? readdirSync(join(folder, two)).map((rest) => digestFromHex(two + rest)) : []
  )
}

test('the inventory has size, state and times of each quant', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 4, 1))
  const api = await testDaemon({ clock })
  await importAs(api, 'me/m', { ...quants('q4_0', 'q8_0'), ...shared })
  const [first, second] = await members(api)
  expect(first).toEqual({
    quant: 'q4_0',
    manifest: expect.stringMatching(/^sha256:/),
    sizeBytes: expect.any(Number),
    complete: true,
    private: false,
    importedAt: '2026-05-01T00:00:00.000Z',
    companions: expect.stringMatching(/^sha256:/),
    origin: { kind: 'local' }
  })
  expect(second!.quant).toBe('q8_0')
  await clock.advance(3_600_000)
  const { body: opened } = await api.open('svc:///me/m:q4_0')
  const [used] = await members(api)
  expect(used!.lastUsedAt).toBe('2026-05-01T01:00:00.000Z')
  const weights = opened.files.find((file: { kind?: string }) => file.kind === 'weights.gguf')
  await api.running.context.store.remove(weights.digest)
  const [broken] = await members(api)
  expect(broken).toMatchObject({ complete: false, missingBytes: weights.size })
  expect(broken).not.toHaveProperty('damaged')
})

describe('removing', () => {
  test('one quant is removed with the tag of the current index; its space is freed, the rest stays', async () => {
    const api = await testDaemon()
    await importAs(api, 'me/m', { ...quants('q4_0', 'q8_0'), ...shared })
    await api.running.context.repos.update({ ns: 'me', name: 'm' }, async (state) => ({
      ...state!,
      tags: new Map([['now', state!.index!]])
    }))
    const { status, body } = await remove(api, 'me/m/q4_0')
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { ref: 'me/m:q4_0', tags: ['now'], quants: [{ quant: 'q4_0', needed: false }] }
    })
    expect(body.freeableBytes).toBeGreaterThan(50_000)
    expect((await api.resolve('svc:///me/m:q4_0')).body.error.code).toBe('E_NO_MEMBER')
    const before = blobs(api).length
    const dry = await gc(api, { dryRun: true, graceSeconds: 0 })
    expect(blobs(api)).toHaveLength(before)
    const job = await gc(api)
    expect(job.result).toEqual(dry.result)
    expect(job.result!.bytes).toBeGreaterThanOrEqual(body.freeableBytes)
    expect(blobs(api)).toHaveLength(before - job.result!.blobs!)
    expect(await api.verify('all')).toMatchObject({ state: 'done', verify: {} })
    expect((await api.verify('svc:///me/m:q8_0')).state).toBe('done')
    expect((await gc(api)).result).toEqual({ blobs: 0, bytes: 0 })
  })

  test('blobs of an older snapshot stay, unless its tag is removed', async () => {
    const api = await testDaemon()
    await importAs(api, 'me/m', quants('q4_0'))
    await api.running.context.repos.update({ ns: 'me', name: 'm' }, async (state) => ({
      ...state!,
      tags: new Map([['v1', state!.index!]])
    }))
    await importAs(api, 'me/m', quants('q8_0'))
    const { body } = await remove(api, 'me/m')
    expect(body).toMatchObject({
      tags: [],
      quants: [
        { quant: 'q4_0', needed: true, holders: [{ kind: 'tag', what: 'me/m:v1' }] },
        { quant: 'q8_0', needed: false }
      ]
    })
    await gc(api)
    expect((await api.verify('svc:///me/m:v1+q4_0')).state).toBe('done')
    const inventory = (await api.get('/v1/models')).body
    expect(inventory).toMatchObject({ namespaces: [], tags: [{ repo: 'me/m', tag: 'v1', blobPresent: true }] })
    expect((await api.resolve('svc:///me/m:q4_0')).status).toBe(404)
    // a model of that name can be imported again beside the old snapshot
    await importAs(api, 'me/m', quants('q8_0'))
    expect((await api.resolve('svc:///me/m:q8_0')).status).toBe(200)
    expect((await remove(api, 'me/m?tags=all')).body).toMatchObject({ tags: ['v1'] })
    await gc(api)
    expect(blobs(api)).toEqual([])
    expect((await api.get('/v1/models')).body).toMatchObject({ namespaces: [], tags: [] })
    expect(readdirSync(join(api.root, 'state', 'artifacts'))).toEqual([])
  })

  test('the response names views, jobs and readers', async () => {
    const api = await testDaemon()
    const { context } = api.running
    await importAs(api, 'me/m', quants('q4_0', 'q8_0'))
    const { path } = (await api.post('/v1/views', { ref: 'svc:///me/m:q4_0', path: join(temporaryFolder(), 'v') })).body
    const [, { manifest }] = (await members(api)) as [ModelMember, ModelMember]
    const { promise, resolve: end } = Promise.withResolvers<object>()
    const job = context.jobs.start({ kind: 'ensure', ref: 'x', manifest }, () => promise)
    const lease = context.store.lease([manifest as Sha256Digest])
    expect((await remove(api, 'me/m')).body.quants).toMatchObject([
      { quant: 'q4_0', needed: true, holders: [{ kind: 'view', what: path }] },
      { quant: 'q8_0', needed: false, holders: [{ kind: 'job', what: job.id }] }
    ])
    end({})
    await context.jobs.over(job.id)
    await importAs(api, 'me/m', quants('q4_0', 'q8_0'))
    expect((await remove(api, 'me/m/q8_0')).body.quants).toMatchObject([{ needed: false, holders: [{ kind: 'use' }] }])
    lease.release()
  })

  test('an artifact with another name is needed, and so are blobs that artifacts share', async () => {
    const api = await testDaemon()
    await importAs(api, 'a/one', { ...quants('q4_0'), ...shared })
    await importAs(api, 'b/two', { ...quants('q4_0'), ...shared })
    await importAs(api, 'c/three', { ...quants('q8_0'), ...shared })
    expect((await remove(api, 'a/one')).body).toMatchObject({
      quants: [{ needed: true, holders: [{ kind: 'name', what: 'b/two:q4_0' }] }],
      freeableBytes: 0
    })
    expect((await remove(api, 'b/two')).body.freeableBytes).toBeGreaterThan(0)
    await gc(api)
    expect(await api.verify('svc:///c/three:q8_0')).toMatchObject({ state: 'done' })
    expect(await api.verify('all')).toMatchObject({ state: 'done', verify: {} })
  })

  test.each([
    ['me/none', 404, 'E_UNKNOWN_REF'],
    ['me/m/q2_k', 404, 'E_NO_MEMBER'],
    ['me/m/Q4_0', 404, 'E_NO_MEMBER'],
    ['Me/m', 400, 'E_BAD_REQUEST'],
    ['me/..%2f..', 400, 'E_BAD_REQUEST'],
    ['me/m?tags=some', 400, 'E_BAD_REQUEST']
  ])('%s: %d %s', async (path, status, code) => {
    const api = await testDaemon()
    await importAs(api, 'me/m', quants('q4_0'))
    const refused = await remove(api, path)
    expect({ status: refused.status, code: refused.body.error?.code }).toEqual({ status, code })
    expect(await members(api)).toHaveLength(1)
  })

  test('a pinned import without a name is released by its digest', async () => {
    const api = await testDaemon()
    await importAs(api, 'me/m', quants('q4_0'))
    const [{ manifest }] = (await members(api)) as [ModelMember]
    const { artifacts } = api.running.context
    const hints = { trackers: [], webseeds: [], peers: [] }
    await artifacts.record({
      manifestDigest: manifest as Sha256Digest,
      source: { kind: 'bt' },
      provenance: { access: 'own' },
      pinned: true,
      hints
    })
    expect((await remove(api, 'me/m')).body).toMatchObject({ quants: [{ needed: true }] })
    await gc(api)
    expect((await api.verify(manifest)).state).toBe('done')
    expect((await api.call('DELETE', `/v1/pins/${manifest}`)).body).toMatchObject({ quants: [{ needed: false }] })
    expect((await api.call('DELETE', `/v1/pins/${manifest}`)).status).toBe(404)
    await gc(api)
    expect(blobs(api)).toEqual([])
  })
})

describe('a collection', () => {
  test('keeps young blobs, by default for a day', async () => {
    const api = await testDaemon()
    await importAs(api, 'me/m', quants('q4_0'))
    await remove(api, 'me/m')
    expect((await gc(api, {})).result).toEqual({ blobs: 0, bytes: 0 })
    expect((await gc(api, { graceSeconds: 3600 })).result).toEqual({ blobs: 0, bytes: 0 })
    expect((await gc(api)).result!.blobs).toBeGreaterThan(0)
  })

  test('on request removes managed views of models that have no name and no holder', async () => {
    const api = await testDaemon()
    const views = async () =>
      ((await api.get('/v1/views')).body.views as ViewEntry[]).map(({ manifestDigest, managed, needed }) => [
        manifestDigest,
        managed ? 'managed' : 'named',
        needed
      ])
    const viewed = async (more: object = {}): Promise<string> => {
      const { status, body } = await api.post('/v1/views', { ref: 'svc:///me/m:q4_0', ...more })
      expect(status).toBe(200)
      return body.manifestDigest
    }
    await importAs(api, 'me/m', quants('q4_0'))
    const first = await viewed()
    await viewed({ layout: 'hf' })
    const before = blobs(api).length
    await importAs(api, 'me/m', { 'm-q4_0.gguf': gguf(60_000, 91) })
    const second = await viewed()
    expect(await views()).toEqual(
      [
        [first, 'managed', false],
        [first, 'managed', false],
        [second, 'managed', true]
      ].sort()
    )

    // a view keeps what it shows, unless the request says otherwise
    expect((await gc(api)).result).not.toHaveProperty('views')
    expect((await api.verify(first)).state).toBe('done')
    const young = await gc(api, { views: true })
    expect(young.result).toEqual({ blobs: 0, bytes: 0, views: 0 })
    const dry = await gc(api, { views: true, graceSeconds: 0, dryRun: true })
    expect(dry.result).toMatchObject({ views: 2, blobs: expect.any(Number) })
    expect(dry.result!.bytes).toBeGreaterThan(50_000)
    expect(await views()).toHaveLength(3)
    expect((await gc(api, { views: true, graceSeconds: 0 })).result).toEqual(dry.result)
    expect(await views()).toEqual([[second, 'managed', true]])
    expect(blobs(api)).toHaveLength(before)

    // a view that a command holds stays, and so does one at a named place
    await viewed({ holdSeconds: 600 })
    await viewed({ path: join(temporaryFolder(), 'mine') })
    await remove(api, 'me/m')
    expect((await gc(api, { views: true, graceSeconds: 0 })).result).toMatchObject({ views: 0 })
    expect((await api.verify(second)).state).toBe('done')
    expect((await views()).sort()).toEqual([
      [second, 'managed', false],
      [second, 'named', false]
    ])
  })

  test('removes nothing while something that names others cannot be read', async () => {
    const api = await testDaemon()
    await importAs(api, 'me/gone', quants('q8_0'))
    await importAs(api, 'me/m', quants('q4_0'))
    await remove(api, 'me/gone')
    const { store, repos } = api.running.context
    const [{ manifest }] = (await members(api)) as [ModelMember]
    const before = blobs(api).length
    await store.remove(manifest as Sha256Digest)
    expect(await gc(api)).toMatchObject({ state: 'failed', error: { code: 'E_CORRUPTION' } })
    await store.remove((await repos.read('me', 'm'))!.index!)
    expect(await gc(api)).toMatchObject({ state: 'failed', error: { code: 'E_NO_INDEX' } })
    expect(blobs(api)).toHaveLength(before - 2)
    // the way out that the messages name
    expect((await remove(api, 'me/m')).status).toBe(200)
    expect((await gc(api)).state).toBe('done')
    expect(blobs(api)).toEqual([])
  })

  test('keeps a blob while it is being read', async () => {
    const api = await testDaemon()
    await importAs(api, 'me/m', quants('q4_0'))
    const { body: opened } = await api.open('svc:///me/m:q4_0')
    const { digest } = opened.files.find((file: { kind?: string }) => file.kind === 'weights.gguf')
    const reader = await api.running.context.store.open(digest)
    await remove(api, 'me/m')
    await gc(api)
    expect(blobs(api)).toEqual([digest])
    await reader.close()
    await gc(api)
    expect(blobs(api)).toEqual([])
  })

  test.each([{ graceSeconds: -1 }, { graceSeconds: '1' }, { dryRun: 1 }])('%j is refused', async (body) => {
    const api = await testDaemon()
    expect((await api.post('/v1/gc', body)).body.error.code).toBe('E_BAD_REQUEST')
  })
})

test('records of abandoned imports are removed with their bytes; records of other artifacts stay', async () => {
  const api = await testDaemon()
  const { store, holdings, jobs } = api.running.context
  const [gone, coming] = [digestFromHex('1'.repeat(64)), digestFromHex('2'.repeat(64))]
  const bytes = Buffer.from('left by an import')
  const here = (await store.ingest(Readable.from([bytes]), { sizeBytes: bytes.length })).digest
  for (const digest of [gone, coming, here]) await holdings.arrivals.begin(digest, 'hf:acme/m', { isEmpty: true })
  const partial = await store.partial({ key: coming, digest: coming, sizeBytes: 100 })
  await partial.write(0, Buffer.alloc(10))
  await partial.release()
  const left = async () => {
    const noted = await holdings.arrivals.noted()
    return [gone, coming, here].map((digest) => noted.includes(digest))
  }

  // a running import may be about to write its first byte
  const end = Promise.withResolvers<never>()
  const underWay = jobs.start({ kind: 'import-hf', ref: 'acme/m' }, () => end.promise)
  await gc(api, {})
  expect(await left()).toEqual([true, true, true])
  end.reject(new Error('given up'))
  await api.finished(underWay)
  await gc(api, { dryRun: true })
  expect(await left()).toEqual([true, true, true])
  await gc(api, {})
  expect(await left()).toEqual([false, true, true])
})
