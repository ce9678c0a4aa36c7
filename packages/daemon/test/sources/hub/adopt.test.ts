import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { createHub } from '@svc/hub'
import { systemClock } from '@svc/internal-clock'
import type { FakeHub, FakeRepo } from '@svc/testkit/fake-hub'
import { contentChunks, nameContent } from '@svc/testkit/fake-hub-content'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { ArtifactState } from '../../../../internal/state/src/artifacts.ts'
import { verdictOf } from '../../../../internal/state/src/provenance.ts'
import { confirmUnknown, createConfirmation } from '../../../../sources/src/hub/confirm.ts'
import { fakeHub, finished, type Rig, rigOf, tempFolder, undoAfterTests } from './fixtures.ts'

// What a hub cache holds may be gated: nobody is given it before the hub says so to somebody without a token (spec add.27, add.37)
undoAfterTests()

const repoOf = (id: string, more: Partial<FakeRepo> = {}): FakeRepo => ({
  id,
  files: [
    { path: 'model-q8_0.gguf', content: { seed: 1, sizeBytes: 60_000 } },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
  ],
  ...more
})

/** The body of `svc adopt` for a cache of the repository. */
async function cached({ id, files }: FakeRepo, revision: string) {
  const folder = await tempFolder()
  const listed = files.map(({ path: name, content }, i) => {
    const path = join(folder, `${i}`)
    writeFileSync(path, Buffer.concat([...contentChunks(content)]))
    const { sha256, gitBlobSha1 } = nameContent(content)
    return { name, path, ...(name.endsWith('.gguf') ? { sha256: `sha256:${sha256}` } : { gitSha1: gitBlobSha1 }) }
  })
  return { as: 'me/adopted', hub: { repo: id, revision }, files: listed }
}

async function adopt(rig: Rig, repo: FakeRepo, revision: string): Promise<{ job: Job; state: ArtifactState }> {
  const job = await finished(rig, await rig.client.adopt(await cached(repo, revision)))
  expect(job).toMatchObject({ state: 'done' })
  return { job, state: (await rig.daemon.context.artifacts.read(job.result!.manifests[0] as never))! }
}

const isGiven = (state: ArtifactState | undefined): boolean => verdictOf(state, 'hub-mirror').given
const authorized = (fake: FakeHub): number => fake.requests.filter(({ headers }) => headers.authorization).length

test('an adopted repository is shared if the hub serves it without a token', async () => {
  const fake = await fakeHub({ tokens: ['hf_t'] })
  const rig = await rigOf(fake, { token: 'hf_t' })
  const open = repoOf('Acme/Open')
  const { job, state } = await adopt(rig, open, fake.commit(open))
  expect(job.result?.warnings).toBeUndefined()
  expect(state.provenance).toMatchObject({ access: 'public', confirmedPublicAt: expect.any(String) })
  expect(fake.requests.length).toBeGreaterThan(0)
  expect(authorized(fake)).toBe(0)
})

test.each([
  ['gated', { gated: 'auto' as const }],
  ['private', { private: true }]
])('an adopted %s repository is withheld, and the job says so, whatever the token may have', async (_, flags) => {
  const fake = await fakeHub({ tokens: ['hf_t'] })
  const rig = await rigOf(fake, { token: 'hf_t' })
  const repo = repoOf('Acme/Closed', flags)
  const { job, state } = await adopt(rig, repo, fake.commit(repo))
  expect(state.provenance).toEqual({ access: 'unknown' })
  expect(isGiven(state)).toBe(false)
  expect(job.result?.warnings).toHaveLength(1)
  expect(authorized(fake)).toBe(0)
})

test('a cache whose files differ from the public repository that it names is withheld', async () => {
  const fake = await fakeHub()
  const rig = await rigOf(fake)
  const commit = fake.commit(repoOf('Acme/Open'))
  const other = repoOf('Acme/Open', {
    files: [{ path: 'model-q8_0.gguf', content: { seed: 2, sizeBytes: 60_000 } }]
  })
  expect(isGiven((await adopt(rig, other, commit)).state)).toBe(false)
})

test('without a connection it is withheld, and confirmed at the first start with one', async () => {
  const root = await tempFolder()
  const fake = await fakeHub()
  const repo = repoOf('Acme/Open')
  const closed = repoOf('Acme/Later', {
    gated: 'auto',
    files: [{ path: 'x-q4_0.gguf', content: { seed: 9, sizeBytes: 50_000 } }]
  })
  const [commit, gatedCommit] = [fake.commit(repo), fake.commit(closed)]
  fake.setFaults(() => ({ kind: 'refuse' }))
  const offline = await rigOf(fake, { root })
  const { job, state } = await adopt(offline, repo, commit)
  const gated = await adopt(offline, closed, gatedCommit)
  expect([isGiven(state), isGiven(gated.state), job.result?.warnings?.length]).toEqual([false, false, 1])
  await offline.daemon.close({ quick: true })

  fake.setFaults(undefined)
  const online = await rigOf(fake, { root })
  const { artifacts } = online.daemon.context
  await vi.waitUntil(async () => isGiven(await artifacts.read(state.manifestDigest)), { timeout: 100_000 })
  expect(isGiven(await artifacts.read(gated.state.manifestDigest))).toBe(false)
})

test('a small file beside the weights that the hub does not list keeps a cache withheld, also at a later start', async () => {
  const root = await tempFolder()
  const fake = await fakeHub()
  const readme = (text: string) => ({ path: 'README.md', content: Buffer.from(text) })
  const filesOf = (seed: number, text: string) => [
    { path: `m${seed}-q8_0.gguf`, content: { seed, sizeBytes: 50_000 } },
    readme(text)
  ]
  const edited = repoOf('Acme/Edited', { files: filesOf(21, '# as it is there') })
  const same = repoOf('Acme/Same', { files: filesOf(22, '# the same') })
  const [editedAt, sameAt] = [fake.commit(edited), fake.commit(same)]
  fake.setFaults(() => ({ kind: 'refuse' }))
  const offline = await rigOf(fake, { root })
  const own = await adopt(offline, { ...edited, files: filesOf(21, '# notes of my own') }, editedAt)
  const other = await cached(same, sameAt)
  const job = await finished(offline, await offline.client.adopt({ ...other, as: 'me/same' }))
  await offline.daemon.close({ quick: true })

  fake.setFaults(undefined)
  const online = await rigOf(fake, { root })
  const { artifacts } = online.daemon.context
  const isGivenNow = async (digest: string) => isGiven(await artifacts.read(digest as never))
  // questions are asked one after the other
  await vi.waitUntil(() => isGivenNow(job.result!.manifests[0]!), { timeout: 100_000 })
  await vi.waitUntil(() => fake.requests.filter(({ url }) => url.includes('Acme/Edited/tree')).length > 0, 100_000)
  await online.daemon.close()
  expect(await isGivenNow(own.state.manifestDigest)).toBe(false)
})

test.each([
  ['that is not there', 'notes.txt'],
  ['that is another one there', 'README.md']
])('a cache with a small file beside the weights %s stays withheld when the hub is asked again', async (_, name) => {
  const fake = await fakeHub()
  const weights = { path: 'model-q8_0.gguf', content: { seed: 3, sizeBytes: 60_000 } }
  const readme = { path: 'README.md', content: Buffer.from('# as it is on the hub') }
  const commit = fake.commit(repoOf('Acme/Open', { files: [weights, readme] }))
  const rig = await rigOf(fake)
  const own = repoOf('Acme/Open', { files: [weights, { path: name, content: Buffer.from('for me alone') }] })
  const { state } = await adopt(rig, own, commit)
  expect([isGiven(state), Object.keys(state.companions ?? {})]).toEqual([false, ['me/adopted']])
  const hub = createHub({ endpoint: fake.endpoint })
  onTestFinished(() => hub.close())
  const deps = { ...rig.daemon.context, onConfirmed: async () => undefined }
  await confirmUnknown(createConfirmation(hub, systemClock), deps, new AbortController().signal)
  expect(isGiven(await rig.daemon.context.artifacts.read(state.manifestDigest))).toBe(false)
})
