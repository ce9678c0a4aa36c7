// Repositories as they are published: six quants under upper-case names, one of them in parts, a projector beside them.

import { ClientError } from '@svc/client'
import type { ImportHfBody, Job } from '@svc/client/protocol'
import type { FakeHub, FakeRepoFile } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  fakeHub,
  finished,
  keepForAll,
  manifestsOf,
  type Rig,
  rigOf,
  safetensors,
  storedBlobs,
  undoAfterTests,
  writeRepo
} from './fixtures.ts'

undoAfterTests()

const QUANTS = ['Q2_K', 'Q4_K_M', 'Q5_K_M', 'Q6_K', 'Q8_0', 'BF16']
const gguf = (seed: number): Buffer => makeGguf({ seed, metadata: { 'general.name': `seed ${seed}` } })
const FILES: FakeRepoFile[] = [
  ...QUANTS.filter((quant) => quant !== 'BF16').map((quant, i) => ({
    path: `Model-7B-${quant}.gguf`,
    content: gguf(i + 1)
  })),
  { path: 'Model-7B.BF16-00001-of-00002.gguf', content: gguf(11) },
  { path: 'Model-7B.BF16-00002-of-00002.gguf', content: gguf(12) },
  { path: 'mmproj-F16.gguf', content: gguf(20) },
  { path: 'imatrix.dat', content: Buffer.from('importance') },
  { path: 'tokenizer.json', content: Buffer.from('{"version":"1.0"}') },
  { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') },
  { path: 'pytorch_model.bin', content: { seed: 99, sizeBytes: 1_300_000 } },
  { path: 'README.md', content: Buffer.from('# Model') }
]
const REPO = 'Some-Org/Model-7B-GGUF'

let fake: FakeHub
let everything: Rig
let whole: Job
beforeAll(async () => {
  fake = await fakeHub()
  fake.commit({ id: REPO, files: FILES })
  everything = await rigOf(fake)
  whole = await importHf(everything, { repo: REPO, names: 'normalized' })
  keepForAll()
})

const importHf = async (rig: Rig, body: ImportHfBody): Promise<Job> => finished(rig, await rig.client.importHf(body))

async function refused(work: Promise<unknown>): Promise<ClientError> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure
  )
  expect(error).toBeInstanceOf(ClientError)
  return error as ClientError
}

test('without options, all of them become one raw artifact, with a warning', async () => {
  const rig = await rigOf(fake)
  const job = await importHf(rig, { repo: REPO })
  expect(job.result).toMatchObject({ quants: ['raw'], skipped: 2 })
  expect(job.result).not.toHaveProperty('notChosen')
  expect(job.result!.warnings!.some((text) => text.includes('q4_k_m') && text.includes('raw'))).toBe(true)
  expect((await manifestsOf(rig, job))[0]!.files.map(({ name }) => name)).toContain('Model-7B-Q4_K_M.gguf')
})

test('normalized, each becomes an artifact of its own under recognized names', async () => {
  expect(whole.result!.quants).toEqual(['bf16', 'q2_k', 'q4_k_m', 'q5_k_m', 'q6_k', 'q8_0'])
  const manifests = await manifestsOf(everything, whole)
  expect(manifests[0]!.files.map(({ name, part, variant }) => [name, part ?? variant])).toEqual([
    ['modelconfig.json', undefined],
    ['model-7b-bf16-00001-of-00002.gguf', 1],
    ['model-7b-bf16-00002-of-00002.gguf', 2],
    ['imatrix.dat', undefined],
    ['mmproj-f16.gguf', 'f16'],
    ['tokenizer.tar', undefined]
  ])
  const files = await writeRepo(FILES)
  const local = await finished(
    everything,
    await everything.client.importLocal({ paths: [files], as: 'local/copy', names: 'normalized' })
  )
  expect((await manifestsOf(everything, local)).map((manifest) => manifest.files)).toEqual(
    manifests.map((manifest) => manifest.files)
  )
})

describe('chosen quants', () => {
  test.each([[['Q4_K_M']], [['bf16', 'Q8_0']]])('%j: the manifests equal those of a full import', async (quants) => {
    const rig = await rigOf(fake)
    const before = new Map(fake.bytesSent)
    const job = await importHf(rig, { repo: REPO, names: 'normalized', quants })
    const wanted = quants.map((quant) => quant.toLowerCase())
    const indexes = whole.result!.quants!.map((quant, i) => (wanted.includes(quant) ? i : -1)).filter((i) => i >= 0)
    expect(job.result).toMatchObject({
      quants: indexes.map((i) => whole.result!.quants![i]),
      manifests: indexes.map((i) => whole.result!.manifests[i]),
      notChosen: 7 - (wanted.includes('bf16') ? 3 : 1),
      skipped: 2
    })
    expect(job.filesTotal).toBe(FILES.length - job.result!.notChosen!)
    expect(job.filesDone).toBe(job.filesTotal)
    for (const path of ['Model-7B-Q2_K.gguf', 'Model-7B-Q5_K_M.gguf', 'pytorch_model.bin'])
      expect((fake.bytesSent.get(path) ?? 0) - (before.get(path) ?? 0), path).toBeLessThanOrEqual(1)
    const stored = new Set(await storedBlobs(rig))
    const [other] = (await manifestsOf(everything, whole)).filter((_, i) => !indexes.includes(i))
    expect(other!.files.filter(({ kind, digest }) => kind === 'weights.gguf' && stored.has(digest))).toEqual([])
  })

  test('another one later joins the index', async () => {
    const rig = await rigOf(fake)
    await importHf(rig, { repo: REPO, names: 'normalized', quants: ['q2_k'] })
    await importHf(rig, { repo: REPO, names: 'normalized', quants: ['q8_0'] })
    const { namespaces } = await rig.client.models()
    expect(namespaces).toMatchObject([{ ns: 'some-org', name: 'model-7b-gguf', quants: ['q2_k', 'q8_0'] }])
  })

  test.each(['importHf', 'planHf'] as const)(
    '%s: an absent one is refused, and the present ones are listed',
    async (call) => {
      const error = await refused(everything.client[call]({ repo: REPO, names: 'normalized', quants: ['q3_k'] }))
      expect(error).toMatchObject({ code: 'E_NO_MEMBER', status: 400, candidates: whole.result!.quants })
      const raw = await refused(everything.client[call]({ repo: REPO, quants: ['q8_0'] }))
      expect(raw).toMatchObject({ code: 'E_NO_MEMBER', status: 400, candidates: ['raw'] })
    }
  )

  test('the quant of safetensors comes from their headers, or from config.json', async () => {
    const id = 'some-org/both'
    const files = [
      { path: 'model-00001-of-00002.safetensors', content: Buffer.from(safetensors('BF16', 300)) },
      { path: 'model-00002-of-00002.safetensors', content: Buffer.from(safetensors('F32', 10)) },
      { path: 'both-q8_0.gguf', content: gguf(31) }
    ]
    fake.commit({ id, files })
    const rig = await rigOf(fake)
    expect((await refused(rig.client.importHf({ repo: id, quants: ['f32'] }))).candidates).toEqual(['bf16', 'q8_0'])
    const job = await importHf(rig, { repo: id, quants: ['BF16'] })
    expect(job.result).toMatchObject({ quants: ['bf16'], notChosen: 1 })
    const config = { path: 'config.json', content: Buffer.from('{"quantization_config":{"quant_method":"awq"}}') }
    fake.commit({ id, files: [...files, config] })
    expect((await importHf(rig, { repo: id, quants: ['awq'] })).result).toMatchObject({ quants: ['awq'], notChosen: 1 })
  })
})

describe('chosen files', () => {
  test('globs match normalized names, ignoring case; shared files are included', async () => {
    const rig = await rigOf(fake)
    const job = await importHf(rig, { repo: REPO, names: 'normalized', files: ['*Q4_K_M*', 'mmproj*'] })
    expect(job.result).toMatchObject({ quants: ['q4_k_m'], notChosen: 7 })
    const [manifest] = await manifestsOf(rig, job)
    expect(manifest!.files.map(({ name }) => name)).toEqual([
      'modelconfig.json',
      'model-7b-q4_k_m.gguf',
      'mmproj-f16.gguf',
      'tokenizer.tar'
    ])
  })

  test('patterns that fit no weights end the job', async () => {
    const job = await importHf(await rigOf(fake), { repo: REPO, files: ['nothing'] })
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  })

  test.each([{ files: ['[a'] }, { files: [] }, { quants: [] }, { names: 'upper' }, { files: 'x' }])(
    '%j is refused',
    async (body) => {
      const error = await refused(everything.client.importHf({ repo: REPO, ...(body as object) }))
      expect(error).toMatchObject({ code: 'E_BAD_REQUEST', status: 400 })
      expect(error.message).toContain(`"${Object.keys(body)[0]}`)
    }
  )
})

test('two files that get one name end the job, naming both', async () => {
  const id = 'some-org/twice'
  fake.commit({
    id,
    files: [
      { path: 'Twin-Q8_0.gguf', content: gguf(41) },
      { path: 'twin.q8_0.gguf', content: gguf(42) }
    ]
  })
  const rig = await rigOf(fake)
  const job = await importHf(rig, { repo: id, names: 'normalized' })
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  for (const name of ['"Twin-Q8_0.gguf"', '"twin.q8_0.gguf"']) expect(job.error!.message).toContain(name)
  const paths = [
    await writeRepo([
      { path: 'a.Q8_0.gguf', content: gguf(43) },
      { path: 'A-q8_0.gguf', content: gguf(44) }
    ])
  ]
  const local = await finished(rig, await rig.client.importLocal({ paths, as: 'a/b', names: 'normalized' }))
  expect(local).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
})

test('"as" sets another name', async () => {
  const rig = await rigOf(fake)
  const job = await importHf(rig, { repo: REPO, names: 'normalized', quants: ['q2_k'], as: 'mine/small' })
  expect(job).toMatchObject({ ref: 'mine/small', as: 'mine/small', state: 'done' })
  expect((await rig.client.resolve('svc:///mine/small:q2_k')).manifestDigest).toBe(whole.result!.manifests[1])
  for (const as of ['Mine/small', 'svc/small', 'small'])
    expect(await refused(rig.client.importHf({ repo: REPO, as }))).toMatchObject({ code: 'E_BAD_REQUEST', status: 400 })
})

describe('the plan', () => {
  test('lists the artifacts of the import, and which of their files are here', async () => {
    const rig = await rigOf(fake)
    await importHf(rig, { repo: REPO, names: 'normalized', quants: ['q8_0'] })
    const plan = await rig.client.planHf({ repo: REPO, names: 'normalized' })
    expect(plan.artifacts.map(({ quant }) => quant)).toEqual(plan.quants)
    const sizeOf = (path: string): number => {
      const { content } = FILES.find((file) => file.path === path)!
      return 'sizeBytes' in content ? content.sizeBytes : content.length
    }
    const shared = sizeOf('mmproj-F16.gguf') + sizeOf('imatrix.dat') + 2048
    expect(plan.artifacts.find(({ quant }) => quant === 'q8_0')).toEqual({
      quant: 'q8_0',
      files: 4,
      bytes: sizeOf('Model-7B-Q8_0.gguf') + shared,
      bytesPresent: sizeOf('Model-7B-Q8_0.gguf') + sizeOf('mmproj-F16.gguf')
    })
    expect(plan.artifacts.find(({ quant }) => quant === 'bf16')).toMatchObject({
      files: 5,
      bytesPresent: sizeOf('mmproj-F16.gguf')
    })
    expect(plan.files.find(({ name }) => name === 'model-7b-q8_0.gguf')).toMatchObject({
      action: 'present',
      upstream: 'Model-7B-Q8_0.gguf',
      quant: 'q8_0'
    })
  })

  test('shows the files that a choice excludes', async () => {
    const plan = await everything.client.planHf({ repo: REPO, names: 'normalized', quants: ['q6_k'] })
    expect(plan.quants).toEqual(['q6_k'])
    expect(plan.files.filter(({ reason }) => reason === 'not-chosen')).toHaveLength(6)
    const unchosen = await everything.client.planHf({ repo: REPO })
    expect(unchosen).toMatchObject({ quants: ['raw'], artifacts: [{ quant: 'raw' }] })
    expect(unchosen.files.every((file) => file.upstream === undefined)).toBe(true)
  })

  test('warns of two base models in one artifact', async () => {
    const id = 'some-org/two'
    const two = ['llama-7b-q4_k_m.gguf', 'qwen-7b-q4_k_m.gguf']
    fake.commit({ id, files: two.map((path, i) => ({ path, content: gguf(50 + i) })) })
    const plan = await everything.client.planHf({ repo: id })
    expect(plan.warnings.some((text) => two.every((name) => text.includes(name)))).toBe(true)
    const job = await importHf(everything, { repo: id })
    expect(job.result!.warnings!.some((text) => two.every((name) => text.includes(name)))).toBe(true)
  })
})
