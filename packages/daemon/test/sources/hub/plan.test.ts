import type { Client } from '@svc/client'
import { ImportPlanSchema } from '@svc/client/protocol'
import type { FakeHub } from '@svc/testkit/fake-hub'
import { type FakeHubStage, scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { makeGguf, tinyTensors } from '@svc/testkit/models'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { Value } from 'typebox/value'
import { beforeAll, expect, test } from 'vitest'
import {
  bigRepo,
  fakeHub,
  importRepo,
  keepForAll,
  MIT,
  type Rig,
  rigOf,
  SMALL,
  safetensors,
  storedBlobs,
  undoAfterTests
} from './fixtures.ts'

undoAfterTests()

let fake: FakeHub
let rig: Rig
beforeAll(async () => {
  fake = await fakeHub()
  rig = await rigOf(fake)
  keepForAll()
})

test('a plan equals what the import then does, and fetches no weights', async () => {
  const whole = bigRepo()
  const repo = { ...whole, files: whole.files.slice(0, 40) }
  fake.commit(repo)
  const plan = await rig.client.planHf({ repo: repo.id })
  expect(Value.Check(ImportPlanSchema, plan)).toBe(true)
  const size = (path: string) => fake.bytesSent.get(path) ?? 0
  expect(
    repo.files.filter(({ path }) => path.endsWith('.gguf')).reduce((sum, { path }) => sum + size(path), 0)
  ).toBeLessThanOrEqual(1)
  expect(await storedBlobs(rig)).toEqual([])
  expect(await rig.client.jobs()).toEqual([])
  const job = await importRepo(rig, repo.id)
  expect(job.error).toBeUndefined()
  expect(plan).toMatchObject({ repo: repo.id, as: job.as, quants: job.result?.quants, license: 'MIT' })
  expect(plan.files).toHaveLength(40)
  expect(plan.totals).toMatchObject({
    files: 40,
    bytes: job.bytesTotal,
    fetchFiles: 40,
    fetchBytes: job.bytesTotal,
    skipFiles: job.result?.skipped
  })
  const quantOf = Object.fromEntries(
    plan.files.filter(({ quant }) => quant !== undefined).map(({ name, quant }) => [name, quant])
  )
  expect(quantOf).toEqual({
    'gguf/model-q4_k_m.gguf': 'q4_k_m',
    'gguf/model-q8_0-00001-of-00002.gguf': 'q8_0',
    'gguf/model-q8_0-00002-of-00002.gguf': 'q8_0',
    'model-00001-of-00002.safetensors': 'bf16',
    'model-00002-of-00002.safetensors': 'bf16'
  })
  const again = await rig.client.planHf({ repo: repo.id })
  expect(again.files.find(({ name }) => name === 'gguf/model-q4_k_m.gguf')?.action).toBe('present')
  expect(again.totals.fetchBytes).toBeLessThan(plan.totals.fetchBytes)
})

test('files that need no fetch are not counted as fetched', async () => {
  const large = { path: 'large.bin', content: { seed: 5, sizeBytes: 1_200_000 } }
  fake.commit({ ...SMALL, files: [...SMALL.files, large] })
  const sparing = await rigOf(fake, { skipUnrecognized: true })
  const plan = await sparing.client.planHf({ repo: SMALL.id })
  expect(plan.totals).toMatchObject({ files: 9, fetchFiles: 8, storeFiles: 4, skipFiles: 3 })
  expect(Object.fromEntries(plan.files.map(({ name, action }) => [name, action]))).toEqual({
    'model-Q4_K_M.gguf': 'store',
    'model-q8_0.gguf': 'store',
    'config.json': 'annotate',
    'tokenizer.json': 'store',
    'tokenizer_config.json': 'store',
    LICENSE: 'annotate',
    'README.md': 'skip',
    'extra.bin': 'skip',
    'large.bin': 'skip'
  })
  const companions = plan.files.flatMap(({ name, companion }) => (companion === true ? [name] : []))
  expect(companions.sort()).toEqual(['LICENSE', 'README.md', 'config.json', 'extra.bin'])
})

test('the quant of config.json needs no header; without it the headers tell, by bytes', async () => {
  const weights = [
    { path: 'model-00001-of-00002.safetensors', content: safetensors('F32', 6_000) },
    { path: 'model-00002-of-00002.safetensors', content: safetensors('F16', 20_000) }
  ]
  const config = { path: 'config.json', content: Buffer.from('{"quantization_config":{"quant_method":"awq"}}') }
  fake.commit({ id: 'a/plain', files: weights })
  fake.commit({ id: 'a/awq', files: [...weights, config] })
  expect((await rig.client.planHf({ repo: 'a/plain' })).quants).toEqual(['f16'])
  const before = new Map(fake.bytesSent)
  expect((await rig.client.planHf({ repo: 'a/awq' })).quants).toEqual(['awq'])
  expect(weights.reduce((sum, { path }) => sum + fake.bytesSent.get(path)! - before.get(path)!, 0)).toBeLessThanOrEqual(
    1
  )
})

test('a large licence text in large-file storage is named by its SHA-256 without being read', async () => {
  const files = [
    { path: 'm-q8_0.gguf', content: { seed: 1, sizeBytes: 50_000 } },
    { path: 'LICENSE', content: Buffer.from(MIT.repeat(300)), lfs: true }
  ]
  fake.commit({ id: 'a/licence', files })
  const before = fake.bytesSent.get('LICENSE') ?? 0
  const plan = await rig.client.planHf({ repo: 'a/licence' })
  expect((fake.bytesSent.get('LICENSE') ?? 0) - before).toBeLessThanOrEqual(1)
  const job = await importRepo(rig, 'a/licence')
  const [manifest] = await Promise.all(
    job.result!.manifests.map((digest) => rig.daemon.context.documents.manifest(digest as never))
  )
  expect(plan.license).toBe(manifest?.annotations['svc.license'])
})

test('a plan is refused where the import would be', async () => {
  fake.commit({ id: 'a/none', files: [{ path: 'tokenizer.json', content: Buffer.from('{}') }] })
  await expect(rig.client.planHf({ repo: 'a/none' })).rejects.toMatchObject({ code: 'E_NOT_IMPORTABLE', status: 502 })
  await expect(rig.client.planHf({ repo: 'a/absent' })).rejects.toMatchObject({
    code: 'E_SOURCE_FORBIDDEN',
    status: 502
  })
  await expect(rig.client.planHf({ repo: 'a/b/c' })).rejects.toMatchObject({ code: 'E_BAD_REQUEST', status: 400 })
})

const HEADER = {
  'llama.block_count': 28,
  'llama.embedding_length': 3584,
  'llama.attention.head_count': 28,
  'llama.attention.head_count_kv': 4,
  'llama.context_length': 2048
}
const MIB = 2 ** 20

test('with a context it says what memory the artifacts need, from one header', async () => {
  const files = ['q4_0', 'q8_0'].map((quant) => ({
    path: `m-${quant}.gguf`,
    content: makeGguf({ metadata: { ...HEADER, 'tokenizer.ggml.tokens': ['a', 'b'] } }),
    lfs: true
  }))
  fake.commit({ id: 'fit/gguf', files: [...files, { path: 'config.json', content: Buffer.from('{}') }] })
  const before = fake.requests.length
  const plan = await rig.client.planHf({ repo: 'fit/gguf', context: 0 })
  expect(Value.Check(ImportPlanSchema, plan)).toBe(true)
  expect(plan.memory).toEqual({ contextTokens: 2048, cacheBytes: 112 * MIB, computeBytes: 2048 * (2 + 3584) })
  expect(plan.artifacts.map(({ weightsBytes }) => weightsBytes)).toEqual(files.map(({ content }) => content.length))
  const read = fake.requests.slice(before).filter(({ origin }) => origin === 'cdn')
  expect(new Set(read.map(({ path }) => path))).toEqual(new Set(['m-q4_0.gguf']))
  expect((await rig.client.planHf({ repo: 'fit/gguf', context: 4096 })).memory).toMatchObject({ cacheBytes: 224 * MIB })
  expect(await rig.client.planHf({ repo: 'fit/gguf' })).not.toHaveProperty('memory')
})

test('without a formula or a valid header the memory is unknown, and the plan succeeds', async () => {
  const noise = { path: 'm-q8_0.gguf', content: { seed: 3, sizeBytes: 50_000 } }
  fake.commit({ id: 'fit/noise', files: [noise] })
  expect((await rig.client.planHf({ repo: 'fit/noise', context: 0 })).memory).toEqual({ unknown: expect.any(String) })
  const odd = makeGguf({ metadata: { ...HEADER, 'llama.wkv.head_size': 64 } })
  fake.commit({ id: 'fit/odd', files: [{ path: 'm-q8_0.gguf', content: odd, lfs: true }] })
  expect((await rig.client.planHf({ repo: 'fit/odd', context: 0 })).memory).toEqual({ unknown: expect.any(String) })
  fake.setFaults(scriptedFaults([{ stage: 'cdn', skip: 1, fault: { kind: 'status', status: 500 } }]))
  const plan = await rig.client.planHf({ repo: 'fit/odd', context: 0 })
  fake.setFaults(undefined)
  expect(plan).toMatchObject({ quants: ['q8_0'], memory: { unknown: expect.any(String) } })
})

test('tensors that claim to lie beyond their file change no number, and are told', async () => {
  const whole = makeGguf({ metadata: HEADER })
  const name = tinyTensors('Q8_0').at(-1)!.name
  const lying = Buffer.from(whole)
  lying.writeBigUInt64LE(2n ** 64n - 32n, lying.indexOf(name) + name.length + 4 + 8 + 4)
  const header = Buffer.from(
    '{"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,18446744073709551616]}}'
  )
  const safetensors = Buffer.concat([Buffer.from(BigUint64Array.of(BigInt(header.length)).buffer), header])
  const plans = []
  for (const [id, files] of [
    ['whole', [{ path: 'm-q8_0.gguf', content: whole, lfs: true }]],
    ['lying', [{ path: 'm-q8_0.gguf', content: lying, lfs: true }]],
    ['tensors', [{ path: 'model.safetensors', content: safetensors, lfs: true }]]
  ] as const) {
    fake.commit({ id: `beyond/${id}`, files: [...files] })
    plans.push(await rig.client.planHf({ repo: `beyond/${id}`, context: 0 }))
  }
  const [sound, beyond, claimed] = plans
  expect(sound!.warnings).toEqual([])
  expect(beyond).toMatchObject({ memory: sound!.memory, artifacts: [{ weightsBytes: whole.length }] })
  expect(beyond!.warnings).toEqual([expect.stringMatching(/^m-q8_0\.gguf is damaged.*take \d+ bytes/)])
  expect(claimed).toMatchObject({ artifacts: [{ quant: 'raw', weightsBytes: safetensors.length }] })
  expect(claimed!.warnings).toEqual([expect.stringMatching(/^model\.safetensors .*cannot be read/)])
})

test('the config.json gives the memory of safetensors', async () => {
  const config = {
    num_hidden_layers: 28,
    hidden_size: 3584,
    num_attention_heads: 28,
    num_key_value_heads: 4,
    vocab_size: 2
  }
  const files = [
    { path: 'model.safetensors', content: safetensors('BF16', 9_000) },
    { path: 'config.json', content: Buffer.from(JSON.stringify(config)) }
  ]
  fake.commit({ id: 'fit/st', files })
  const plan = await rig.client.planHf({ repo: 'fit/st', context: 2048 })
  expect(plan.memory).toEqual({ contextTokens: 2048, cacheBytes: 112 * MIB, computeBytes: 2048 * 3586 })
})

const SLOW = { repo: 'Org/Slow' }
test.each<readonly [FakeHubStage, (client: Client) => Promise<unknown>]>([
  ['search', (client) => client.search({ q: 'slow' })],
  ['info', (client) => client.importHf(SLOW)],
  ['tree', (client) => client.importHf(SLOW)],
  ['cdn', (client) => client.planHf({ ...SLOW, context: 0 })]
])('a hub that does not end its answer (%s) is reported to whoever waits', async (stage, ask) => {
  const clock = new VirtualClock()
  const { client } = await rigOf(fake, { clock })
  fake.commit({ id: SLOW.repo, files: [{ path: 'm-q8_0.gguf', content: makeGguf(), lfs: true }] })
  const stalled = Promise.withResolvers<void>()
  fake.setFaults((request) => {
    if (request.stage !== stage) return undefined
    stalled.resolve()
    return { kind: 'stall', afterBytes: 0 }
  })
  const answer = ask(client).catch((error: unknown) => error)
  await stalled.promise
  await clock.advance(110_000)
  expect(await answer).toMatchObject({ code: 'E_SOURCE_UNAVAILABLE', status: 502 })
  fake.setFaults(undefined)
  expect(await client.jobs()).toEqual([])
})
