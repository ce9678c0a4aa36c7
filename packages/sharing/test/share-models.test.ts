import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { localFiles, type OwnedModels, openLibrary } from '@svc/library'
import { expect, onTestFinished, test, vi } from 'vitest'
import { gguf, MODEL, writeFiles } from '../../daemon/test/support/models.ts'
import { type ModelSharing, type SharingOptions, shareModels } from '../src/index.ts'

// Two libraries with an engine each, in one process
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1 << 20

interface Node {
  readonly library: OwnedModels
  readonly sharing: ModelSharing
  readonly folder: string
}

async function node(options: SharingOptions = {}): Promise<Node> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sharing-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const library = await openLibrary({ root: join(folder, 'store') })
  onTestFinished(() => library.close())
  const sharing = await shareModels(library, { peer: { host: '127.0.0.1' }, dht: false, ...options })
  onTestFinished(() => sharing.close())
  return { library, sharing, folder }
}

const imported = ({ library, folder }: Node, files = MODEL, as = 'me/small') =>
  library.import(localFiles([writeFiles(join(folder, 'files'), files)]), as)
const digests = async ({ library }: Node, ref: string): Promise<string[]> =>
  (await library.open(ref)).files.filter(({ name }) => name !== undefined).map(({ digest }) => digest)

test('a shared model arrives whole, with what lies beside it, under the name that is asked for, and is passed on', async () => {
  const seed = await node()
  await imported(seed)
  const shared = await seed.sharing.share('svc:///me/small:bf16')
  expect(shared).toMatchObject({ announced: true, note: 'loopback-only' })

  const second = await node()
  const result = await second.sharing.fetch(shared, 'them/small')
  expect(result.warnings).toBeUndefined()
  expect(await digests(second, 'svc:///them/small:bf16')).toEqual(await digests(seed, 'svc:///me/small:bf16'))
  const [there, here] = [
    await seed.library.open('svc:///me/small:bf16'),
    await second.library.open('svc:///them/small:bf16')
  ]
  expect(here.missing).toBeUndefined()
  expect(here.companions?.files.map(({ digest }) => digest)).toEqual(
    there.companions?.files.map(({ digest }) => digest)
  )

  await seed.sharing.close()
  const third = await node()
  await third.sharing.fetch(await second.sharing.share('svc:///them/small:bf16'), 'me/third')
  expect(await digests(third, 'svc:///me/third:bf16')).toEqual(await digests(second, 'svc:///them/small:bf16'))
})

test('another pin than the magnet’s is refused, and nothing has the name', async () => {
  const seed = await node()
  await imported(seed, { 'a-q8_0.gguf': gguf(500) }, 'me/a')
  await imported(seed, { 'b-q8_0.gguf': gguf(600) }, 'me/b')
  const [a, b] = [await seed.sharing.share('svc:///me/a:q8_0'), await seed.sharing.share('svc:///me/b:q8_0')]
  const other = await node()
  const lie = other.sharing.fetch({ magnet: a.magnet, manifestDigest: b.manifestDigest }, 'them/b')
  await expect(lie).rejects.toMatchObject({ code: 'E_NOT_IMPORTABLE' })
  expect(await other.library.list()).toEqual([])
  await expect(other.sharing.fetch({ ...a, manifestDigest: 'sha256:0' }, 'them/a')).rejects.toMatchObject({
    code: 'E_INVALID'
  })
})

test('ensure brings back what is missing while models are shared, and asks nobody afterwards', async () => {
  const seed = await node()
  await imported(seed)
  const other = await node()
  await other.sharing.fetch(await seed.sharing.share('svc:///me/small:bf16'), 'them/small')
  const lose = async (): Promise<void> => {
    const { files } = await other.library.open('svc:///them/small:bf16')
    rmSync(files.find(({ kind }) => kind?.startsWith('weights'))!.path)
  }
  await lose()
  expect((await other.library.open('svc:///them/small:bf16')).missing).toHaveLength(1)
  expect((await other.library.ensure('svc:///them/small:bf16')).missing).toBeUndefined()

  await lose()
  await other.sharing.close()
  await expect(other.library.ensure('svc:///them/small:bf16')).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
})

test('a program that only fetches gives nothing, and a replaced model is no longer given', async () => {
  const seed = await node({ webseed: { host: '127.0.0.1' } })
  await imported(seed)
  const shared = await seed.sharing.share('svc:///me/small:bf16')
  const page = `${shared.webseeds[0]}bt/${shared.infohash.slice('btmh:1220'.length)}.torrent`
  expect((await fetch(page)).status).toBe(200)
  await imported(seed, { 'small-bf16.gguf': gguf(700) })
  await expect.poll(async () => (await fetch(page)).status).toBe(404)

  const fetching = await node({ seed: false })
  await imported(fetching)
  expect(await fetching.sharing.share('svc:///me/small:bf16')).toMatchObject({ announced: false })
  expect((await fetching.sharing.status()).seeding).toBe(0)
})

test('an address that is in use is refused, and the library works on', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const { library } = await node({ seed: false })
  const refused = shareModels(library, { peer: { host: '127.0.0.1', port }, dht: false })
  await expect(refused).rejects.toMatchObject({ name: 'LibraryError', code: 'E_INVALID' })
  expect(await library.list()).toEqual([])
})

test('an ended fetch keeps its verified bytes, and the next one goes on with them', async () => {
  const seed = await node({ uploadLimitBytesPerSecond: 2 * MIB })
  await imported(seed, { 'large-q8_0.gguf': gguf(6 * MIB) }, 'me/large')
  const shared = await seed.sharing.share('svc:///me/large:q8_0')
  const other = await node()
  const end = new AbortController()
  const reason = new Error('no longer wanted')
  const first = other.sharing.fetch(shared, 'them/large', {
    signal: end.signal,
    onProgress: ({ bytesDone = 0 }) => bytesDone > 3 * MIB && end.abort(reason)
  })
  await expect(first).rejects.toBe(reason)
  expect(await other.library.list()).toEqual([])

  await other.sharing.fetch(shared, 'them/large')
  expect(await digests(other, 'svc:///them/large:q8_0')).toEqual(await digests(seed, 'svc:///me/large:q8_0'))
  const { downloadedBytes } = await other.sharing.status()
  expect(downloadedBytes).toBeGreaterThan(6 * MIB)
  // a piece that was under way comes twice
  expect(downloadedBytes).toBeLessThan(8 * MIB)
})

test('sharing ends with its library', async () => {
  const { library, sharing, folder } = await node()
  await imported({ library, sharing, folder }, { 'a-q8_0.gguf': gguf(500) }, 'me/a')
  expect((await sharing.share('svc:///me/a:q8_0')).announced).toBe(true)
  await library.close()
  await sharing.close()
  const reopened = await openLibrary({ root: join(folder, 'store') })
  expect(await reopened.list()).toHaveLength(1)
  await reopened.close()
})
