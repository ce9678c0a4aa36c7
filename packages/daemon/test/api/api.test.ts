import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  InventorySchema,
  JobListSchema,
  JobSchema,
  OpenResultSchema,
  ResolveResultSchema,
  StatusSchema
} from '@svc/client/protocol'
import type { TSchema } from 'typebox'
import Value from 'typebox/value'
import { describe, expect, it } from 'vitest'
import { type CleanUp, sharedByFile, type TestDaemon, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'

const fits = (schema: TSchema, value: unknown): void => expect([...Value.Errors(schema, value)]).toEqual([])
const blobFile = (api: TestDaemon, digest: string): string =>
  join(api.root, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))
const spoil = (path: string, bytes: string | Buffer): void => {
  rmSync(path)
  writeFileSync(path, bytes)
}

interface Imported {
  readonly api: TestDaemon
  readonly indexDigest: string
  readonly manifests: readonly string[]
}

/** Imports a repository with members q4_0, q4_k_m and q8_0; another number gives other bytes. */
async function importMembers(api: TestDaemon, as = 'me/model', number = 0): Promise<Imported> {
  const files = {
    'm-q4_0.gguf': gguf(1000, number * 3 + 1),
    'm-q4_k_m.gguf': gguf(1000, number * 3 + 2),
    'm-q8_0.gguf': gguf(1000, number * 3 + 3)
  }
  const job = await api.import([writeFiles(join(api.folder, `m${number}`), files)], as)
  return { api, indexDigest: job.result!.indexDigest!, manifests: job.result!.manifests }
}

/** A daemon of the test's own. */
const imported = async (cleanUp?: CleanUp): Promise<Imported> => importMembers(await testDaemon({}, cleanUp))

/** For tests that change nothing: me/model, and the same as tagged/model with the tag stable. */
const shared = sharedByFile(async (cleanUp) => {
  const made = await imported(cleanUp)
  await importMembers(made.api, 'tagged/model')
  const tags = new Map([['stable', made.indexDigest as never]])
  await made.api.running.context.repos.update({ ns: 'tagged', name: 'model' }, async (state) => ({ ...state!, tags }))
  return made
})

/** For tests that harm a repository of their own, which no other test looks at. */
const workshop = sharedByFile((cleanUp) => testDaemon({}, cleanUp))
let harmed = 0
async function ownRepository(): Promise<Imported & { readonly ref: string }> {
  const name = `own${++harmed}/model`
  return { ...(await importMembers(await workshop(), name, harmed)), ref: `svc:///${name}` }
}

describe('resolve', () => {
  it('gives every documented field', async () => {
    const { api, indexDigest, manifests } = await shared()
    const { status, body } = await api.resolve('svc:///Me/MODEL:q8')
    expect(status).toBe(200)
    fits(ResolveResultSchema, body)
    expect(body).toMatchObject({
      ref: 'svc:///me/model:q8',
      ns: 'me',
      name: 'model',
      quant: 'q8_0',
      indexDigest,
      manifestDigest: manifests[2],
      plan: 'pending'
    })
    const direct = await api.resolve(`svc:///no/where@${manifests[0]}`)
    expect(direct.body).toEqual({
      ref: `svc:///no/where@${manifests[0]}`,
      ns: 'no',
      name: 'where',
      manifestDigest: manifests[0],
      plan: 'pending',
      planReason: body.planReason
    })
  })

  it.each([
    ['an exact member', ':q4_0', 200, undefined, undefined],
    ['a unique prefix', ':q4_k', 200, undefined, undefined],
    ['an ambiguous prefix', ':q4', 400, 'E_AMBIGUOUS_SELECTOR', ['q4_0', 'q4_k_m']],
    ['no member', ':q5', 400, 'E_NO_MEMBER', ['q4_0', 'q4_k_m', 'q8_0']],
    ['an unknown tag', ':v9+q8_0', 404, 'E_UNKNOWN_REF', ['stable']],
    ['a tag', ':stable+q8', 200, undefined, undefined],
    ['a bare tag', ':stable', 400, 'E_PARSE', ['q4_0', 'q4_k_m', 'q8_0']],
    ['no selector', '', 400, 'E_PARSE', ['q4_0', 'q4_k_m', 'q8_0']],
    ['another pin', `:q8_0@sha256:${'0'.repeat(64)}`, 400, 'E_PIN_MISMATCH', undefined]
  ])('%s', async (_name, selector, status, code, candidates) => {
    const { api } = await shared()
    const answer = await api.resolve(`svc:///tagged/model${selector}`)
    expect(answer.status).toBe(status)
    expect(answer.body.error?.code).toBe(code)
    expect(answer.body.error?.candidates).toEqual(candidates)
    expect((await api.open(`svc:///tagged/model${selector}`)).status).toBe(status)
  })

  it('names siblings of an unknown repository, and keeps tags apart', async () => {
    const { api } = await shared()
    const { status, body } = await api.resolve('svc:///me/other:q4_0')
    expect([status, body.error.code, body.error.candidates]).toEqual([404, 'E_UNKNOWN_REF', ['me/model']])
    expect((await api.resolve('svc:///other/model:q4_0')).body.error.candidates).toEqual([])
  })

  it('wants one ref, and %2B for +', async () => {
    const { api } = await shared()
    for (const path of [
      '/v1/resolve',
      '/v1/resolve?ref=',
      '/v1/resolve?x=y',
      '/v1/resolve?ref=a&ref=b',
      '/v1/resolve?ref=%ff',
      '/v1/open'
    ]) {
      const { status, body } = await api.get(path)
      expect([path, status, body.error.code]).toEqual([path, 400, 'E_BAD_REQUEST'])
    }
    expect((await api.get('/v1/resolve?ref=svc:///me/model:stable+q8_0')).body.error.code).toBe('E_PARSE')
    expect((await api.get('/v1/resolve?ref=svc:///me/model:stable%2Bq8_0')).body.error.code).toBe('E_UNKNOWN_REF')
  })

  it('tells an absent index from an invalid one, also right after it was in use', async () => {
    const { api, indexDigest, ref } = await ownRepository()
    expect((await api.resolve(`${ref}:q8_0`)).status).toBe(200)
    const path = blobFile(api, indexDigest)
    const bytes = readFileSync(path)
    for (const bad of [Buffer.concat([bytes, Buffer.from('\n')]), Buffer.from('{}'), Buffer.alloc(0)]) {
      spoil(path, bad)
      expect((await api.resolve(`${ref}:q8_0`)).body.error.code).toBe('E_INVALID_INDEX')
      expect((await api.resolve(`${ref}:q8_0`)).status).toBe(500)
    }
    rmSync(path)
    const { status, body } = await api.resolve(`${ref}:q8_0`)
    expect([status, body.error.code]).toEqual([404, 'E_NO_INDEX'])
    const listed = (await api.get('/v1/models')).body.namespaces as { indexDigest: string }[]
    expect(listed.filter((entry) => entry.indexDigest === indexDigest)).toMatchObject([
      { name: 'model', indexPresent: false, quants: [] }
    ])
    spoilBack(path, bytes)
    expect((await api.resolve(`${ref}:q8_0`)).status).toBe(200)
  })

  it('names corrupt state and leaves it alone', async () => {
    const { api } = await imported()
    const path = join(api.root, 'state/repos/me/model.json')
    for (const bad of [
      '',
      '{',
      '[]',
      '{"index":"x","tags":{}}',
      '{"tags":{}}',
      `{"index":"sha256:${'0'.repeat(64)}","tags":{"q4_0":"x"}}`
    ]) {
      writeFileSync(path, bad)
      for (const answer of [await api.resolve('svc:///me/model:q8_0'), await api.get('/v1/models')]) {
        expect([answer.status, answer.body.error.code]).toEqual([500, 'E_INTERNAL'])
        expect(answer.body.error.message).toContain('state/repos/me/model.json')
      }
      const { error, verify } = await api.verify('all')
      expect(error!.code).toBe('E_VERIFY_FAILED')
      expect(verify!.stateErrors).toHaveLength(1)
      const job = await api.import([join(api.folder, 'm0')])
      expect(job.error!.code).toBe('E_INTERNAL')
      expect(readFileSync(path, 'utf8')).toBe(bad)
    }
  })
})

const spoilBack = (path: string, bytes: Buffer): void => writeFileSync(path, bytes)

describe('open', () => {
  it('lists index, manifest and files in order, with what the manifest says', async () => {
    const api = await workshop()
    const job = await api.import([writeFiles(join(api.folder, 'whole'), MODEL)], 'whole/model')
    const { status, body } = await api.open('svc:///whole/model:bf16')
    expect(status).toBe(200)
    fits(OpenResultSchema, body)
    expect(body.missing).toBeUndefined()
    expect(body.files[0].digest).toBe(job.result!.indexDigest)
    expect(body.files[1].digest).toBe(body.manifestDigest)
    expect(
      body.files
        .slice(2)
        .map((file: { kind: string; name: string; role?: string }) => [file.kind, file.name, file.role])
    ).toEqual([
      ['config', 'modelconfig.json', undefined],
      ['weights.safetensors', 'model.safetensors', undefined],
      ['tokenizer', 'tokenizer.tar', undefined],
      ['chat-template', 'chat_template.jinja', undefined],
      ['code', 'modeling_tiny.py', 'model']
    ])
    for (const file of body.files) expect(readFileSync(file.path).length).toBe(file.size)
    expect(readFileSync(body.files[3].path)).toEqual(MODEL['model.safetensors'])
  })

  it('lists what is missing, and has no metadata without a manifest', async () => {
    const { api, indexDigest, ref } = await ownRepository()
    const before = (await api.open(`${ref}:q8_0`)).body
    rmSync(before.files[3].path)
    const after = (await api.open(`${ref}:q8_0`)).body
    expect(after.missing).toEqual([before.files[3].digest])
    expect(after.files).toHaveLength(3)
    rmSync(before.files[1].path)
    const last = (await api.open(`${ref}:q8_0`)).body
    expect(last.missing).toEqual([before.manifestDigest])
    expect(last.files).toEqual([{ digest: indexDigest, path: before.files[0].path, size: before.files[0].size }])
    const direct = (await api.open(`svc:///x/y@${before.manifestDigest}`)).body
    expect([direct.files, direct.missing, direct.indexDigest]).toEqual([[], [before.manifestDigest], undefined])
  })

  it('calls a corrupt manifest corrupt', async () => {
    const { api, manifests, ref } = await ownRepository()
    spoil(blobFile(api, manifests[2]!), '{}')
    const { status, body } = await api.open(`${ref}:q8_0`)
    expect([status, body.error.code]).toEqual([500, 'E_CORRUPTION'])
    expect((await api.post('/v1/ensure', { ref: `${ref}:q8_0` })).body.error.code).toBe('E_CORRUPTION')
  })
})

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

  it('keeps no more of an endless reference than it takes to recognise it', async () => {
    const { api } = await shared()
    const { status, body } = await api.post('/v1/ensure', { ref: `svc:///me/${'x'.repeat(500_000)}:q8_0` })
    expect([status, body.state, body.error.code]).toEqual([201, 'failed', 'E_LENGTH'])
    expect(body.ref.length).toBeLessThan(600)
    expect(body.ref.startsWith('svc:///me/xxx')).toBe(true)
  })

  it('names the knob when files are missing and the swarm is off', async () => {
    const { api, ref } = await ownRepository()
    rmSync((await api.open(`${ref}:q8_0`)).body.files[3].path)
    const { body } = await api.post('/v1/ensure', { ref: `${ref}:q8_0` })
    expect([body.state, body.error.code]).toEqual(['failed', 'E_SOURCE_UNAVAILABLE'])
    expect(body.error.message).toContain('[swarm] enabled')
  })

  it('waits for the swarm when files are missing and it is on', async () => {
    const api = await testDaemon({
      fileConfig: { swarm: { enabled: true } },
      parts: {
        swarm: (context) => ({
          filler: {
            async fill({ missing }, { onProgress }) {
              await context.store.ingest(once(content), { digest: missing[0]! })
              onProgress({ filesDone: 1, bytesDone: content.length })
            }
          },
          start: async () => undefined,
          withhold: async () => undefined,
          unneeded: async () => undefined,
          importBt: () => Promise.reject(new Error('not in this test')),
          share: () => Promise.reject(new Error('not in this test')),
          status: () => ({
            enabled: true,
            seed: true,
            seeding: 0,
            heldBack: [],
            torrents: [],
            peers: 0,
            downBytesPerSecond: 0,
            upBytesPerSecond: 0
          }),
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

  it('finds a flipped bit, moves the blob away, and lists what is missing', async () => {
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

  it('tells its status', async () => {
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

describe('vectors/ref.json over HTTP', () => {
  const { parse } = JSON.parse(readFileSync(new URL('../../../../vectors/ref.json', import.meta.url), 'utf8')) as {
    parse: { name: string; input: string; libraryOnly?: boolean; error?: { code: string } }[]
  }
  it('gives each row its verdict', async () => {
    const api = (await shared()).api
    for (const { name, input, libraryOnly, error } of parse) {
      if (libraryOnly === true) continue
      const { status, body } = await api.resolve(input)
      if (error !== undefined) expect([name, status, body.error.code]).toEqual([name, 400, error.code])
      else expect([name, body.error?.code ?? 'ok']).not.toContain('E_PARSE')
    }
  })
})
