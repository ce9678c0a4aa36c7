import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OpenResultSchema, ResolveResultSchema } from '@svc/client/protocol'
import { describe, expect, it } from 'vitest'
import { MODEL, writeFiles } from '../support/models.ts'
import { blobFile, fits, imported, ownRepositories, sharedMembers, spoil } from './members.ts'

const shared = sharedMembers()
const ownRepository = ownRepositories()

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
    // the contract's words
    expect(body.error.message).toContain('network fetch is not implemented')
    expect((await api.resolve('svc:///other/model:q4_0')).body.error.candidates).toEqual([])
  })

  it('requires one ref, with %2B for +', async () => {
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

  it('distinguishes a missing index from an invalid one, also right after its use', async () => {
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

  it('reports corrupt state and does not change it', async () => {
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
      const answer = await api.resolve('svc:///me/model:q8_0')
      expect([answer.status, answer.body.error.code]).toEqual([500, 'E_INTERNAL'])
      expect(answer.body.error.message).toContain('state/repos/me/model.json')
      expect((await api.get('/v1/models')).body).toMatchObject({ damaged: [{ file: 'state/repos/me/model.json' }] })
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
    const api = (await ownRepository()).api
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

  it('lists missing blobs, and has no metadata without a manifest', async () => {
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

  it('reports a corrupt manifest', async () => {
    const { api, manifests, ref } = await ownRepository()
    spoil(blobFile(api, manifests[2]!), '{}')
    const { status, body } = await api.open(`${ref}:q8_0`)
    expect([status, body.error.code]).toEqual([500, 'E_CORRUPTION'])
    expect((await api.post('/v1/ensure', { ref: `${ref}:q8_0` })).body.error.code).toBe('E_CORRUPTION')
  })
})

describe('vectors/ref.json over HTTP', () => {
  const { parse } = JSON.parse(readFileSync(new URL('../../../../vectors/ref.json', import.meta.url), 'utf8')) as {
    parse: { name: string; input: string; libraryOnly?: boolean; error?: { code: string } }[]
  }
  it('each row has its documented result', async () => {
    const api = (await shared()).api
    for (const { name, input, libraryOnly, error } of parse) {
      if (libraryOnly === true) continue
      const { status, body } = await api.resolve(input)
      if (error !== undefined) expect([name, status, body.error.code]).toEqual([name, 400, error.code])
      else expect([name, body.error?.code ?? 'ok']).not.toContain('E_PARSE')
    }
  })
})
