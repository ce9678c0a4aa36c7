// Repositories that hold one model in several forms: what a loader takes is fetched, once and whole.

import type { ImportHfBody, Job } from '@svc/client/protocol'
import { expect, test } from 'vitest'
import { fakeHub, finished, manifestsOf, type Rig, rigOf, safetensors, undoAfterTests } from './fixtures.ts'

undoAfterTests()

const weights = (seed: number, dtype: 'BF16' | 'F16' = 'BF16'): Buffer => Buffer.from(safetensors(dtype, 4_000, seed))
const tekken = Buffer.alloc(3 * 2 ** 20, '{"vocab":[]}')
const MISTRAL = {
  'config.json': Buffer.from('{"model_type":"mistral"}'),
  'model-00001-of-00002.safetensors': weights(1),
  'model-00002-of-00002.safetensors': weights(2),
  'consolidated.safetensors': weights(3),
  'original/model.safetensors': weights(4),
  'tekken.json': tekken
}

async function rigWith(files: Readonly<Record<string, Buffer>>) {
  const fake = await fakeHub()
  fake.commit({
    id: 'Org/M',
    files: Object.entries(files).map(([path, content]) => ({ path, content, lfs: content.length > 1000 }))
  })
  return { fake, rig: await rigOf(fake) }
}

const importHf = async (rig: Rig, body: Partial<ImportHfBody> = {}): Promise<Job> =>
  finished(rig, await rig.client.importHf({ repo: 'Org/M', names: 'normalized', ...body }))

const namesOf = async (rig: Rig, job: Job): Promise<string[]> =>
  (await manifestsOf(rig, job)).flatMap(({ files }) => files.slice(1).map(({ name }) => name))

test('the loader’s form comes once, with its tokenizer; the plan says in bytes what is left out, and why', async () => {
  const { fake, rig } = await rigWith(MISTRAL)
  const plan = await rig.client.planHf({ repo: 'Org/M', names: 'normalized' })
  expect(plan.quants).toEqual(['bf16'])
  const left = plan.files.filter(({ reason }) => reason === 'other-form')
  expect(left.map(({ name, quant, size }) => [name, quant, size])).toEqual([
    ['consolidated.safetensors', 'bf16.consolidated', weights(3).length],
    ['original/model.safetensors', 'bf16.original', weights(4).length]
  ])
  expect(plan.warnings.filter((text) => text.includes(`${weights(3).length} bytes`))).toHaveLength(2)
  const job = await importHf(rig)
  expect(job.result).toMatchObject({ quants: ['bf16'] })
  expect(await namesOf(rig, job)).toEqual([
    'model-00001-of-00002.safetensors',
    'model-00002-of-00002.safetensors',
    'tokenizer.tar'
  ])
  for (const { name } of left) expect(fake.bytesSent.get(name)).toBeUndefined()
  expect(plan.totals.fetchBytes).toBe(
    ['config.json', 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors', 'tekken.json'].reduce(
      (sum, name) => sum + MISTRAL[name as keyof typeof MISTRAL].length,
      0
    )
  )
})

test('another form comes on request, beside the first one', async () => {
  const { rig } = await rigWith(MISTRAL)
  const first = await importHf(rig)
  const other = await importHf(rig, { quants: ['consolidated'], replace: false })
  expect(other.result).toMatchObject({ quants: ['bf16.consolidated'] })
  expect(await namesOf(rig, other)).toEqual(['consolidated.safetensors', 'tokenizer.tar'])
  expect((await rig.client.resolve('svc:///org/m:bf16')).manifestDigest).toBe(first.result!.manifests[0])
})

test('precisions of a pipeline are choices; the full one comes by default', async () => {
  const { rig } = await rigWith({
    'model_index.json': Buffer.from('{}'),
    'unet/diffusion_pytorch_model.safetensors': weights(1),
    'unet/diffusion_pytorch_model.fp16.safetensors': weights(2, 'F16'),
    'vae/diffusion_pytorch_model.safetensors': weights(3)
  })
  expect((await importHf(rig)).result).toMatchObject({ quants: ['bf16'], notChosen: 1 })
  const half = await importHf(rig, { quants: ['f16'] })
  expect(half.result).toMatchObject({ quants: ['f16'] })
  expect(await namesOf(rig, half)).toEqual([
    'unet/diffusion_pytorch_model.fp16.safetensors',
    'vae/diffusion_pytorch_model.safetensors'
  ])
})

test('with upstream names all of it comes, as the contract says', async () => {
  const { rig } = await rigWith(MISTRAL)
  const job = await importHf(rig, { names: 'upstream' })
  expect((await namesOf(rig, job)).filter((name) => name.endsWith('.safetensors'))).toHaveLength(4)
})
