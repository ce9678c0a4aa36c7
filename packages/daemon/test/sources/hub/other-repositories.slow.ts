// The same weights from elsewhere: another repository, a mirror of the hub, and a mirror of that mirror.
import type { Sha256Digest } from '@svc/ref'
import type { FakeHub } from '@svc/testkit/fake-hub'
import { expect, test, vi } from 'vitest'
import { madeRepository } from '../../support/made-repositories.ts'
import { gguf } from '../../support/models.ts'
import { fakeHub, finished, importRepo, type Rig, rigOf, tempFolder, undoAfterTests } from './fixtures.ts'
import { expectSame, readFolder } from './whole-folders.ts'

vi.setConfig({ testTimeout: 60_000 })
undoAfterTests()

test('the same weights from two repositories have the companions of each; removing one keeps the other', async () => {
  const rig = await rigOf(await fakeHub())
  const files = (readme: string) => [
    { path: 'm-q8_0.gguf', content: gguf(20_000, 51) },
    { path: 'README.md', content: Buffer.from(readme) },
    { path: 'params', content: Buffer.from('{"shared":true}') }
  ]
  const texts = { one: '# one', two: '# two' }
  for (const [name, text] of Object.entries(texts)) {
    rig.fake.commit({ id: `Acme/${name}`, files: files(text) })
    expect((await importRepo(rig, `Acme/${name}`)).state).toBe('done')
  }
  const besideOf = async (name: string) => (await rig.client.open(`svc:///acme/${name}:q8_0`)).companions!
  const [one, two] = [await besideOf('one'), await besideOf('two')]
  expect(one.digest).not.toBe(two.digest)
  const { store } = rig.daemon.context
  const isHere = async (digest: string) => (await store.stat(digest as Sha256Digest)) !== undefined
  const weights = (await rig.client.open('svc:///acme/two:q8_0')).files.find(({ name }) => name?.endsWith('.gguf'))!
  await rig.client.removeModel({ ns: 'acme', name: 'one' })
  await finished(rig, await rig.client.gc({ graceSeconds: 0 }))
  expect(await isHere(one.digest)).toBe(false)
  for (const { path, digest } of one.files) expect([path, await isHere(digest)]).toEqual([path, path === 'params'])
  for (const digest of [two.digest, weights.digest, ...two.files.map((file) => file.digest)])
    expect(await isHere(digest)).toBe(true)
  const { folder } = await rig.client.makeView({ ref: 'svc:///acme/two:q8_0' })
  expect(readFolder(folder).get('README.md')!.toString()).toBe('# two')
})

/** A daemon whose hub is the mirror of another one. */
const behind = async ({ fake, mirror }: Rig): Promise<Rig> =>
  rigOf({ ...fake, endpoint: `http://${mirror}` } as FakeHub, {
    root: await tempFolder(),
    mirror: true,
    skipUnrecognized: true
  })

test('through a mirror and a mirror of it, the folder equals that of the hub', async () => {
  const near = await rigOf(await fakeHub(), { mirror: true, skipUnrecognized: true })
  const rigs = [near, await behind(near)]
  rigs.push(await behind(rigs[1]!))
  for (const [kind, seed] of [
    ['sentence-transformers', 49],
    ['diffusers', 60],
    ['whisper', 71]
  ] as const) {
    const repo = madeRepository(kind, seed)
    near.fake.commit(repo)
    const ref = `svc:///${repo.id.toLowerCase()}:bf16`
    const folderOf = async (rig: Rig) => {
      const job = await importRepo(rig, repo.id)
      expect([job.state, job.error]).toEqual(['done', undefined])
      return { manifests: job.result!.manifests, folder: readFolder((await rig.client.makeView({ ref })).folder) }
    }
    const first = await folderOf(near)
    for (const rig of rigs.slice(1)) {
      const { manifests, folder } = await folderOf(rig)
      expect(manifests).toEqual(first.manifests)
      expectSame(folder, first.folder)
    }
    // what the first one left out, the last one knows to be lacking as well
    const left = async ({ mirror }: Rig) =>
      (await fetch(`http://${mirror}/api/models/${repo.id}`)).headers.get('x-svc-left-out')
    expect(await left(rigs[2]!)).toBe(await left(near))
    if (kind === 'whisper') expect(Number(await left(near))).toBeGreaterThan(0)
  }
})
