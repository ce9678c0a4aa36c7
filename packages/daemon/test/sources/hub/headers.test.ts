// Repositories whose names say too little: the headers decide.

import type { ImportHfBody, Job } from '@svc/client/protocol'
import type { FakeRepoFile } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, test } from 'vitest'
import { fakeHub, finished, manifestsOf, type Rig, rigOf, undoAfterTests } from './fixtures.ts'

undoAfterTests()

type Metadata = Readonly<Record<string, string | number>>
const model = (seed: number, fileType: number, more: Metadata = {}): Buffer =>
  makeGguf({ seed, metadata: { 'general.type': 'model', ...more, 'general.file_type': fileType } })
const part = (seed: number, metadata: Metadata): Buffer => makeGguf({ seed, metadata })

async function rigWith(
  files: readonly FakeRepoFile[]
): Promise<{ rig: Rig; fake: Awaited<ReturnType<typeof fakeHub>> }> {
  const fake = await fakeHub()
  fake.commit({ id: 'Org/M', files: [...files] })
  return { rig: await rigOf(fake), fake }
}

const importHf = async (rig: Rig, body: Partial<ImportHfBody> = {}): Promise<Job> =>
  finished(rig, await rig.client.importHf({ repo: 'Org/M', names: 'normalized', ...body }))

const entriesOf = async (rig: Rig, job: Job): Promise<string[][]> =>
  (await manifestsOf(rig, job)).map(({ files }) =>
    files.slice(1).map(({ kind, name, role, variant }) => [kind, name, role, variant].filter(Boolean).join(' '))
  )

test('a projector, a draft head, an adapter, a matrix and a vocabulary are none of the quants', async () => {
  const { rig } = await rigWith([
    { path: 'gemma-4-E2B_q4_0-it.gguf', content: model(1, 2) },
    {
      path: 'gemma-4-E2B-it-mmproj.gguf',
      content: part(2, { 'general.architecture': 'clip', 'general.file_type': 1 })
    },
    { path: 'vision-F16.gguf', content: part(3, { 'general.type': 'mmproj', 'general.architecture': 'clip' }) },
    { path: 'gemma-assistant-Q8_0.gguf', content: part(4, { 'general.architecture': 'gemma4-assistant' }) },
    { path: 'gemma-LoRA-F16.gguf', content: part(5, { 'general.type': 'adapter' }) },
    { path: 'calibration.gguf', content: part(6, { 'general.type': 'imatrix' }) },
    { path: 'words.gguf', content: makeGguf({ tensors: [] }) }
  ])
  const plan = await rig.client.planHf({ repo: 'Org/M', names: 'normalized' })
  expect(plan.quants).toEqual(['q4_0'])
  expect(plan.files.find(({ upstream }) => upstream === 'words.gguf')).toMatchObject({ reason: 'vocabulary' })
  const job = await importHf(rig)
  expect(job.result).toMatchObject({ quants: ['q4_0'], skipped: 1 })
  expect(await entriesOf(rig, job)).toEqual([
    [
      'weights.gguf gemma-4-e2b-it-q4_0.gguf',
      'weights.aux imatrix-calibration.gguf imatrix',
      'weights.aux lora-gemma-lora-f16.gguf adapter f16',
      'weights.aux mmproj-gemma-4-e2b-it-f16.gguf vision-projector f16',
      'weights.aux mmproj-vision-f16.gguf vision-projector f16',
      'weights.aux mtp-gemma-assistant-q8_0.gguf draft q8_0'
    ]
  ])
})

test('models without a quant in their names are choices of their own, each alone and side by side', async () => {
  const { rig } = await rigWith([
    { path: 'X-APEX-I-Compact.gguf', content: model(1, 15) },
    { path: 'X-APEX-I-Quality.gguf', content: model(2, 15) },
    { path: 'X-APEX-I-Mini.gguf', content: model(3, 18) }
  ])
  const all = await rig.client.planHf({ repo: 'Org/M', names: 'normalized' })
  expect(all.quants).toEqual(['q4_k_m.compact', 'q4_k_m.quality', 'q6_k'])
  expect(all.artifacts.map(({ upstream }) => upstream)).toEqual([
    'X-APEX-I-Compact.gguf',
    'X-APEX-I-Quality.gguf',
    'X-APEX-I-Mini.gguf'
  ])
  const one = await importHf(rig, { quants: ['q4_k_m.quality'] })
  expect(await entriesOf(rig, one)).toEqual([['weights.gguf x-apex-i-quality-q4_k_m.gguf']])
  const other = await importHf(rig, { quants: ['q4_k_m.compact'] })
  expect((await rig.client.resolve('svc:///org/m:q4_k_m.quality')).manifestDigest).toBe(one.result!.manifests[0])
  expect((await rig.client.resolve('svc:///org/m:q4_k_m.compact')).manifestDigest).toBe(other.result!.manifests[0])
  expect((await importHf(rig)).result!.manifests.slice(0, 2)).toEqual(
    [other, one].map(({ result }) => result!.manifests[0])
  )
})

test('the API’s default stays the contract’s', async () => {
  const { rig } = await rigWith([
    { path: 'x.gguf', content: model(1, 15) },
    { path: 'x-mmproj.gguf', content: part(2, { 'general.architecture': 'clip' }) }
  ])
  const job = await importHf(rig, { names: 'upstream' })
  expect(await entriesOf(rig, job)).toEqual([['weights.gguf x-mmproj.gguf', 'weights.gguf x.gguf']])
})

test('an import asks for no header that its plan has read, and for none that names settle', async () => {
  const { rig, fake } = await rigWith([
    { path: 'x-Q4_K_M.gguf', content: model(1, 15) },
    { path: 'x-Q8_0.gguf', content: model(2, 7) },
    { path: 'open.gguf', content: model(33, 18) }
  ])
  await rig.client.planHf({ repo: 'Org/M', names: 'normalized' })
  const read = fake.bytesSent.get('open.gguf')!
  const job = await importHf(rig, { quants: ['q6_k'] })
  expect(job.result).toMatchObject({ quants: ['q6_k'] })
  expect(fake.bytesSent.get('open.gguf')).toBe(read + model(33, 18).length)
})

test('where names settled the plan, headers still decide what a file is', async () => {
  const adapter = part(51, { 'general.type': 'adapter', 'general.architecture': 'llama' })
  const alone = await rigWith([{ path: 'X-abliterated-F16.gguf', content: adapter }])
  const job = await importHf(alone.rig)
  expect(job.result).toMatchObject({ quants: ['raw'] })
  expect(await entriesOf(alone.rig, job)).toEqual([['weights.aux lora-x-abliterated-f16.gguf adapter f16']])
  const files = [
    { path: 'X-Q4_K_M.gguf', content: model(52, 15) },
    { path: 'X-Q8_0.gguf', content: part(53, { 'general.architecture': 'clip' }) }
  ]
  const { rig } = await rigWith(files)
  const whole = await importHf(rig)
  expect(whole.result).toMatchObject({ quants: ['q4_k_m'] })
  expect(await entriesOf(rig, whole)).toEqual([
    ['weights.gguf x-q4_k_m.gguf', 'weights.aux mmproj-x-q8_0.gguf vision-projector q8_0']
  ])
  const vocabulary = makeGguf({ tensors: [] })
  expect(await importHf((await rigWith([{ path: 'X-F16.gguf', content: vocabulary }])).rig)).toMatchObject({
    state: 'failed',
    error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining('vocabulary') }
  })
})

test('a hub that shows another header than the file has: the import fails, and the next one asks again', async () => {
  const content = model(71, 18)
  const { rig, fake } = await rigWith([{ path: 'open.gguf', content }])
  const atByte = content.indexOf('general.file_type') + 'general.file_type'.length + 4
  fake.setFaults(({ path }) => (path === 'open.gguf' ? { kind: 'wrong-bytes', atByte } : undefined))
  const [shown] = (await rig.client.planHf({ repo: 'Org/M', names: 'normalized' })).quants
  expect(shown).not.toBe('q6_k')
  fake.setFaults(undefined)
  expect(await importHf(rig)).toMatchObject({
    state: 'failed',
    error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining('open.gguf') }
  })
  expect((await importHf(rig)).result).toMatchObject({ quants: ['q6_k'] })
})
