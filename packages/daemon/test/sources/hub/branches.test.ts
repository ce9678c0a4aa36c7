// Repositories with a branch for each quant, and configurations that name quants of their own.

import type { ClientError, ImportHfBody, Job } from '@svc/client'
import { expect, test } from 'vitest'
import { fakeHub, finished, type Rig, rigOf, safetensors, undoAfterTests } from './fixtures.ts'

undoAfterTests()

const files = (config: object, seed: number) => [
  { path: 'config.json', content: Buffer.from(JSON.stringify({ model_type: 'llama', ...config })) },
  { path: 'model.safetensors', content: Buffer.from(safetensors('F16', 200, seed)) }
]
const exl = (bits: number) => ({ quantization_config: { quant_method: 'exl2', bits } })

const importHf = async (rig: Rig, body: Partial<ImportHfBody>): Promise<Job> =>
  finished(rig, await rig.client.importHf({ repo: 'Org/M', names: 'normalized', replace: false, ...body }))

test('branches of EXL2 are choices side by side, and a plan of an empty default branch names them', async () => {
  const fake = await fakeHub()
  fake.commit({ id: 'Org/M', files: [{ path: 'measurement.json', content: Buffer.from('{}') }] })
  fake.commit({ id: 'Org/M', branch: '4.0bpw', files: files(exl(4), 1) })
  fake.commit({ id: 'Org/M', branch: '6.5bpw', files: files(exl(6.5), 2) })
  const rig = await rigOf(fake)
  const failure = await rig.client.planHf({ repo: 'Org/M', names: 'normalized' }).catch((error: ClientError) => error)
  expect(failure).toMatchObject({ code: 'E_NOT_IMPORTABLE', candidates: ['4.0bpw', '6.5bpw'] })
  expect((failure as Error).message).toContain('Org/M@4.0bpw')
  const four = await importHf(rig, { revision: '4.0bpw' })
  const six = await importHf(rig, { revision: '6.5bpw' })
  expect([four.result!.quants, six.result!.quants]).toEqual([['exl2-4.0bpw'], ['exl2-6.5bpw']])
  expect((await rig.client.resolve('svc:///org/m:exl2-4.0bpw')).manifestDigest).toBe(four.result!.manifests[0])
})

test('a branch does not replace another one with the same quant unless that is said; its own newer commit does', async () => {
  const fake = await fakeHub()
  const gptq = { quantization_config: { quant_method: 'gptq', bits: 4, group_size: 128 } }
  fake.commit({ id: 'Org/M', branch: 'main', files: files(gptq, 1) })
  fake.commit({ id: 'Org/M', branch: 'gptq-4bit-32g', files: files(gptq, 2) })
  const rig = await rigOf(fake)
  expect((await importHf(rig, {})).state).toBe('done')
  const other = { revision: 'gptq-4bit-32g' }
  expect(await importHf(rig, other)).toMatchObject({
    state: 'failed',
    error: { code: 'E_NOT_IMPORTABLE', candidates: ['org/m:gptq'] }
  })
  expect((await importHf(rig, { ...other, as: 'org/m-32g' })).state).toBe('done')
  fake.commit({ id: 'Org/M', branch: 'main', files: files(gptq, 3) })
  expect((await importHf(rig, {})).state).toBe('done')
  expect((await importHf(rig, { ...other, replace: true })).state).toBe('done')
})

test('MLX has quants of its own; with upstream names nothing changes', async () => {
  const fake = await fakeHub()
  fake.commit({ id: 'Org/M', files: files({ quantization: { group_size: 64, bits: 4 } }, 1) })
  const rig = await rigOf(fake)
  expect((await rig.client.planHf({ repo: 'Org/M', names: 'normalized' })).quants).toEqual(['mlx-4bit'])
  expect((await importHf(rig, {})).result).toMatchObject({ quants: ['mlx-4bit'] })
  expect((await importHf(rig, { names: 'upstream', as: 'org/other' })).result).toMatchObject({ quants: ['f16'] })
})
