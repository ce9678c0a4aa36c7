import { createCipheriv } from 'node:crypto'
import type { Job } from '@svc/client/protocol'
import type { FakeHub, FakeRepo } from '@svc/testkit/fake-hub'
import { type FakeReconstruction, type FakeTerm, type FakeXet, startFakeXet } from '@svc/testkit/fake-xet'
import { makeGgufHead } from '@svc/testkit/models'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { ArtifactState } from '../../../../internal/state/src/artifacts.ts'
import { verdictOf } from '../../../../internal/state/src/provenance.ts'
import { fakeHub, finished, manifestsOf, type Rig, rigOf, tempFolder, undoAfterTests, wrongBlobs } from './fixtures.ts'

undoAfterTests()

const MIB = 2 ** 20
const ID = 'Org/Model'
const PATH = 'model-q8_0.gguf'
const SIZE = 2 * MIB
const noise = (sizeBytes: number, seed: number): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16)).update(Buffer.alloc(sizeBytes))

const OLD = Buffer.concat([makeGgufHead(SIZE), noise(SIZE - 128, 1)])
/** 9,024 bytes more near its start. */
const NEW = Buffer.concat([OLD.subarray(0, 40_000), noise(9_024, 2), OLD.subarray(40_000)])

const repoOf = (content: Buffer, more: Partial<FakeRepo> = {}): FakeRepo => ({
  id: ID,
  files: [
    { path: PATH, content },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
  ],
  ...more
})

interface XetRig extends Rig {
  readonly xet: FakeXet
}

async function hubWithXet(): Promise<{ fake: FakeHub; xet: FakeXet }> {
  const xet = await startFakeXet({ packing: () => 'plain' })
  onTestFinished(() => xet.close())
  return { xet, fake: await fakeHub({ xet, tokens: ['hf_t'] }) }
}

async function xetRig(more: Partial<Parameters<typeof rigOf>[1]> = {}): Promise<XetRig> {
  const { fake, xet } = await hubWithXet()
  return { ...(await rigOf(fake, { token: 'hf_t', ...more })), xet }
}

async function bring(rig: Rig, repo: FakeRepo, body: { readonly private?: boolean } = {}): Promise<Job> {
  rig.fake.commit(repo)
  return finished(rig, await rig.client.importHf({ repo: ID, ...body }))
}

const plainBytes = ({ fake }: Rig): number => fake.bytesSent.get(PATH) ?? 0

async function stateOf(rig: Rig): Promise<ArtifactState> {
  const { manifestDigest } = await rig.client.resolve(`svc:///${ID.toLowerCase()}:q8_0`)
  return (await rig.daemon.context.artifacts.read(manifestDigest as never))!
}

const isGiven = (state: ArtifactState): boolean => verdictOf(state, 'hub-mirror').given

/** What the hub has sent of the file, when the import had it all. */
async function expectWhole(rig: Rig, job: Job): Promise<void> {
  expect(job).toMatchObject({ state: 'done' })
  expect(await wrongBlobs(rig)).toEqual([])
  const [manifest] = await manifestsOf(rig, job)
  expect(manifest!.files.find(({ name }) => name === PATH)?.size).toBe(NEW.length)
}

test('a new commit fetches only differences, and the result reports fetched and reused bytes', async () => {
  const rig = await xetRig()
  const first = await bring(rig, repoOf(OLD))
  expect(first.result).toMatchObject({ fetchedBytes: expect.any(Number) })
  expect(first.result?.reusedBytes).toBeUndefined()
  expect(rig.xet.requests).toEqual([])
  const before = plainBytes(rig)
  const job = await bring(rig, repoOf(NEW))
  await expectWhole(rig, job)
  const { fetchedBytes = 0, reusedBytes = 0 } = job.result!
  expect(reusedBytes).toBeGreaterThan(SIZE - MIB)
  // config.json has the same digest, but git keeps it
  expect(fetchedBytes + reusedBytes).toBe(NEW.length + 22)
  expect(plainBytes(rig) - before + rig.xet.socketBytes()).toBeLessThan(MIB)
  expect(isGiven(await stateOf(rig))).toBe(true)
})

test('a wrong reconstruction leads to a second, plain download', async () => {
  const rig = await xetRig()
  await bring(rig, repoOf(OLD))
  rig.fake.commit(repoOf(NEW))
  let isOlder = true
  rig.xet.setFaults(({ stage }) => {
    if (stage !== 'reconstruction') return undefined
    const wasOlder = isOlder
    isOlder = false
    // all of the new file is the old one, which it repeats
    const edit = (answer: FakeReconstruction): FakeReconstruction => {
      const [term] = answer.terms as FakeTerm[]
      const { chunk_byte_sizes: _, ...whole } = { ...term!, hash: 'a'.repeat(64), range: { start: 0, end: 99 } }
      return wasOlder
        ? { ...answer, terms: [{ ...whole, unpacked_length: OLD.length }] }
        : {
            ...answer,
            terms: [
              { ...whole, unpacked_length: OLD.length },
              { ...whole, range: { start: 0, end: 1 }, unpacked_length: NEW.length - OLD.length }
            ]
          }
    }
    return { kind: 'edit', edit }
  })
  const before = plainBytes(rig)
  const job = await bring(rig, repoOf(NEW))
  await expectWhole(rig, job)
  expect(rig.xet.requests.filter(({ stage }) => stage === 'reconstruction')).toHaveLength(2)
  expect(plainBytes(rig) - before).toBeGreaterThanOrEqual(NEW.length)
  expect(job.result?.reusedBytes).toBeUndefined()
})

test.each([
  ['has no such service', () => fakeHub(), 404],
  ['refuses the token', async () => (await hubWithXet()).fake, 403]
])('a hub that %s serves the whole file, after one request', async (_, hub, status) => {
  const rig = await rigOf(await hub())
  await bring(rig, repoOf(OLD))
  rig.fake.setFaults(({ stage }) => (stage === 'xet-token' && status === 403 ? { kind: 'status', status } : undefined))
  const before = plainBytes(rig)
  await expectWhole(rig, await bring(rig, repoOf(NEW)))
  expect(plainBytes(rig) - before).toBe(NEW.length)
  expect(rig.fake.requests.filter(({ stage }) => stage === 'xet-token')).toHaveLength(1)
})

test('a file without chunks is downloaded as usual', async () => {
  const rig = await rigOf(await fakeHub())
  rig.fake.setFaults(({ stage }) =>
    stage === 'tree' ? { kind: 'tree', edit: (entries) => entries.map(({ xetHash: _, ...entry }) => entry) } : undefined
  )
  await bring(rig, repoOf(OLD))
  const count = rig.fake.requests.length
  const second = await rigOf(rig.fake)
  await bring(second, repoOf(NEW))
  const fresh = rig.fake.requests.length - count
  await expectWhole(rig, await bring(rig, repoOf(NEW)))
  expect(rig.fake.requests.length - count - fresh).toBe(fresh)
})

// Bytes that were copied from a blob are as public as that blob
test.each<[string, Partial<FakeRepo>, boolean, Partial<FakeRepo>]>([
  ['private by its owner’s word', {}, true, {}],
  ['given to a token alone, and the repository is open now', { gated: 'auto' }, false, { gated: false }],
  ['given to a token alone, still', { gated: 'auto' }, false, { gated: 'auto' }]
])('a file made from one that is %s is withheld', async (_, first, isPrivate, second) => {
  const rig = await xetRig()
  await bring(rig, repoOf(OLD, first), isPrivate ? { private: true } : {})
  expect(isGiven(await stateOf(rig))).toBe(false)
  const job = await bring(rig, repoOf(NEW, second))
  await expectWhole(rig, job)
  expect(job.result!.reusedBytes).toBeGreaterThan(SIZE - MIB)
  const { provenance } = await stateOf(rig)
  expect(provenance.unproven).toEqual([PATH])
  const isGated = second.gated === 'auto'
  expect(provenance.access).toBe(isGated ? 'restricted' : 'public')
  expect(verdictOf({ provenance }, 'hub-mirror')).toMatchObject({ fact: isGated ? 'restricted' : 'unproven' })
  // not by another word of the hub either, without its bytes
  const again = await bring(rig, repoOf(NEW, { gated: false }))
  expect(again).toMatchObject({ state: 'done' })
  expect(isGiven(await stateOf(rig))).toBe(false)
})

test.each([
  ['private', true],
  ['public', false]
])(
  'an interrupted import that copied from a %s file and resumes without the service keeps that provenance',
  async (_, isPrivate) => {
    const { fake, xet } = await hubWithXet()
    const root = await tempFolder()
    const rig = await rigOf(fake, { root })
    await bring(rig, repoOf(OLD), { private: isPrivate })
    fake.commit(repoOf(NEW))
    // what is missing does not come
    fake.setFaults(({ stage, path }) =>
      stage === 'cdn' && path === PATH ? { kind: 'stall', afterBytes: 0 } : undefined
    )
    const { id } = await rig.client.importHf({ repo: ID })
    const copied = async (): Promise<boolean> => ((await rig.client.job(id)).files?.[0]?.bytesDone ?? 0) > SIZE - MIB
    await vi.waitUntil(copied, { timeout: 100_000 })
    expect(await rig.client.cancelJob(id)).toMatchObject({ state: 'failed' })
    await rig.daemon.close({ quick: true })
    fake.setFaults(undefined)
    xet.setFaults(() => ({ kind: 'status', status: 404 }))
    const next = await rigOf(fake, { root })
    const before = plainBytes(next)
    const job = await bring(next, repoOf(NEW))
    await expectWhole(next, job)
    expect(job.result?.reusedBytes).toBeUndefined()
    expect(plainBytes(next) - before).toBeLessThan(MIB)
    expect(isGiven(await stateOf(next))).toBe(!isPrivate)
  }
)
