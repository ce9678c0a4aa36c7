// What a rule [[trust]] requires of an import, and that nothing of a refused model is visible.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ConfigError } from '../../src/errors.ts'
import { sharedByFile, type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { type Files, gguf, safetensors, writeFiles } from '../support/models.ts'
import { FOLDER, SPOILT, signerIn } from '../support/signed-models.ts'

const world = sharedByFile(async (cleanUp) => {
  const folder = temporaryFolder(cleanUp)
  const signer = signerIn(folder)
  const keys = [signer.keyFile]
  const trust = [
    { names: ['acme/free-*'], mode: 'off' },
    { names: ['acme/warned'], mode: 'warn', keys },
    { names: ['ACME/*', '*/signed-*'], mode: 'require', keys }
  ]
  const api = await testDaemon({ fileConfig: { swarm: { enabled: false }, trust } }, cleanUp)
  return { api, signer, trust }
})

async function importFiles(api: TestDaemon, as: string, files: Files, more: object = {}) {
  const { body } = await api.post('/v1/import/local', { paths: [writeFiles(temporaryFolder(), files)], as, ...more })
  return api.finished(body)
}

/** Names, records, and documents that make a model of blobs. */
async function visible({ running: { context } }: TestDaemon): Promise<readonly unknown[]> {
  const manifests: string[] = []
  for await (const { digest } of context.store.list())
    if (await context.documents.manifest(digest).catch(() => undefined)) manifests.push(digest)
  const names = await context.repos.names('acme')
  return [names, await context.artifacts.digests(), manifests.sort()]
}

it('a signed model passes, with all of its files', async () => {
  const { api, signer } = await world()
  const job = await importFiles(api, 'acme/good', signer.sign(FOLDER))
  expect(job).toMatchObject({ state: 'done', result: { quants: ['bf16'] } })
  expect(job.result).not.toHaveProperty('warnings')
  const { companions } = (await api.open('svc:///acme/good:bf16')).body
  expect(companions.files.map(({ path }: { path: string }) => path)).toContain('model.sig')
})

it.each(Object.entries(SPOILT))(
  '%s: refused with the names of rule and file, and nothing is visible',
  async (_, spoil) => {
    const { signer, trust } = await world()
    const api = await testDaemon({ fileConfig: { swarm: { enabled: false }, trust } })
    const { names, files } = spoil(signer)
    const nothing = await visible(api)
    const job = await importFiles(api, 'acme/spoilt', files)
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(job.error!.message).toContain('[[trust]] 3')
    expect(job.error!.message).toContain(names)
    expect(await visible(api)).toEqual(nothing)
    expect((await api.get('/v1/models')).body.namespaces).toEqual([])
  }
)

it('the first matching rule applies, in any case', async () => {
  const { api, signer } = await world()
  const { files } = SPOILT['a flipped byte in the weights']!(signer)
  expect(await importFiles(api, 'acme/free-x', files)).toMatchObject({ state: 'done' })
  expect(await importFiles(api, 'acme/other', files)).toMatchObject({ state: 'failed' })
  expect(await importFiles(api, 'acme2/other', files)).toMatchObject({ state: 'done' })
})

it('warn lets the model in, and names the file', async () => {
  const { api, signer } = await world()
  const { files } = SPOILT['a flipped byte in the weights']!(signer)
  const job = await importFiles(api, 'acme/warned', files)
  expect(job).toMatchObject({
    state: 'done',
    result: { warnings: expect.arrayContaining([expect.stringMatching(/\[\[trust\]\] 2.*model\.safetensors/)]) }
  })
})

it("another signer's signature is refused", async () => {
  const { api } = await world()
  const files = signerIn(temporaryFolder(), 'other').sign(FOLDER)
  expect(await importFiles(api, 'acme/theirs', files)).toMatchObject({
    state: 'failed',
    error: { message: expect.stringContaining('model.sig') }
  })
})

it('one quant of a signed repository can be imported, under a normalized name', async () => {
  const { api, signer } = await world()
  const files = signer.sign({
    'Tiny.Q4_K_M.gguf': gguf(3_000, 61),
    'Tiny.Q8_0.gguf': gguf(3_000, 62),
    'config.json': '{"model_type":"llama"}'
  })
  const more = { names: 'normalized', quants: ['q8_0'], aux: 'none' }
  const job = await importFiles(api, 'acme/quants', files, more)
  expect(job).toMatchObject({ state: 'done', result: { quants: ['q8_0'] } })
  const changed = { ...files, 'Tiny.Q8_0.gguf': gguf(3_000, 63) }
  expect(await importFiles(api, 'acme/changed', changed, more)).toMatchObject({
    state: 'failed',
    error: { message: expect.stringContaining('Tiny.Q8_0.gguf') }
  })
})

it('an adapter and a tokenizer in a folder are compared by their own names', async () => {
  const { api, signer } = await world()
  const files = {
    ...FOLDER,
    'lora/adapter_model.safetensors': safetensors(500, 64),
    'lora/adapter_config.json': '{}',
    'tokenizer/vocab.json': '{}'
  }
  expect(await importFiles(api, 'acme/adapted', signer.sign(files))).toMatchObject({ state: 'done' })
  const changed = { ...signer.sign(files), 'lora/adapter_model.safetensors': safetensors(500, 65) }
  expect(await importFiles(api, 'acme/adapted-2', changed)).toMatchObject({
    state: 'failed',
    error: { message: expect.stringContaining('lora/adapter_model.safetensors') }
  })
})

it.each([
  ['absent', (folder: string) => join(folder, 'absent.pub')],
  ['no key', (folder: string) => (writeFileSync(join(folder, 'no.pub'), 'hello'), join(folder, 'no.pub'))],
  ['a folder', (folder: string) => (mkdirSync(join(folder, 'd')), join(folder, 'd'))]
])('a daemon does not start with a key file that is %s, and names it', async (_, make) => {
  const file = make(temporaryFolder())
  for (const key of ['keys', 'certificates'] as const) {
    const trust = [{ names: ['*'], mode: 'require', [key]: [file] }]
    const start = testDaemon({ fileConfig: { swarm: { enabled: false }, trust } })
    await expect(start).rejects.toThrow(ConfigError)
    await expect(start).rejects.toThrow(file)
  }
})
