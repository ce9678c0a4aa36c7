import type { Job, ModelMember } from '@svc/client/protocol'
import { parseDigest } from '@svc/ref'
import type { FakeHub } from '@svc/testkit/fake-hub'
import { smallDisk } from '@svc/testkit/small-disk'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { fakeHub, finished, type Rig, rigOf, undoAfterTests, writeRepo } from '../sources/hub/fixtures.ts'

undoAfterTests()

const MODEL_BYTES = 3 << 20
/** Two models, their documents, and what an import sets aside for documents. */
const QUOTA = 2 * MODEL_BYTES + (2 << 20)

interface Quota {
  readonly fake: FakeHub
  readonly rig: Rig
  bring(name: string, evict?: boolean): Promise<Job>
  states(): Promise<Readonly<Record<string, string>>>
}

async function quotaOf(more: Parameters<typeof rigOf>[1] = {}): Promise<Quota> {
  const fake = await fakeHub()
  const rig = await rigOf(fake, { store: { max_bytes: QUOTA }, ...more })
  const bring = async (name: string, evict?: boolean): Promise<Job> => {
    const seed = name.charCodeAt(0) * 1_000
    fake.commit({
      id: `Org/${name}`,
      files: [
        { path: 'model-q8_0.gguf', content: { seed, sizeBytes: MODEL_BYTES } },
        { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
      ]
    })
    return finished(rig, await rig.client.importHf({ repo: `Org/${name}`, ...(evict !== undefined && { evict }) }))
  }
  const states = async (): Promise<Record<string, string>> => {
    const { namespaces } = await rig.client.models()
    const stateOf = ({ complete, away }: ModelMember): string => (complete ? 'here' : away ? 'away' : 'damaged')
    return Object.fromEntries(namespaces.map(({ name, members }) => [name, members.map(stateOf).join()]))
  }
  return { fake, rig, bring, states }
}

test('an import that does not fit names eviction candidates, and with consent evicts the least recently used', async () => {
  const clock = new VirtualClock()
  const { rig, bring, states } = await quotaOf({ clock })
  for (const name of ['A', 'B']) expect(await bring(name)).toMatchObject({ state: 'done' })
  // used last although it came first
  await clock.advance(60_000)
  await rig.client.open('svc:///org/a:q8_0')

  expect(await bring('C')).toMatchObject({
    state: 'failed',
    error: { code: 'E_NO_SPACE', candidates: ['org/b:q8_0'] }
  })
  expect(await states()).toEqual({ a: 'here', b: 'here' })
  expect(await bring('C', true)).toMatchObject({ state: 'done' })
  expect(await states()).toEqual({ a: 'here', b: 'away', c: 'here' })

  // it is brought back in the same way
  const ref = 'svc:///org/b:q8_0'
  const refused = await finished(rig, await rig.client.ensure({ ref }))
  expect(refused).toMatchObject({ state: 'failed', error: { code: 'E_NO_SPACE' } })
  expect(await finished(rig, await rig.client.ensure({ ref, evict: true }))).toMatchObject({ state: 'done' })
  expect((await states()).b).toBe('here')
})

test('pinned, private and unavailable models are never evicted for space', async () => {
  const { fake, rig, bring, states } = await quotaOf()
  const paths = [await writeRepo([{ path: 'own-q8_0.gguf', content: { seed: 7, sizeBytes: MODEL_BYTES } }])]
  await finished(rig, await rig.client.importLocal({ paths, as: 'org/own', private: true }))
  await bring('A')
  await rig.client.setPinned({ ref: 'svc:///org/a:q8_0', pinned: true })
  const refused = await bring('B', true)
  expect(refused).toMatchObject({ state: 'failed', error: { code: 'E_NO_SPACE' } })
  expect(refused.error?.candidates).toBeUndefined()
  await rig.client.setPinned({ ref: 'svc:///org/a:q8_0', pinned: false })
  fake.setAccess('Org/A', { disabled: true })
  expect(await bring('B', true)).toMatchObject({ state: 'failed', error: { code: 'E_NO_SPACE' } })
  expect(await states()).toEqual({ a: 'here', own: 'here' })
  fake.setAccess('Org/A', { disabled: false })
  expect(await bring('B', true)).toMatchObject({ state: 'done' })
  expect(await states()).toEqual({ a: 'away', b: 'here', own: 'here' })
})

test('the older version that an upgrade keeps is named by its tag', async () => {
  const clock = new VirtualClock()
  const { fake, rig, bring } = await quotaOf({ clock })
  await bring('A')
  await clock.advance(60_000)
  const weights = { path: 'model-q8_0.gguf', content: { seed: 99_000, sizeBytes: MODEL_BYTES } }
  fake.commit({ id: 'Org/A', files: [weights] })
  const upgrade = await finished(rig, await rig.client.importHf({ repo: 'Org/A', keepBefore: true }))
  expect(upgrade).toMatchObject({ state: 'done', result: { before: 'before-2026-01-01' } })
  expect(await bring('B')).toMatchObject({ error: { candidates: ['org/a:before-2026-01-01+q8_0'] } })
})

test('a smaller quota is enforced automatically, without unevictable models', async () => {
  const before = await quotaOf()
  for (const name of ['A', 'B']) await before.bring(name)
  await before.rig.daemon.close()
  const rig = await rigOf(before.fake, { root: before.rig.root, store: { max_bytes: MODEL_BYTES + (1 << 20) } })
  const jobs = async (): Promise<Job[]> => (await rig.client.jobs()).filter(({ kind }) => kind === 'evict')
  await expect.poll(async () => (await jobs())[0]?.state, { timeout: 10_000 }).toBe('done')
  const members = (await rig.client.models()).namespaces.map(({ members }) => members[0]!.away === true)
  expect(members).toEqual([true, false])
})

test('a quota that pinned models exceed evicts the others, and the job says that it is not enough', async () => {
  const before = await quotaOf()
  for (const name of ['A', 'B']) await before.bring(name)
  await before.rig.client.setPinned({ ref: 'svc:///org/a:q8_0', pinned: true })
  await before.rig.daemon.close()
  const rig = await rigOf(before.fake, { root: before.rig.root, store: { max_bytes: 1 << 20 } })
  const ended = async (): Promise<Job | undefined> =>
    (await rig.client.jobs()).find(({ kind, state }) => kind === 'evict' && state === 'failed')
  await expect.poll(async () => (await ended())?.error?.code, { timeout: 10_000 }).toBe('E_NO_SPACE')
  const members = (await rig.client.models()).namespaces.map(({ members }) => members[0]!.away === true)
  expect(members).toEqual([false, true])
})

test("models that mirror clients fetched are evicted before the owner's", async () => {
  const clock = new VirtualClock()
  const { rig, bring } = await quotaOf({ clock })
  await bring('A')
  await clock.advance(60_000)
  await bring('B')
  const { artifacts } = rig.daemon.context
  const { manifestDigest } = await rig.client.resolve('svc:///org/b:q8_0')
  const state = (await artifacts.read(parseDigest(manifestDigest)))!
  await artifacts.forget(state.manifestDigest)
  await artifacts.record({ ...state, source: { ...state.source, onDemand: true } })
  expect(await bring('C')).toMatchObject({ state: 'failed', error: { candidates: ['org/b:q8_0'] } })
  // the owner uses it
  await clock.advance(60_000)
  await rig.client.open('svc:///org/b:q8_0')
  expect(await bring('C')).toMatchObject({ state: 'failed', error: { candidates: ['org/a:q8_0'] } })
})

test('the space to keep free counts: an import names what would go, and a larger one is enforced', async () => {
  const MIB = 1 << 20
  // a third model and what an import sets aside fit into 10.5 MiB, but leave less than the MiB to keep
  const filePort = smallDisk(2 * MODEL_BYTES + 4.5 * MIB)
  const clock = new VirtualClock()
  const { fake, rig, bring, states } = await quotaOf({ store: { min_free: MIB }, filePort, clock })
  for (const name of ['A', 'B']) {
    expect(await bring(name)).toMatchObject({ state: 'done' })
    await clock.advance(60_000)
  }
  expect(await bring('C')).toMatchObject({
    state: 'failed',
    error: { code: 'E_NO_SPACE', candidates: ['org/a:q8_0'] }
  })
  expect(await states()).toEqual({ a: 'here', b: 'here' })
  const pin = (name: string, pinned: boolean) => rig.client.setPinned({ ref: `svc:///org/${name}:q8_0`, pinned })
  await Promise.all(['a', 'b'].map((name) => pin(name, true)))
  const refused = await bring('C', true)
  expect(refused).toMatchObject({ state: 'failed', error: { code: 'E_NO_SPACE' } })
  expect([refused.error?.candidates, refused.error?.message]).toEqual([undefined, expect.stringContaining('stay free')])
  await pin('a', false)
  expect(await bring('C', true)).toMatchObject({ state: 'done' })
  expect(await states()).toEqual({ a: 'away', b: 'here', c: 'here' })
  await rig.daemon.close()

  // 4 MiB are free: of the pinned and the other one, the other one goes
  const later = await rigOf(fake, { root: rig.root, store: { min_free: 5 * MIB }, filePort })
  const job = async (): Promise<Job> => (await later.client.jobs()).find(({ kind }) => kind === 'evict')!
  await expect.poll(async () => (await job())?.state, { timeout: 10_000 }).toBe('done')
  expect(await job()).toMatchObject({ result: { bytes: MODEL_BYTES } })
  const away = (await later.client.models()).namespaces.map(({ members }) => members[0]!.away === true)
  expect(away).toEqual([true, false, true])
})
