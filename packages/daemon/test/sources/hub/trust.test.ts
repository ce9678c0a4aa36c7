// Rules [[trust]] for what comes from the hub: for its owner, and for a client of the mirror.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import { type FakeRepoFile, startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'
import { BUILTIN_NETWORKS } from '../../../src/app/networks.ts'
import { mergeConfig } from '../../../src/config/config.ts'
import type { TrustTable } from '../../../src/config/trust.ts'
import { temporaryFolder, testDaemon } from '../../support/daemon.ts'
import { type Files, gguf } from '../../support/models.ts'
import { FOLDER, SPOILT, signerIn } from '../../support/signed-models.ts'

const REF = 'svc:///acme/model:bf16'

async function world(trusting: 'require' | 'off' = 'require', before: readonly TrustTable[] = []) {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const folder = temporaryFolder()
  const signer = signerIn(folder)
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      hub: { endpoint: hub.endpoint },
      mirror: { hub_addr: '127.0.0.1:0', on_demand: true },
      trust: [...before, { names: ['acme/*'], mode: trusting, keys: [signer.keyFile] }]
    },
    { root: join(folder, 'root') },
    {}
  )
  const api = await testDaemon({ folder, config, networks: { hub: BUILTIN_NETWORKS.hub! } })
  const mirror: string = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  const publish = (files: Files): string => hub.commit({ id: 'Acme/Model', files: filesOf(files) })
  const importHf = async (more: object = {}) => {
    const { body } = await api.post('/v1/import/hf', { repo: 'Acme/Model', ...more })
    return api.finished(body)
  }
  /** As clients do, who come again while they are told to. */
  const read = async (path: string): Promise<Response> => {
    for (;;) {
      const answer = await fetch(`http://${mirror}/Acme/Model/resolve/main/${path}`)
      if (answer.status !== 429) return answer
      await answer.body?.cancel()
    }
  }
  const names = async (): Promise<unknown> => (await api.get('/v1/models')).body.namespaces
  return { hub, api, signer, mirror, publish, importHf, read, names }
}

const filesOf = (files: Files): FakeRepoFile[] =>
  Object.entries(files).map(([path, content]) => ({
    path,
    content: Buffer.from(content),
    ...(path.endsWith('.safetensors') && { lfs: true })
  }))

test('a signed model of the hub passes, also under another name and with only some of its files', async () => {
  const { publish, importHf, signer, api } = await world()
  publish(signer.sign({ ...FOLDER, 'imatrix.dat': 'aux' }))
  const job = await importHf({ aux: 'none' })
  expect(job).toMatchObject({ state: 'done' })
  const { companions } = (await api.open(REF)).body
  expect(companions.files.map(({ path }: { path: string }) => path)).toContain('model.sig')
  expect(await importHf({ as: 'me/copy' })).toMatchObject({ state: 'done' })
})

const QUANTS: Files = {
  ...Object.fromEntries(Object.entries(FOLDER).filter(([name]) => name !== 'model.safetensors')),
  'm-q4_0.gguf': gguf(3_000, 81),
  'm-q8_0.gguf': gguf(3_000, 82),
  'mmproj-f16.gguf': gguf(3_000, 83)
}

test.each([
  ['m-q8_0.gguf', { quants: ['q4_0'] }],
  ['m-q8_0.gguf', { files: ['*q4_0*', 'mmproj*'] }],
  ['mmproj-f16.gguf', { aux: 'none' }]
])('%s may be absent if its owner left it out, and never because its source does not show it', async (path, choice) => {
  const { publish, importHf, signer, mirror, api } = await world()
  const { [path]: hidden, ...shown } = signer.sign(QUANTS)
  publish(shown)
  const refused = { state: 'failed', error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining(path) } }
  expect(await importHf()).toMatchObject(refused)
  for (const other of [{ aux: ['f16'] }, { files: ['*'] }])
    if (path.startsWith('m-')) expect(await importHf(other)).toMatchObject(refused)
  expect(await importHf(choice)).toMatchObject({ state: 'done' })
  // what a mirror asks later follows from the choice that was recorded
  const shownAt = async (): Promise<number> => (await fetch(`http://${mirror}/api/models/Acme/Model`)).status
  expect(await shownAt()).toBe(200)
  const quants = (await api.get('/v1/models')).body.namespaces[0].members.map(({ quant }: { quant: string }) => quant)
  const { companions } = (await api.open(`svc:///acme/model:${quants[0]}`)).body
  expect(companions.choice).toEqual(choice)
  publish({ ...shown, [path]: hidden! })
  expect(await importHf()).toMatchObject({ state: 'done' })
  expect((await api.open('svc:///acme/model:q8_0')).body.companions.choice).toBeUndefined()
  expect(await shownAt()).toBe(200)
})

test.each(Object.entries(SPOILT))('%s: refused, whatever the name here', async (_, spoil) => {
  const { publish, importHf, signer, names } = await world()
  const { names: file, files } = spoil(signer)
  publish(files)
  for (const more of [{}, { as: 'me/other' }]) {
    const job = await importHf(more)
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(job.error!.message).toContain('[[trust]] 1')
    expect(job.error!.message).toContain(file)
  }
  expect(await names()).toEqual([])
})

test('a client of the mirror gets every file of a signed model', async () => {
  const { publish, read, signer, api } = await world()
  const files = signer.sign(FOLDER)
  publish(files)
  for (const [path, content] of Object.entries(files)) {
    const answer = await read(path)
    expect([path, answer.status]).toEqual([path, 200])
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(Buffer.from(content))
  }
  expect((await api.open(REF)).body.missing).toBeUndefined()
  const [job] = (await api.get('/v1/jobs')).body.jobs
  const { bytesDone, bytesTotal } = await api.finished(job)
  expect(bytesDone).toBe(bytesTotal)
})

test.each(Object.entries(SPOILT))(
  '%s: no client of the mirror gets the file, and nothing is imported',
  async (_, spoil) => {
    const { publish, read, signer, names } = await world()
    const { names: file, files } = spoil(signer)
    publish(files)
    // what a listing tells keeps all of the model from clients
    const rest = file === 'model.sig' || file === 'model.safetensors' ? ['config.json'] : []
    for (const path of [...rest, file === 'model.sig' ? 'tokenizer.json' : file, 'model.safetensors']) {
      const answer = await read(path)
      expect([path, answer.ok]).toEqual([path, false])
      await answer.body?.cancel()
    }
    expect(await names()).toEqual([])
  }
)

test('a client of the mirror neither gets nor sees an unsigned file that no import brings', async () => {
  const { publish, read, signer, mirror } = await world()
  publish({ ...signer.sign(FOLDER), 'pickled.bin': Buffer.alloc((1 << 20) + 1) })
  const answers = [await read('pickled.bin'), await read('config.json')]
  for (const answer of answers) await answer.body?.cancel()
  expect(answers.map(({ ok }) => ok)).toEqual([false, true])
  const { siblings } = (await (await fetch(`http://${mirror}/api/models/Acme/Model`)).json()) as { siblings: object[] }
  expect(siblings).toContainEqual({ rfilename: 'config.json' })
  expect(siblings).not.toContainEqual({ rfilename: 'pickled.bin' })
})

test('the name in the answer of the hub relaxes no rule, for the owner and for a client of the mirror', async () => {
  const { hub, publish, importHf, read, names } = await world('require', [{ names: ['lax/*'], mode: 'off' }])
  publish(FOLDER)
  hub.rename('Acme/Model', 'Lax/Model')
  for (const more of [{}, { as: 'me/other' }])
    expect(await importHf(more)).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining('[[trust]] 2') }
    })
  const answer = await read('model.safetensors')
  await answer.body?.cancel()
  expect(answer.ok).toBe(false)
  expect(await names()).toEqual([])
  // that of the request, which its owner typed, does
  expect(await importHf({ repo: 'Lax/Model' })).toMatchObject({ state: 'done' })
})

test('a younger rule applies to the name that was asked for, too', async () => {
  const before = await world('off')
  before.publish(FOLDER)
  before.hub.rename('Acme/Model', 'Lax/Model')
  const job = await before.importHf({ as: 'me/other' })
  expect(job).toMatchObject({ state: 'done' })
  await before.api.running.close({ quick: true })
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      trust: [
        { names: ['lax/*', 'me/*'], mode: 'off' },
        { names: ['acme/*'], mode: 'require', keys: [before.signer.keyFile] }
      ]
    },
    { root: before.api.root },
    {}
  )
  const { artifacts, signed } = (await testDaemon({ folder: before.api.folder, config })).running.context
  const state = (await artifacts.read(job.manifest as Sha256Digest))!
  for (const name of ['me/other', undefined])
    expect(await signed.ruleFor(state, name)).toMatchObject({ mode: 'require' })
})

test('a mirror reads no signature that is larger than a companion', async () => {
  const { hub, publish, read, signer } = await world()
  const { 'model.sig': signature, ...files } = signer.sign(FOLDER)
  publish({ ...files, 'model.sig': `${Buffer.from(signature as Uint8Array)}${' '.repeat(1 << 20)}` })
  const answer = await read('config.json')
  await answer.body?.cancel()
  expect(answer.ok).toBe(false)
  expect(hub.requests.filter(({ url }) => url.includes('model.sig'))).toEqual([])
})

test('companions that arrive later are checked with the model', async () => {
  const { publish, importHf, signer, api } = await world()
  publish(signer.sign(FOLDER))
  expect(await importHf()).toMatchObject({ state: 'done' })
  const before = (await api.open(REF)).body.companions
  const again = async () => api.finished((await api.post('/v1/companions', { ref: REF })).body)
  expect(await again()).toMatchObject({ state: 'done' })
  expect((await api.open(REF)).body.companions).toEqual(before)
})

test('companions that the signature does not cover are refused, and present ones stay', async () => {
  const before = await world('off')
  before.publish(FOLDER)
  expect(await before.importHf()).toMatchObject({ state: 'done' })
  const { companions } = (await before.api.open(REF)).body
  await before.api.running.close({ quick: true })
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      hub: { endpoint: before.hub.endpoint },
      trust: [{ names: ['acme/*'], mode: 'require', keys: [before.signer.keyFile] }]
    },
    { root: before.api.root },
    {}
  )
  const api = await testDaemon({ folder: before.api.folder, config, networks: { hub: BUILTIN_NETWORKS.hub! } })
  const job = await api.finished((await api.post('/v1/companions', { ref: REF })).body)
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect(job.error!.message).toContain('model.sig')
  expect((await api.open(REF)).body.companions).toEqual(companions)
})
