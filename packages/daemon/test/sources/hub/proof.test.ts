import type { FakeHub, FakeRepo } from '@svc/testkit/fake-hub'
import { beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { ArtifactState } from '../../../../internal/state/src/artifacts.ts'
import { verdictOf } from '../../../../internal/state/src/provenance.ts'
import {
  fakeHub,
  finished,
  importRepo,
  keepForAll,
  type Rig,
  rigOf,
  tempFolder,
  undoAfterTests,
  writeRepo
} from './fixtures.ts'

// A listing that names bytes which are here already proves nothing (spec add.37)
undoAfterTests()

let fake: FakeHub
let rig: Rig
let count = 0
beforeAll(async () => {
  fake = await fakeHub({ tokens: ['hf_t'] })
  rig = await rigOf(fake, { token: 'hf_t' })
  keepForAll()
})
beforeEach(() => fake.setFaults(undefined))

const CONFIG = { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }

/** Weights and a tokenizer in large-file storage, each with bytes that no other test has. */
function freshRepo(more: Partial<FakeRepo> = {}): FakeRepo {
  const seed = 1000 + ++count * 10
  const files = [
    { path: 'model-q8_0.gguf', content: { seed, sizeBytes: 200_003 } },
    { path: 'tokenizer.json', content: { seed: seed + 1, sizeBytes: 40_000 } },
    CONFIG
  ]
  return { id: `Org/Model${count}`, files, ...more }
}

/** Another owner's repository that names the same files, as somebody can who knows their hashes alone. */
const namingSame = (repo: FakeRepo, files = repo.files): FakeRepo => ({ id: `Evil/Copy${count}`, files })

async function stateOf(daemonRig: Rig, id: string, quant = 'q8_0'): Promise<ArtifactState> {
  const { manifestDigest } = await daemonRig.client.resolve(`svc:///${id.toLowerCase()}:${quant}`)
  return (await daemonRig.daemon.context.artifacts.read(manifestDigest as never))!
}

function factOf(state: ArtifactState): string | undefined {
  const verdict = verdictOf(state, 'hub-mirror')
  return verdict.given ? undefined : verdict.fact
}

async function importAll(from: Rig, repo: FakeRepo): Promise<void> {
  fake.commit(repo)
  expect(await importRepo(from, repo.id)).toMatchObject({ state: 'done' })
}

async function importLocal(from: Rig, repo: FakeRepo, as: string, isPrivate: boolean): Promise<void> {
  const paths = [await writeRepo(repo.files)]
  const job = await finished(from, await from.client.importLocal({ paths, as, private: isPrivate }))
  expect(job).toMatchObject({ state: 'done' })
}

/** An import that ends when all of the large files have arrived; the daemon stops then. */
async function interrupted(from: Rig, repo: FakeRepo): Promise<void> {
  fake.setFaults(({ stage, path }) =>
    stage !== 'tree' && path === 'config.json' ? { kind: 'stall', afterBytes: 0 } : undefined
  )
  const { id } = await from.client.importHf({ repo: repo.id })
  await vi.waitUntil(async () => (await from.client.job(id)).filesDone === 2, { timeout: 100_000 })
  expect(await from.client.cancelJob(id)).toMatchObject({ state: 'failed' })
  await from.daemon.close({ quick: true })
  fake.setFaults(undefined)
}

test('a listing that names the digest of a private file does not make its bytes public, unless the owner says so', async () => {
  const repo = freshRepo()
  await importLocal(rig, repo, `me/own${count}`, true)
  const copy = namingSame(repo)
  await importAll(rig, copy)
  const state = await stateOf(rig, copy.id)
  expect(state.provenance).toMatchObject({ access: 'public', unproven: ['model-q8_0.gguf'] })
  expect(factOf(state)).toBe('unproven')
  await rig.client.setPrivate({ ref: `svc:///${copy.id.toLowerCase()}:q8_0`, private: false })
  expect(factOf(await stateOf(rig, copy.id))).toBeUndefined()
})

test('public bytes may come from the store', async () => {
  const repo = freshRepo()
  await importAll(rig, repo)
  const copy = namingSame(repo)
  await importAll(rig, copy)
  expect(factOf(await stateOf(rig, copy.id))).toBeUndefined()
})

test('a repository that was gated and is public now makes its earlier files public', async () => {
  const repo = freshRepo({ gated: 'auto' })
  await importAll(rig, repo)
  expect((await stateOf(rig, repo.id)).provenance).toMatchObject({ access: 'restricted', by: 'hub-token' })
  await importAll(rig, { ...repo, gated: false })
  const { provenance } = await stateOf(rig, repo.id)
  expect(provenance).toMatchObject({ access: 'public', confirmedPublicAt: expect.any(String) })
  expect(provenance.unproven).toBeUndefined()
  await importAll(rig, { ...repo, gated: 'auto' })
  expect(factOf(await stateOf(rig, repo.id))).toBe('restricted')
})

test('a file that the owner keeps private stays so when another commit names its digest', async () => {
  const repo = freshRepo()
  await importAll(rig, repo)
  await rig.client.setPrivate({ ref: `svc:///${repo.id.toLowerCase()}:q8_0`, private: true })
  const changed = { ...CONFIG, content: Buffer.from('{"model_type":"llama","n":1}') }
  await importAll(rig, { ...repo, files: [...repo.files.filter((file) => file !== CONFIG), changed] })
  const { provenance } = await stateOf(rig, repo.id)
  expect(provenance.unproven).toEqual(['model-q8_0.gguf'])
})

test('a private model proves nothing, not even for its own commit', async () => {
  const repo = freshRepo({ gated: 'auto' })
  await importAll(rig, repo)
  const { holdings, documents } = rig.daemon.context
  const { source, manifestDigest } = await stateOf(rig, repo.id)
  const { files } = (await documents.manifest(manifestDigest))!
  const digests = files.filter(({ kind }) => kind === 'weights.gguf').map(({ digest }) => digest)
  expect(await holdings.proven(digests, source)).toEqual(new Set(digests))
  await rig.client.setPrivate({ ref: `svc:///${repo.id.toLowerCase()}:q8_0`, private: true })
  expect(await holdings.proven(digests, source)).toEqual(new Set())
})

test('bytes that a token got from a gated repository are not proven by another commit that lists their digests', async () => {
  const repo = freshRepo({ gated: 'auto' })
  await importAll(rig, repo)
  const changed = { ...CONFIG, content: Buffer.from('{"model_type":"llama","n":2}') }
  await importAll(rig, { ...repo, gated: false, files: [...repo.files.filter((file) => file !== CONFIG), changed] })
  expect(factOf(await stateOf(rig, repo.id))).toBe('unproven')
})

test('a gated repository that becomes public proves no bytes that came from elsewhere', async () => {
  const repo = freshRepo()
  await importAll(rig, repo)
  const changed = { ...CONFIG, content: Buffer.from('{"model_type":"llama","n":3}') }
  const copy = namingSame(repo, [...repo.files.filter((file) => file !== CONFIG), changed])
  await importAll(rig, { ...copy, gated: 'auto' })
  expect(factOf(await stateOf(rig, copy.id))).toBe('restricted')
  await rig.client.setPrivate({ ref: `svc:///${repo.id.toLowerCase()}:q8_0`, private: true })
  await importAll(rig, copy)
  // the listing only names the bytes: the credential that fetched them counts
  expect(factOf(await stateOf(rig, copy.id))).toBe('restricted')
})

test('an interrupted import keeps its source after a restart', async () => {
  const root = await tempFolder()
  const first = await rigOf(fake, { root })
  const repo = freshRepo()
  fake.commit(repo)
  await interrupted(first, repo)
  const second = await rigOf(fake, { root })
  await importAll(second, repo)
  expect(factOf(await stateOf(second, repo.id))).toBeUndefined()
})

test('leftovers of an interrupted gated import do not count for another repository', async () => {
  const root = await tempFolder()
  const first = await rigOf(fake, { root, token: 'hf_t' })
  const repo = freshRepo({ gated: 'auto' })
  fake.commit(repo)
  await interrupted(first, repo)
  const second = await rigOf(fake, { root, token: 'hf_t' })
  const copy = namingSame(repo)
  await importAll(second, copy)
  const { provenance } = await stateOf(second, copy.id)
  // the tokenizer goes into a tar: what was staged for it counts as well
  expect(provenance.unproven).toEqual(['model-q8_0.gguf', 'tokenizer.json'])
})

test('local weights that are here only through a gated repository are withheld too; small documents are not', async () => {
  const gated = freshRepo({ gated: 'auto' })
  await importAll(rig, gated)
  const own = `me/copy${count}`
  await importLocal(rig, gated, own, false)
  expect((await stateOf(rig, own)).provenance).toMatchObject({ access: 'restricted', by: 'hub-token' })
  const other = freshRepo()
  await importLocal(rig, other, `me/other${count}`, false)
  expect((await stateOf(rig, `me/other${count}`)).provenance).toEqual({ access: 'own' })
})
