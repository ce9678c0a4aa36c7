import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { InventorySchema, JobListSchema, JobSchema, StatusSchema } from '@svc/client/protocol'
import { describe, expect, it } from 'vitest'
import { testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { fits, imported, ownRepositories, sharedMembers, spoil } from './members.ts'

const shared = sharedMembers()
const ownRepository = ownRepositories()

describe('ensure', () => {
  it('is done at once when everything is here', async () => {
    const { api, manifests } = await shared()
    const { status, body } = await api.post('/v1/ensure', { ref: 'svc:///ME/model:q8' })
    expect(status).toBe(201)
    fits(JobSchema, body)
    expect(body).toMatchObject({
      kind: 'ensure',
      state: 'done',
      ref: 'svc:///me/model:q8',
      manifest: manifests[2],
      filesDone: 2,
      filesTotal: 2
    })
    expect((await api.get(`/v1/jobs/${body.id}`)).body).toEqual(body)
  })

  it.each([
    ['an unknown reference', 'svc:///no/thing:q4_0', 'E_UNKNOWN_REF'],
    ['a malformed one', 'me/model:q8_0', 'E_PARSE'],
    ['a long one', `svc:///me/${'x'.repeat(600)}:q4_0`, 'E_LENGTH'],
    ['an ambiguous one', 'svc:///me/model:q4', 'E_AMBIGUOUS_SELECTOR'],
    ['no member', 'svc:///me/model:q5', 'E_NO_MEMBER'],
    ['a manifest that is not here', `svc:///me/model@sha256:${'1'.repeat(64)}`, 'E_SOURCE_UNAVAILABLE']
  ])('fails as a job for %s', async (_name, ref, code) => {
    const { api } = await shared()
    const { status, body } = await api.post('/v1/ensure', { ref })
    expect([status, body.state, body.error.code]).toEqual([201, 'failed', code])
    if (code === 'E_SOURCE_UNAVAILABLE') expect(body.error.message).toContain('/v1/import/')
  })

  it('stores only a short prefix of an endless reference', async () => {
    const { api } = await shared()
    const { status, body } = await api.post('/v1/ensure', { ref: `svc:///me/${'x'.repeat(500_000)}:q8_0` })
    expect([status, body.state, body.error.code]).toEqual([201, 'failed', 'E_LENGTH'])
    expect(body.ref.length).toBeLessThan(600)
    expect(body.ref.startsWith('svc:///me/xxx')).toBe(true)
  })

  it('names the setting when files are missing and the swarm is off', async () => {
    const { api, ref } = await ownRepository()
    rmSync((await api.open(`${ref}:q8_0`)).body.files[3].path)
    const { body } = await api.post('/v1/ensure', { ref: `${ref}:q8_0` })
    expect([body.state, body.error.code]).toEqual(['failed', 'E_SOURCE_UNAVAILABLE'])
    expect(body.error.message).toContain('[swarm] enabled')
  })

  it('waits for the swarm when files are missing and it is on', async () => {
    const api = await testDaemon({
      fileConfig: { swarm: { enabled: true } },
      networks: {
        swarm: (context) => ({
          filler: {
            canFill: () => true,
            async fill({ missing }, { onProgress }) {
              await context.store.ingest(once(content), { digest: missing[0]! })
              onProgress({ filesDone: 1, bytesDone: content.length })
            },
            fillBeside: async () => undefined
          },
          copies: [],
          start: async () => undefined,
          verifying: undefined,
          withhold: async () => undefined,
          prepareSeeding: async () => undefined,
          limitChanged: () => undefined,
          seedChanged: async () => undefined,
          unneeded: async () => undefined,
          pinned: () => {
            throw new Error('not in this test')
          },
          importPinned: () => Promise.reject(new Error('not in this test')),
          giveUp: async () => undefined,
          restOf: async () => undefined,
          reading: () => ({ until: (offset: number) => offset, read: async () => 0, close: () => undefined }),
          share: () => Promise.reject(new Error('not in this test')),
          status: async () => ({
            seed: true,
            seeding: 0,
            heldBack: [],
            torrents: [],
            peers: 0,
            downBytesPerSecond: 0,
            upBytesPerSecond: 0
          }),
          peers: () => ({ peers: [], more: 0 }),
          totals: () => ({ downloadedBytes: 0, uploadedBytes: 0 }),
          addresses: () => ({}),
          imported: () => undefined,
          close: async () => undefined
        })
      }
    })
    const content = gguf(500)
    await api.import([writeFiles(join(api.folder, 'm'), { 'm-q8_0.gguf': content })])
    rmSync((await api.open('svc:///me/model:q8_0')).body.files[3].path)
    const { body } = await api.post('/v1/ensure', { ref: 'svc:///me/model:q8_0' })
    expect([body.state, body.filesTotal]).toEqual(['waiting', 2])
    expect(await api.finished(body)).toMatchObject({ state: 'done', filesDone: 2, filesTotal: 2 })
    expect((await api.open('svc:///me/model:q8_0')).body.missing).toBeUndefined()
  })
})

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

describe('verify', () => {
  it('re-hashes a reference, a manifest, a blob and everything', async () => {
    const { api, manifests } = await shared()
    const byRef = await api.verify('svc:///me/model:q8_0')
    fits(JobSchema, byRef)
    expect(byRef).toMatchObject({
      kind: 'verify',
      state: 'done',
      ref: 'svc:///me/model:q8_0',
      target: manifests[2],
      filesDone: 3,
      filesTotal: 3,
      verify: {}
    })
    expect(await api.verify(manifests[0]!)).toMatchObject({ state: 'done', target: manifests[0], filesTotal: 3 })
    expect(await api.verify((await api.open('svc:///me/model:q8_0')).body.files[3].digest)).toMatchObject({
      state: 'done',
      filesTotal: 1
    })
    expect(await api.verify('all')).toMatchObject({ state: 'done', target: 'all', verify: {} })
  })

  it('finds a flipped bit, moves the blob to quarantine, and lists missing blobs', async () => {
    const { api } = await imported()
    const { files, manifestDigest } = (await api.open('svc:///me/model:q8_0')).body
    const bytes = readFileSync(files[3].path)
    bytes[500]! ^= 1
    spoil(files[3].path, bytes)
    rmSync(files[2].path)
    const job = await api.verify('svc:///me/model:q8_0')
    expect([job.state, job.error!.code]).toEqual(['failed', 'E_VERIFY_FAILED'])
    expect(job.verify).toEqual({ mismatched: [files[3].digest], missing: [files[2].digest], stateErrors: [] })
    expect((await api.get(`/v1/blob/${files[3].digest}`)).status).toBe(404)
    expect((await api.open(`svc:///x/y@${manifestDigest}`)).body.missing.sort()).toEqual(
      [files[2].digest, files[3].digest].sort()
    )
    const all = await api.verify('all')
    expect(all.verify).toEqual({ mismatched: [], missing: [files[2].digest, files[3].digest].sort(), stateErrors: [] })
  })

  it.each([
    ['svc:///no/thing:q4_0', 404, 'E_UNKNOWN_REF'],
    ['me/model', 400, 'E_PARSE'],
    ['everything', 400, 'E_PARSE'],
    ['sha256:abc', 400, 'E_BAD_REQUEST'],
    [`sha256:${'A'.repeat(64)}`, 400, 'E_BAD_REQUEST']
  ])('refuses the target %s', async (target, status, code) => {
    const { api } = await shared()
    const answer = await api.post('/v1/verify', { target })
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  it('reports an unknown digest as missing', async () => {
    const { api } = await shared()
    const digest = `sha256:${'7'.repeat(64)}`
    expect(await api.verify(digest)).toMatchObject({
      state: 'failed',
      verify: { mismatched: [], missing: [digest], stateErrors: [] }
    })
  })
})

describe('models, jobs, status', () => {
  it('lists repositories and tags', async () => {
    const { api, indexDigest } = await shared()
    const { status, body } = await api.get('/v1/models')
    expect(status).toBe(200)
    fits(InventorySchema, body)
    const entry = { name: 'model', indexDigest, indexPresent: true, quants: ['q4_0', 'q4_k_m', 'q8_0'] }
    const members = entry.quants.map((quant) => expect.objectContaining({ quant, complete: true, private: false }))
    expect(body.namespaces).toEqual([
      { ns: 'me', ...entry, members },
      { ns: 'tagged', ...entry, members }
    ])
    expect(body.tags).toEqual([{ repo: 'tagged/model', tag: 'stable', digest: indexDigest, blobPresent: true }])
  })

  it('gives repositories by pages', async () => {
    const { api } = await shared()
    const page = async (query: string) => {
      const { status, body } = await api.get(`/v1/models?${query}`)
      return [status, body.namespaces?.map(({ ns }: { ns: string }) => ns), body.next ?? body.error?.code]
    }
    expect(await page('limit=1')).toEqual([200, ['me'], 'me/model'])
    expect(await page('limit=1&after=me%2Fmodel')).toEqual([200, ['tagged'], undefined])
    expect(await page('after=me%2Fmodel')).toEqual([200, ['tagged'], undefined])
    expect(await page('limit=2&after=z%2Fz')).toEqual([200, [], undefined])
    for (const query of ['limit=0', 'limit=10001', 'limit=1e3', 'limit=-1', 'after=me', 'after=..%2Fx'])
      expect(await page(query)).toEqual([400, undefined, 'E_BAD_REQUEST'])
  })

  it('lists jobs, newest first, and knows no others', async () => {
    const { api } = await shared()
    const { id } = await api.verify('all')
    const { body } = await api.get('/v1/jobs')
    fits(JobListSchema, body)
    expect(body.jobs[0].id).toBe(id)
    expect(body.jobs.slice(-2).map((job: { as: string }) => job.as)).toEqual(['tagged/model', 'me/model'])
    const unknown = await api.get('/v1/jobs/abc')
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'E_NOT_FOUND'])
    expect(unknown.body.error.message).toContain('abc')
  })

  it('reports its status', async () => {
    const { api } = await shared()
    const { jobs } = (await api.get('/v1/jobs')).body as { jobs: { state: string }[] }
    const { body } = await api.get('/v1/status')
    fits(StatusSchema, body)
    const count = (state: string): number => jobs.filter((job) => job.state === state).length
    expect(body.jobs).toMatchObject({ waiting: 0, fetching: 0, done: count('done'), failed: count('failed') })
    expect(body).toMatchObject({ pid: process.pid, root: api.root, swarm: { enabled: false } })
    expect(body.store.blobs).toBeGreaterThan(5)
  })
})

describe('what needs a part that is off', () => {
  const infohash = `btmh:1220${'0'.repeat(64)}`
  it.each([
    [
      '/v1/import/bt',
      { infohash, manifestDigest: `sha256:${'0'.repeat(64)}`, webseeds: ['http://x/'] },
      501,
      'E_NOT_IMPLEMENTED'
    ],
    ['/v1/import/catalog', { repo: 'a/b' }, 503, 'E_SOURCE_UNAVAILABLE'],
    ['/v1/import/hf', { repo: 'a/b' }, 502, 'E_SOURCE_UNAVAILABLE'],
    ['/v1/import/bt', {}, 400, 'E_BAD_REQUEST'],
    ['/v1/import/catalog', {}, 400, 'E_BAD_REQUEST'],
    ['/v1/import/hf', {}, 400, 'E_BAD_REQUEST']
  ])('%s %j', async (path, body, status, code) => {
    const api = (await shared()).api
    const answer = await api.post(path, body)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    if (code === 'E_NOT_IMPLEMENTED') expect(answer.body.error.message).toContain('[swarm] enabled')
  })

  it('refuses to share', async () => {
    const { api } = await shared()
    const answer = await api.get('/v1/share?ref=svc:///me/model:q8_0')
    expect([answer.status, answer.body.error.code]).toEqual([501, 'E_NOT_IMPLEMENTED'])
  })
})
