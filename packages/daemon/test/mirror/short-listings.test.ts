// The hub's mirror says which files of a commit are not here.
import { expect, test, vi } from 'vitest'
import { fakeHub, importRepo, type Rig, rigOf, undoAfterTests } from '../sources/hub/fixtures.ts'
import { gguf, seededBytes } from '../support/models.ts'

vi.setConfig({ testTimeout: 30_000 })
undoAfterTests()

const ID = 'Acme/Model'
const LARGE = 'pytorch model ü.bin'
const FILES = [
  { path: 'model-q4_0.gguf', content: gguf(2_000, 1) },
  { path: 'model-q8_0.gguf', content: gguf(3_000, 2) },
  { path: 'params', content: Buffer.from('{}') },
  { path: LARGE, content: seededBytes(1_100_000, 3) }
]

const at = ({ mirror }: Rig, path: string): Promise<Response> => fetch(`http://${mirror}${path}`)
const filesIn = async (response: Response): Promise<string[]> =>
  ((await response.json()) as { siblings: { rfilename: string }[] }).siblings.map(({ rfilename }) => rfilename)

test('an incomplete listing says how many files are missing; each of them is refused by name', async () => {
  const rig = await rigOf(await fakeHub({ repos: [{ id: ID, files: FILES }] }), {
    mirror: true,
    skipUnrecognized: true
  })
  await rig.client.waitJob(await rig.client.importHf({ repo: ID, quants: ['q8_0'] }))
  const info = await at(rig, `/api/models/${ID}`)
  expect(info.headers.get('x-svc-left-out')).toBe('2')
  expect(await filesIn(info)).toEqual(['model-q8_0.gguf', 'params'])
  expect((await at(rig, `/api/models/${ID}/tree/main`)).headers.get('x-svc-left-out')).toBe('2')
  for (const [path, why] of [
    [LARGE, 'large'],
    ['model-q4_0.gguf', 'chosen']
  ] as const) {
    const refused = await at(rig, `/${ID}/resolve/main/${encodeURIComponent(path)}`)
    expect([refused.status, refused.headers.get('x-error-code')]).toEqual([404, 'EntryNotFound'])
    expect(refused.headers.get('x-error-message')).toContain(encodeURI(path))
    expect(refused.headers.get('x-error-message')).toContain(why)
  }
  const never = await at(rig, `/${ID}/resolve/main/never%09there.json`)
  expect([never.status, never.headers.get('x-error-code')]).toEqual([404, 'EntryNotFound'])
  expect(never.headers.get('x-error-message')).toContain('never%09there.json')
  expect((await importRepo(rig, ID)).state).toBe('done')
  const more = await at(rig, `/api/models/${ID}`)
  expect(more.headers.get('x-svc-left-out')).toBe('1')
  expect(await filesIn(more)).toEqual(['model-q4_0.gguf', 'model-q8_0.gguf', 'params'])
})

test('a complete listing says nothing; one of an import without companions says that it may be incomplete', async () => {
  const rig = await rigOf(await fakeHub({ repos: [{ id: ID, files: FILES.slice(0, 3) }] }), { mirror: true })
  const { result } = await importRepo(rig, ID)
  const header = async () => (await at(rig, `/api/models/${ID}`)).headers.get('x-svc-left-out')
  expect(await header()).toBeNull()
  const { artifacts } = rig.daemon.context
  for (const digest of result!.manifests) {
    const { companions: _, ...state } = (await artifacts.read(digest as never))!
    const { companions: __, ...source } = state.source
    await artifacts.forget(digest as never)
    await artifacts.record({ ...state, source })
  }
  expect(await header()).toBe('unknown')
})

test('lists branches, tags and conversions, and pull requests on request', async () => {
  const rig = await rigOf(await fakeHub(), { mirror: true })
  const targetCommit = rig.fake.commit({ id: ID, files: FILES.slice(0, 1) })
  await importRepo(rig, ID)
  const refs = { branches: [{ name: 'main', ref: 'refs/heads/main', targetCommit }], tags: [], converts: [] }
  expect(await (await at(rig, `/api/models/${ID}/refs`)).json()).toEqual(refs)
  expect(await (await at(rig, `/api/models/${ID}/refs?include_prs=1`)).json()).toEqual({ ...refs, pullRequests: [] })
})

test('companions of a later import appear in the mirror at once', async () => {
  const fake = await fakeHub()
  const rig = await rigOf(fake, { mirror: true })
  const commit = fake.commit({ id: ID, files: FILES.slice(0, 3) })
  await importRepo(rig, ID)
  const params = async () => (await at(rig, `/${ID}/resolve/${commit}/params`)).text()
  expect(await params()).toBe('{}')
  const { store, artifacts } = rig.daemon.context
  const manifest = (await rig.client.open('svc:///acme/model:q8_0')).manifestDigest as never
  const { sealCompanions } = await import('@svc/manifest')
  const bytes = Buffer.from('{"stop":["<end>"]}')
  const keep = async (content: Uint8Array) =>
    (
      await store.ingest(
        (async function* () {
          yield content
        })(),
        { sizeBytes: content.length }
      )
    ).digest
  const sealed = sealCompanions({
    files: [{ path: 'params', size: bytes.length, digest: await keep(bytes) }],
    omitted: []
  })
  const { provenance: facts } = (await artifacts.read(manifest))!
  for (const digest of (await rig.client.models()).namespaces[0]!.members!.map((member) => member.manifest as never))
    await artifacts.addCompanions(digest, 'acme/model', { digest: await keep(sealed.bytes), facts, isOfSource: true })
  expect(await params()).toBe(bytes.toString())
})
