import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { localFiles, openLibrary, openOrConnect, readLibrary } from '@svc/library'
import { expect, it, onTestFinished } from 'vitest'
import { fakeHub, finished, importRepo, rigOf, undoAfterTests } from '../sources/hub/fixtures.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

undoAfterTests()

const REF = 'svc:///me/a:q8_0'

async function owned(root = temporaryFolder()) {
  const library = await openLibrary({ root })
  onTestFinished(() => library.close())
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000) })
  await library.import(localFiles([folder]), 'me/a')
  return library
}

async function reading(root: string) {
  const reader = await readLibrary({ root })
  onTestFinished(() => reader.close())
  return reader
}

/** Gives the name to another model: nothing needs the old one then. */
async function replaceModel(library: Awaited<ReturnType<typeof owned>>): Promise<void> {
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, 5) })
  await library.import(localFiles([folder]), 'me/a')
}

it('resolves, opens and lists what the owner does, and sees its changes', async () => {
  const library = await owned()
  const reader = await reading(library.root)
  expect(await reader.resolve(REF)).toEqual(await library.resolve(REF))
  expect(await reader.open(REF)).toEqual(await library.open(REF))
  expect(await reader.list()).toEqual(await library.list())
  const before = await reader.resolve(REF)
  await replaceModel(library)
  expect((await reader.resolve(REF)).manifestDigest).not.toBe(before.manifestDigest)
  expect(await reader.list()).toEqual(await library.list())
})

it('writes nothing but its lease, and takes that with it', async () => {
  const { root } = await owned()
  const seen = () => readdirSync(root, { recursive: true }).map(String).sort()
  const before = seen()
  const reader = await readLibrary({ root })
  await reader.list()
  expect(seen()).toEqual(before)
  await reader.open(REF)
  expect(
    seen()
      .filter((name) => !before.includes(name))
      .join('\n')
  ).toMatch(/^leases\nleases\/\d+\.\d+\.[0-9a-f]{8}$/)
  await reader.close()
  expect(readdirSync(join(root, 'leases'))).toEqual([])
})

it('what a reader, or a client of the daemon, opened is not evicted, and is once it has closed', async () => {
  const fake = await fakeHub({})
  const rig = await rigOf(fake)
  const { socketPath } = rig.daemon
  const root = join(rig.root, 'store')
  const ways = [() => readLibrary({ root }), () => openOrConnect({ root, socketPath })]
  for (const [i, open] of ways.entries()) {
    const id = `Org/Kept${i}`
    fake.commit({ id, files: [{ path: 'model-q8_0.gguf', content: { seed: 7_000 + i, sizeBytes: 200_003 } }] })
    expect(await importRepo(rig, id)).toMatchObject({ state: 'done' })
    const ref = `svc:///${id.toLowerCase()}:q8_0`
    const models = await open()
    const { path } = (await models.open(ref)).files.find(({ kind }) => kind === 'weights.gguf')!
    const evict = async () => finished(rig, await rig.client.evict({ ref, force: true }))
    expect(await evict()).toMatchObject({ state: 'failed' })
    expect(existsSync(path)).toBe(true)
    await models.close()
    expect(await evict()).toMatchObject({ state: 'done' })
    expect(existsSync(path)).toBe(false)
  }
})

it('a store that is not there is not made', async () => {
  const root = join(temporaryFolder(), 'absent')
  await expect(readLibrary({ root })).rejects.toMatchObject({ code: 'E_NO_STORE' })
  expect(existsSync(root)).toBe(false)
})

it('openOrConnect owns a free store, and asks the daemon that has it otherwise', async () => {
  const root = temporaryFolder()
  const own = await openOrConnect({ root })
  await expect(openOrConnect({ root, socketPath: join(root, 'none.sock') })).rejects.toMatchObject({ code: 'E_LOCKED' })
  await own.close()
  const daemon = await testDaemon()
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000) })
  const models = await openOrConnect({ root: daemon.root, socketPath: daemon.running.socketPath })
  onTestFinished(() => models.close())
  await models.import(localFiles([folder]), 'me/a')
  expect(await (await reading(daemon.root)).list()).toEqual(await models.list())
  // the daemon of another store is not its owner
  const taken = await owned()
  await expect(openOrConnect({ root: taken.root, socketPath: daemon.running.socketPath })).rejects.toMatchObject({
    code: 'E_LOCKED'
  })
})
