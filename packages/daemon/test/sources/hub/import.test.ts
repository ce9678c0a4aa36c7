import type { FakeHub, FakeRepo } from '@svc/testkit/fake-hub'
import { nameContent } from '@svc/testkit/fake-hub-content'
import { until } from '@svc/testkit/until'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import {
  fakeHub,
  finished,
  importRepo,
  keepForAll,
  madeBy,
  manifestsOf,
  type Rig,
  rigOf,
  SMALL,
  undoAfterTests,
  writeRepo
} from './fixtures.ts'

undoAfterTests()

/** One hub and two daemons for most tests; each test has repositories, and so blobs, of its own. */
let fake: FakeHub
let rig: Rig
let sparing: Rig
let count = 0
beforeAll(async () => {
  fake = await fakeHub({ pageSize: 50, tokens: ['hf_t'] })
  rig = await rigOf(fake)
  sparing = await rigOf(fake, { skipUnrecognized: true })
  keepForAll()
})
beforeEach(() => fake.setFaults(undefined))

/** SMALL with other bytes under another name. */
function freshRepo(more: Partial<FakeRepo> = {}): FakeRepo {
  const offset = ++count * 1000
  const files = SMALL.files.map((file) =>
    file.content instanceof Uint8Array
      ? file
      : { ...file, content: { ...file.content, seed: file.content.seed + offset } }
  )
  return { ...SMALL, id: `Some-Org/Model.${count}`, files, ...more }
}
const sent = (path: string): number => fake.bytesSent.get(path) ?? 0

test('a second import fetches no large file again and ends in the same documents', async () => {
  const repo = freshRepo()
  fake.commit(repo)
  const first = await importRepo(sparing, repo.id)
  const paths = ['model-Q4_K_M.gguf', 'model-q8_0.gguf']
  const before = paths.map(sent)
  expect(before.every((bytes) => bytes > 300_000)).toBe(true)
  const second = await importRepo(sparing, repo.id)
  expect(madeBy(second)).toEqual(madeBy(first))
  // one byte is asked for to see whether the repository is gated.
  for (const [i, path] of paths.entries()) expect(sent(path) - before[i]!).toBeLessThanOrEqual(1)
})

test('large unrecognized files are fetched and verified, not stored; the setting skips them', async () => {
  const large = { path: 'extra.bin', content: { seed: 5, sizeBytes: 1_200_000 } }
  const repo = freshRepo({ files: [...SMALL.files.filter(({ path }) => path !== large.path), large] })
  fake.commit(repo)
  const before = sent('extra.bin')
  const job = await importRepo(rig, repo.id)
  expect(job.result?.skipped).toBe(2)
  expect(sent('extra.bin') - before).toBe(1_200_000)
  const other = await importRepo(sparing, repo.id)
  expect(sent('extra.bin') - before).toBe(1_200_000)
  expect(madeBy(other)).toEqual(madeBy(job))
  const extra = `sha256:${nameContent(repo.files.find(({ path }) => path === 'extra.bin')!.content).sha256}`
  for (const { daemon } of [rig, sparing]) expect(await daemon.context.store.stat(extra as never)).toBeUndefined()
})

test('progress: totals are known at once and never grow', async () => {
  const repo = freshRepo()
  fake.commit(repo)
  fake.setFaults((request) => (request.stage === 'cdn' ? { kind: 'drip', stepBytes: 20_000, everyMs: 10 } : undefined))
  const total = repo.files.reduce(
    (sum, { content }) => sum + (content instanceof Uint8Array ? content.length : content.sizeBytes),
    0
  )
  const first = await rig.client.importHf({ repo: repo.id })
  expect(first).toMatchObject({ state: 'waiting', kind: 'import-hf', filesDone: 0, filesTotal: 8, bytesTotal: total })
  const seen = [first]
  await until(
    () => seen.at(-1)!.state === 'done',
    async () => {
      const job = await rig.client.job(first.id)
      expect(job.state).not.toBe('failed')
      seen.push(job)
    }
  )
  expect(seen.every((job) => job.filesTotal === 8 && job.bytesTotal === total)).toBe(true)
  const bytes = seen.map((job) => job.bytesDone ?? 0)
  expect(bytes).toEqual([...bytes].sort((a, b) => a - b))
  expect(bytes.some((count) => count > 0 && count < total)).toBe(true)
  expect(seen.some((job) => job.files?.some((file) => file.name === 'model-q8_0.gguf' && file.bytesDone > 0))).toBe(
    true
  )
  expect(seen.at(-1)).toMatchObject({ filesDone: 8, bytesDone: total })
})

test('a wait for the rate limit is shown in the job, and then disappears', async () => {
  const repo = freshRepo()
  fake.commit(repo)
  let release = (): void => undefined
  const pause = new Promise<void>((resolve) => {
    release = resolve
  })
  const patient = await rigOf(fake, { hub: { retry: { sleep: () => pause } } })
  let limited = true
  fake.setFaults((request) =>
    limited && request.stage === 'cdn' && request.headers.range !== 'bytes=0-0'
      ? { kind: 'status', status: 429, headers: { 'retry-after': '17' } }
      : undefined
  )
  const job = await patient.client.importHf({ repo: repo.id })
  let shown = job
  while (shown.message === undefined) {
    expect(shown.state).not.toBe('failed')
    shown = await patient.client.job(job.id)
  }
  expect(shown.message).toContain('17')
  limited = false
  release()
  const done = await finished(patient, job)
  expect(done.state).toBe('done')
  expect(done.message).toBeUndefined()
})

test('identical files, large and small, under several names', async () => {
  const same = { seed: 21, sizeBytes: 200_000 }
  const repo = {
    id: 'Org/Twins',
    files: [
      { path: 'a-q4_0.gguf', content: same },
      { path: 'b/b-q8_0.gguf', content: same },
      { path: 'copy.bin', content: same },
      { path: 'tokenizer.json', content: { seed: 22, sizeBytes: 20_000 }, lfs: true },
      { path: 'sub/tokenizer.json', content: { seed: 22, sizeBytes: 20_000 }, lfs: true },
      { path: 'vocab.json', content: Buffer.from('{"x":1}') },
      { path: 'special_tokens_map.json', content: Buffer.from('{"x":1}') },
      { path: 'config.json', content: Buffer.from('{"x":1}') },
      { path: 'other.json', content: Buffer.from('{"x":1}') }
    ]
  }
  fake.commit(repo)
  const job = await importRepo(rig, repo.id)
  expect(job.error).toBeUndefined()
  const local = await finished(
    rig,
    await rig.client.importLocal({ paths: [await writeRepo(repo.files)], as: 'local/twins' })
  )
  expect((await manifestsOf(rig, job)).map(({ files }) => files)).toEqual(
    (await manifestsOf(rig, local)).map(({ files }) => files)
  )
})

test('a revision is pinned when the import is accepted, and recorded', async () => {
  const repo = freshRepo()
  const old = fake.commit({ ...repo, branch: 'refs/pr/1' })
  fake.commit({ ...repo, files: repo.files.slice(1) })
  const job = await importRepo(rig, repo.id.toLowerCase(), 'refs/pr/1')
  const [manifest] = await manifestsOf(rig, job)
  expect(manifest?.annotations).toMatchObject({ 'svc.hf.repo': repo.id, 'svc.hf.revision': old })
  const state = await rig.daemon.context.artifacts.read(job.result!.manifests[0] as never)
  expect(state).toMatchObject({
    provenance: { access: 'public' },
    source: { kind: 'hf', repo: repo.id, revision: old }
  })
})

test('a model that needed a token is marked as restricted', async () => {
  const member = await rigOf(fake, { token: 'hf_t' })
  for (const flags of [{ private: true }, { gated: 'auto' as const }, {}]) {
    const repo = freshRepo(flags)
    fake.commit(repo)
    const job = await importRepo(member, repo.id)
    expect(job.state).toBe('done')
    const state = await member.daemon.context.artifacts.read(job.result!.manifests[0] as never)
    const isOpen = !('private' in flags || 'gated' in flags)
    expect(state?.provenance.access).toBe(isOpen ? 'public' : 'restricted')
    expect(state?.provenance.confirmedPublicAt !== undefined).toBe(isOpen)
  }
})

test('a renamed repository keeps the name that was asked for, and says so', async () => {
  const repo = freshRepo({ formerId: 'Old-Org/Old-Name' })
  fake.commit(repo)
  const job = await importRepo(rig, 'Old-Org/Old-Name')
  expect(job).toMatchObject({ state: 'done', as: 'old-org/old-name' })
  expect(job.result?.warnings?.some((warning) => String(warning).includes(repo.id))).toBe(true)
  expect((await manifestsOf(rig, job))[0]?.annotations['svc.hf.repo']).toBe(repo.id)
})

test('a repository without weights is a failed job', async () => {
  fake.commit({ id: 'a/b', files: [{ path: 'tokenizer.json', content: Buffer.from('{}') }] })
  expect((await importRepo(rig, 'a/b')).error?.code).toBe('E_NOT_IMPORTABLE')
})

test('two concurrent imports of the same bytes: both succeed, and large files are fetched once', async () => {
  const repo = freshRepo()
  fake.commit(repo)
  fake.commit({ ...repo, id: 'Other/Model' })
  fake.setFaults((request) => (request.stage === 'cdn' ? { kind: 'drip', stepBytes: 30_000, everyMs: 2 } : undefined))
  const before = sent('model-q8_0.gguf')
  const jobs = await Promise.all([repo.id, 'Other/Model'].map((id) => rig.client.importHf({ repo: id })))
  const done = await Promise.all(jobs.map((job) => finished(rig, job)))
  expect(done.map((job) => job.error)).toEqual([undefined, undefined])
  expect(done[0]?.result?.quants).toEqual(done[1]?.result?.quants)
  expect(sent('model-q8_0.gguf') - before).toBeLessThanOrEqual(500_009 + 2)
})

test.each([
  [64, 128, undefined],
  [96, 96, 'me/model']
])(
  'a repository name of %i and %i characters fits into the keys of unfinished small files',
  async (owner, name, as) => {
    const repo = freshRepo({ id: `${'O'.repeat(owner)}/${'m'.repeat(name)}` })
    fake.commit(repo)
    const job = await finished(rig, await rig.client.importHf({ repo: repo.id, ...(as !== undefined && { as }) }))
    expect(job).toMatchObject({ state: 'done', as: as ?? repo.id.toLowerCase() })
  }
)
