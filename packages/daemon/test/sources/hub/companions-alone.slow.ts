// What lies beside a model whose import did not bring it: fetched alone, at the commit that the manifest names.
import { ClientError, type Job } from '@svc/client'
import type { Sha256Digest } from '@svc/ref'
import type { FakeRepo } from '@svc/testkit/fake-hub'
import { expect, test, vi } from 'vitest'
import { gguf } from '../../support/models.ts'
import { fakeHub, finished, importRepo, type Rig, rigOf, tempFolder, undoAfterTests, writeRepo } from './fixtures.ts'

vi.setConfig({ testTimeout: 30_000 })
undoAfterTests()

const WEIGHTS = { path: 'model-q8_0.gguf', content: gguf(30_000, 3) }
const REPO: FakeRepo = {
  id: 'Acme/Model',
  files: [
    WEIGHTS,
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') },
    { path: 'generation_config.json', content: Buffer.from('{"temperature":0.6}') },
    { path: 'deep/notes.dat', content: { seed: 9, sizeBytes: 20_000 } },
    { path: 'pytorch_model.bin', content: { seed: 8, sizeBytes: 1_100_000 } }
  ]
}
const REF = 'svc:///acme/model:q8_0'
const BESIDE = ['config.json', 'deep/notes.dat', 'generation_config.json']

/** Takes away what an import before companions did not record. */
async function forgetCompanions({ daemon, client }: Rig, ref: string): Promise<Sha256Digest> {
  const { artifacts } = daemon.context
  const manifestDigest = (await client.open(ref)).manifestDigest as Sha256Digest
  const { companions: _, source, ...rest } = (await artifacts.read(manifestDigest))!
  const { companions: __, ...origin } = source
  const state = { ...rest, source: origin }
  await artifacts.forget(manifestDigest)
  await artifacts.record(state)
  expect(await client.open(ref)).not.toHaveProperty('companions')
  return manifestDigest
}

const companions = async (rig: Rig, ref = REF): Promise<Job> => finished(rig, await rig.client.companions({ ref }))
const besideOf = async (rig: Rig, ref = REF) => (await rig.client.open(ref)).companions?.files.map(({ path }) => path)
const sentOf = (rig: Rig) => rig.fake.bytesSent.get(WEIGHTS.path) ?? 0

test('are fetched without weights, and again if their blobs are lost', async () => {
  const rig = await rigOf(await fakeHub({ repos: [REPO] }), { skipUnrecognized: true })
  const imported = await importRepo(rig, REPO.id)
  const manifest = await forgetCompanions(rig, REF)
  // another commit is none of its business
  rig.fake.commit({ ...REPO, files: [WEIGHTS, { path: 'newer.txt', content: Buffer.from('newer') }] })
  const warned = await rig.client.makeView({ ref: REF })
  expect(warned.warnings?.some((warning) => warning.includes('svc companions acme/model:q8_0'))).toBe(true)
  const sent = sentOf(rig)
  const job = await companions(rig)
  expect(job).toMatchObject({
    kind: 'companions',
    state: 'done',
    manifest,
    filesDone: 3,
    filesTotal: 3,
    result: { manifests: [manifest], companions: imported.result!.companions, omitted: 1 }
  })
  expect(job.bytesDone).toBe(job.bytesTotal)
  expect(job.result!.warnings!.some((warning) => warning.includes('pytorch_model.bin'))).toBe(true)
  expect(sentOf(rig)).toBe(sent)
  expect(await besideOf(rig)).toEqual(BESIDE)
  expect((await rig.client.makeView({ ref: REF })).warnings).toBeUndefined()
  const { files } = (await rig.client.open(REF)).companions!
  await rig.daemon.context.store.remove(files[2]!.digest as Sha256Digest)
  expect(await besideOf(rig)).toEqual(BESIDE.slice(0, 2))
  expect((await companions(rig)).state).toBe('done')
  expect(await besideOf(rig)).toEqual(BESIDE)
})

test('the next import of that commit fetches them, and no weights', async () => {
  const rig = await rigOf(await fakeHub({ repos: [REPO] }))
  const { result } = await importRepo(rig, REPO.id)
  await forgetCompanions(rig, REF)
  const sent = sentOf(rig)
  expect((await importRepo(rig, REPO.id)).result!.companions).toBe(result!.companions)
  expect(sentOf(rig)).toBe(sent)
  expect(await besideOf(rig)).toEqual(BESIDE)
})

test('a repository with nothing beside its weights is known to have nothing', async () => {
  const rig = await rigOf(await fakeHub({ repos: [{ id: 'Acme/Model', files: [WEIGHTS] }] }))
  await importRepo(rig, REPO.id)
  expect((await rig.client.open(REF)).companions?.files).toEqual([])
  expect((await rig.client.makeView({ ref: REF })).warnings).toBeUndefined()
})

test('a model without an origin, or gone from the hub, is an error', async () => {
  const fake = await fakeHub({ repos: [REPO] })
  const rig = await rigOf(fake)
  await importRepo(rig, REPO.id)
  await forgetCompanions(rig, REF)
  const local = await rig.client.importLocal({ paths: [await writeRepo([WEIGHTS])], as: 'own/model' })
  await finished(rig, local)
  const refusal = async (ref: string) => {
    const error: unknown = await rig.client.companions({ ref }).catch((cause: unknown) => cause)
    return error instanceof ClientError ? [error.code, error.status] : error
  }
  expect(await refusal('svc:///own/model:q8_0')).toEqual(['E_SOURCE_UNAVAILABLE', 502])
  expect(await refusal('svc:///no/model:q8_0')).toEqual(['E_UNKNOWN_REF', 404])
  expect(await refusal(`svc:///a/b@sha256:${'0'.repeat(64)}`)).toEqual(['E_NOT_FOUND', 404])
  const failure = async () => (await companions(rig)).error?.code
  fake.setFaults(() => ({ kind: 'refuse' }))
  expect(await failure()).toBe('E_SOURCE_UNAVAILABLE')
  fake.setFaults(({ stage }) =>
    stage === 'info' ? { kind: 'status', status: 404, headers: { 'x-error-code': 'RevisionNotFound' } } : undefined
  )
  expect(await failure()).toBe('E_UNKNOWN_REF')
  fake.setFaults(undefined)
  fake.setAccess(REPO.id, { private: true })
  expect(await failure()).toBe('E_SOURCE_FORBIDDEN')
  expect(await besideOf(rig)).toBeUndefined()
})

test('a manifest that names a repository with other weights gets none of its companions', async () => {
  const rig = await rigOf(await fakeHub({ repos: [REPO] }))
  await importRepo(rig, REPO.id)
  await forgetCompanions(rig, REF)
  rig.fake.setFaults(({ stage }) =>
    stage !== 'tree'
      ? undefined
      : { kind: 'tree', edit: (entries) => entries.filter(({ path }) => path !== WEIGHTS.path) }
  )
  expect((await companions(rig)).error).toMatchObject({ code: 'E_NOT_IMPORTABLE' })
  expect(await besideOf(rig)).toBeUndefined()
})

test('companions fetched with a token withhold their model; nothing becomes public', async () => {
  const fake = await fakeHub({ repos: [REPO], tokens: ['hf_owner'] })
  const root = await tempFolder()
  const rig = await rigOf(fake, { root, token: 'hf_owner' })
  await importRepo(rig, REPO.id)
  const manifest = await forgetCompanions(rig, REF)
  fake.setAccess(REPO.id, { gated: 'auto' })
  expect((await companions(rig)).state).toBe('done')
  const access = async () => (await rig.daemon.context.artifacts.read(manifest))?.provenance.access
  expect(await access()).toBe('restricted')
  fake.setAccess(REPO.id, { gated: false })
  expect((await companions(rig)).state).toBe('done')
  expect(await access()).toBe('restricted')
})
