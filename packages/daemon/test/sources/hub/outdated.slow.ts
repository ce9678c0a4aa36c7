import type { GcBody, ImportHfBody, Job, OutdatedModel } from '@svc/client/protocol'
import type { FakeRepo, FakeRepoFile } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { isPrivate } from '../../../../internal/state/src/provenance.ts'
import { fakeHub, finished, type Rig, rigOf, SMALL, undoAfterTests } from './fixtures.ts'

undoAfterTests()

const BYTES = { q4: 300_007, q8: 500_009 }
const filesWith = (path: string, content: FakeRepoFile['content']): readonly FakeRepoFile[] => [
  ...SMALL.files.filter((file) => file.path !== path),
  { path, content }
]
/** Another commit, in which one file differs. */
const changed = (path: string, content: FakeRepoFile['content'], more: Partial<FakeRepo> = {}): FakeRepo => ({
  ...SMALL,
  ...more,
  files: filesWith(path, content)
})
const newWeights = changed('model-q8_0.gguf', { seed: 22, sizeBytes: 510_000 })

async function outdated(rig: Rig, refs?: string[]): Promise<readonly OutdatedModel[]> {
  const job = await finished(rig, await rig.client.outdated(refs === undefined ? {} : { refs }))
  expect(job).toMatchObject({ kind: 'outdated', state: 'done' })
  return job.result!.models!
}

async function rigWith(body: Partial<ImportHfBody> = {}): Promise<Rig & { readonly first: string }> {
  const fake = await fakeHub({ tokens: ['hf_t'] })
  const first = fake.commit(SMALL)
  const rig = await rigOf(fake, { token: 'hf_t' })
  expect(await bring(rig, { repo: SMALL.id, ...body })).toMatchObject({ state: 'done' })
  return { ...rig, first }
}

const bring = async (rig: Rig, body: ImportHfBody): Promise<Job> =>
  finished(rig, await rig.client.importHf({ names: 'normalized', ...body }))

const membersOf = async ({ client }: Rig) => (await client.models()).namespaces.flatMap(({ members }) => members)

test('the inventory says where a model came from, and what it follows', async () => {
  const rig = await rigWith()
  const origin = { kind: 'hf', repo: SMALL.id, revision: 'main', commit: rig.first }
  expect((await membersOf(rig)).map((member) => member.origin)).toEqual([origin, origin])
})

test('a commit that changes one quant is newer for that quant only, and reports the changes', async () => {
  const rig = await rigWith()
  expect((await outdated(rig)).map(({ status }) => status)).toEqual(['same', 'same'])
  const second = rig.fake.commit(newWeights)
  const [q4, q8] = await outdated(rig)
  expect(q4).toMatchObject({ ref: 'some-org/small.model:q4_k_m', status: 'same', commit: second })
  expect(q8).toMatchObject({ status: 'newer', commit: second, files: 1, bytes: 510_000, bytesPresent: 0 })
  expect((await membersOf(rig)).map(({ newer }) => newer)).toEqual([undefined, second])
  const sent = rig.fake.bytesSent.get('model-q8_0.gguf') ?? 0
  expect(sent).toBe(BYTES.q8)
})

test('a changed file whose bytes are here already is counted as such', async () => {
  const rig = await rigWith()
  rig.fake.commit(changed('model-q8_0.gguf', { seed: 1, sizeBytes: BYTES.q4 }))
  const [, q8] = await outdated(rig, ['svc:///some-org/small.model:q8_0', 'svc:///some-org/small.model:q4_k_m'])
  expect(q8).toMatchObject({ status: 'newer', bytes: BYTES.q4, bytesPresent: BYTES.q4 })
})

test.each([
  ['its commit', async ({ first }: { first: string }) => ({ revision: first })],
  ['another branch', async () => ({ revision: 'dev' })]
])('an import of %s does not follow the default branch', async (_, bodyOf) => {
  const fake = await fakeHub()
  const first = fake.commit(SMALL)
  fake.commit({ ...SMALL, branch: 'dev' })
  const rig = await rigOf(fake)
  // the daemon has heard that this commit is the default branch's
  await rig.client.planHf({ repo: SMALL.id })
  const body = await bodyOf({ first })
  await bring(rig, { repo: SMALL.id, ...body })
  fake.commit(newWeights)
  const [, q8] = await outdated(rig)
  expect(q8?.status).toBe(body.revision === first ? 'pinned' : 'same')
  expect(q8?.origin?.revision).toBe(body.revision === first ? undefined : 'dev')
})

test('each name of an artifact follows its own import, and a pinned name is never outdated', async () => {
  const rig = await rigWith({ quants: ['q8_0'] })
  rig.fake.commit({ ...SMALL, branch: 'v1' })
  await bring(rig, { repo: SMALL.id, quants: ['q8_0'], revision: rig.first, as: 'me/pinned' })
  await bring(rig, { repo: SMALL.id, quants: ['q8_0'], revision: 'v1', as: 'me/tagged' })
  const second = rig.fake.commit(newWeights)
  expect((await outdated(rig)).map(({ ref, status }) => [ref, status])).toEqual([
    ['me/pinned:q8_0', 'pinned'],
    ['me/tagged:q8_0', 'same'],
    ['some-org/small.model:q8_0', 'newer']
  ])
  expect((await membersOf(rig)).map(({ newer }) => newer)).toEqual([undefined, undefined, second])
})

test('a commit found by a branch follows that branch; no other commit does', async () => {
  const rig = await rigWith()
  const second = rig.fake.commit(newWeights)
  await bring(rig, { repo: SMALL.id, revision: second, follows: 'main', as: 'a/b' })
  expect((await outdated(rig, ['svc:///a/b:q8_0']))[0]).toMatchObject({ status: 'same', origin: { revision: 'main' } })
  await expect(rig.client.importHf({ repo: SMALL.id, revision: 'main', follows: 'dev' })).rejects.toMatchObject({
    code: 'E_BAD_REQUEST'
  })
})

test.each([
  ['renamed', { status: 'newer', movedTo: 'New-Org/Small.Model' }],
  ['gone', { status: 'gone' }],
  ['gated', { status: 'gated' }]
])('a repository that was %s in the meantime', async (what, expected) => {
  const fake = await fakeHub({ tokens: ['hf_t'], outsiderTokens: ['hf_other'] })
  fake.commit(SMALL)
  const rig = await rigOf(fake, { token: 'hf_other' })
  await bring(rig, { repo: SMALL.id })
  fake.commit(newWeights)
  if (what === 'renamed') fake.rename(SMALL.id, 'New-Org/Small.Model')
  if (what === 'gone') fake.setAccess(SMALL.id, { private: true })
  if (what === 'gated') fake.setAccess(SMALL.id, { gated: 'manual' })
  const [q4, q8] = await outdated(rig)
  expect(q8).toMatchObject(expected)
  expect(q4?.status).toBe(what === 'renamed' ? 'same' : expected.status)
  expect((await membersOf(rig)).filter(({ newer }) => newer)).toHaveLength(what === 'renamed' ? 1 : 0)
})

test('a hub that answers nothing useful fails the job; one bad repository does not', async () => {
  const rig = await rigWith()
  rig.fake.setFaults(scriptedFaults([{ stage: 'info', times: 99, fault: { kind: 'status', status: 503 } }]))
  const failed = await finished(rig, await rig.client.outdated())
  expect(failed).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
  rig.fake.setFaults(undefined)
  const other: FakeRepo = { ...SMALL, id: 'Some-Org/Other' }
  rig.fake.commit(other)
  await bring(rig, { repo: other.id })
  rig.fake.commit(newWeights)
  rig.fake.commit({
    ...newWeights,
    id: other.id,
    files: [{ path: 'model-q4_k_m.gguf', content: { seed: 5, sizeBytes: 9 } }]
  })
  const models = await outdated(rig)
  expect(models.map(({ ref, status }) => [ref, status])).toEqual([
    ['some-org/other:q4_k_m', 'newer'],
    ['some-org/other:q8_0', 'gone'],
    ['some-org/small.model:q4_k_m', 'same'],
    ['some-org/small.model:q8_0', 'newer']
  ])
})

const upgrade = async (rig: Rig, { upgrade: body }: OutdatedModel): Promise<Job> =>
  finished(rig, await rig.client.importHf({ ...body!, replace: false }))

test('an upgrade fetches only changes, and a tag keeps the older version until a collection removes it', async () => {
  const rig = await rigWith()
  rig.fake.commit(newWeights)
  const sentBefore = rig.fake.bytesSent.get('model-Q4_K_M.gguf')
  const [, q8] = await outdated(rig)
  const done = await upgrade(rig, q8!)
  const before = done.result!.before!
  expect(before).toMatch(/^before-\d{4}-\d\d-\d\d$/)
  expect(rig.fake.bytesSent.get('model-q8_0.gguf')).toBe(BYTES.q8 + 510_000)
  expect(rig.fake.bytesSent.get('model-Q4_K_M.gguf')).toBe(sentBefore)
  // a second one on the same day takes nothing from the first
  rig.fake.commit(changed('model-q8_0.gguf', { seed: 23, sizeBytes: 520_000 }))
  const again = await upgrade(rig, (await outdated(rig))[1]!)
  expect(again.result!.before).toBe(`${before}-2`)
  const older = `svc:///some-org/small.model:${before}+q8_0`
  expect((await rig.client.open(older)).missing ?? []).toEqual([])
  expect((await outdated(rig, [older]))[0]?.status).toBe('pinned')

  const collect = async (body: GcBody) =>
    (await finished(rig, await rig.client.gc({ graceSeconds: 0, ...body }))).result!
  expect(await collect({ beforeOlderThanSeconds: 3 * 86_400 })).toMatchObject({ tags: 0, blobs: 0 })
  const dry = await collect({ beforeOlderThanSeconds: 0, dryRun: true })
  expect(dry.bytes).toBeGreaterThan(BYTES.q8 + 510_000)
  expect((await rig.client.models()).tags).toHaveLength(2)
  expect(await collect({ beforeOlderThanSeconds: 0 })).toMatchObject({ tags: 2, bytes: dry.bytes, blobs: dry.blobs })
  expect((await rig.client.models()).tags).toEqual([])
  await expect(rig.client.open(older)).rejects.toMatchObject({ code: 'E_UNKNOWN_REF' })
  expect((await membersOf(rig)).every(({ complete }) => complete)).toBe(true)
})

test('private and restricted models stay so in an upgrade', async () => {
  const rig = await rigWith({ private: true })
  rig.fake.setAccess(SMALL.id, { gated: 'auto' })
  rig.fake.commit({ ...newWeights, gated: 'auto' })
  const done = await upgrade(rig, (await outdated(rig))[1]!)
  const state = await rig.daemon.context.artifacts.read(done.result!.manifests[0] as never)
  expect(isPrivate(state!)).toBe(true)
  expect(state!.provenance).toMatchObject({ access: 'restricted', by: 'hub-token' })
  expect((await membersOf(rig)).map((member) => member.private)).toEqual([true, true])
})

test('the token is sent only to the hub, and an upgrade does not take the name of another model', async () => {
  const rig = await rigWith()
  rig.fake.commit(newWeights)
  const [, q8] = await outdated(rig)
  const sent = rig.fake.requests.filter(({ headers }) => headers.authorization !== undefined)
  expect(sent.length).toBeGreaterThan(0)
  expect(new Set(sent.map(({ origin }) => origin))).toEqual(new Set(['hub']))
  const mine: FakeRepo = { id: 'Me/Mine', files: filesWith('model-q8_0.gguf', { seed: 77, sizeBytes: 90_000 }) }
  rig.fake.commit(mine)
  await bring(rig, { repo: mine.id, as: 'some-org/small.model', quants: ['q8_0'] })
  expect(await upgrade(rig, q8!)).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
})

test('[hub] check asks soon after the start and then daily; without it the daemon does not ask', async () => {
  const fake = await fakeHub()
  fake.commit(SMALL)
  const asked = async (check: string | undefined): Promise<readonly number[]> => {
    const clock = new VirtualClock(Date.UTC(2026, 4, 1))
    const rig = await rigOf(fake, { clock, ...(check !== undefined && { check }) })
    const checks = async () => (await rig.client.jobs()).filter(({ kind }) => kind === 'outdated').length
    await clock.advance(11 * 60_000)
    const first = await checks()
    await clock.advance(24 * 3600_000)
    return [first, await checks()]
  }
  expect(await asked('daily')).toEqual([1, 2])
  expect(await asked(undefined)).toEqual([0, 0])
  await expect(rigOf(fake, { check: 'hourly' })).rejects.toMatchObject({ name: 'ConfigError' })
})
