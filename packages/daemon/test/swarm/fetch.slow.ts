import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { haveLibtorrent, Libtorrent } from '@svc/testkit/libtorrent'
import { expect, onTestFinished, test } from 'vitest'
import { sharedByFile, temporaryFolder } from '../support/daemon.ts'
import { contentOf, documentsOnly, kindOf, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, MODEL, modelAlone, Node, pinned, refOf, weights } from './nodes.ts'

const publisher = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  const share = modelAlone(await node.publish({ ...MODEL, 'second-q8_0.gguf': weights(9 * MIB + 1, 3) }))
  return { node, share, content: await contentOf(share) }
})

/** A libtorrent seeder of the publisher's artifact, from plain files. */
async function libtorrentSeeder(settings: Record<string, unknown> = {}): Promise<Libtorrent> {
  const { share, content } = await publisher()
  const folder = temporaryFolder()
  for (const [path, bytes] of content) {
    if (kindOf(path) === 'layers') continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), bytes)
  }
  const torrent = join(folder, 'served.torrent')
  writeFileSync(
    torrent,
    Buffer.from(await (await fetch(`${share.webseeds[0]}bt/${share.infohash.slice(9)}.torrent`)).arrayBuffer())
  )
  const session = await Libtorrent.start(settings)
  onTestFinished(() => session.stop())
  await session.add({ torrent, save: folder, webseeds: [] })
  await session.until(({ seeding }) => seeding)
  return session
}

test.skipIf(!haveLibtorrent)(
  'from libtorrent for the data: pin, manifest and layers come from a webseed that has nothing else',
  async () => {
    const { share, content } = await publisher()
    const seeder = await libtorrentSeeder()
    const documents = await startWebseed(content, documentsOnly)
    const node = await Node.start()
    const job = await node.importBt(pinned(share, { webseeds: [documents.url], peers: [seeder.address] }))
    expect(job).toMatchObject({
      kind: 'import-bt',
      state: 'done',
      ref: share.infohash,
      manifest: share.manifestDigest,
      result: { manifests: [share.manifestDigest], infohash: share.infohash, skipped: 0 }
    })
    expect(job.filesDone).toBe(job.filesTotal)
    expect(job.bytesDone).toBe(job.bytesTotal)
    await node.expectWhole(share.manifestDigest)
    // libtorrent counts once in a while
    await seeder.until(({ uploaded }) => uploaded >= job.bytesTotal!)
    expect(await node.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  }
)

test.skipIf(!haveLibtorrent)('from libtorrent alone, which gives the layers by hash requests', async () => {
  const { share, content } = await publisher()
  const seeder = await libtorrentSeeder()
  const manifestOnly = await startWebseed(content, (path, _request, response) => {
    if (kindOf(path) === 'manifest') return false
    response.writeHead(404).end()
    return true
  })
  const node = await Node.start()
  const job = await node.importBt(pinned(share, { webseeds: [manifestOnly.url], peers: [seeder.address] }))
  expect(job).toMatchObject({ state: 'done' })
  expect(job.result!.warnings).toEqual(expect.arrayContaining([expect.stringContaining(manifestOnly.url)]))
  await node.expectWhole(share.manifestDigest)
})

test('from another daemon by peers only for the data', async () => {
  const { node: source, share, content } = await publisher()
  const documents = await startWebseed(content, documentsOnly)
  const node = await Node.start()
  const before = (await source.client.status()).swarm.torrents.find(
    ({ infohash }) => infohash === share.infohash
  )!.uploadedBytes
  const job = await node.importBt(pinned(share, { webseeds: [documents.url] }))
  expect(job).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
  const after = (await source.client.status()).swarm.torrents.find(
    ({ infohash }) => infohash === share.infohash
  )!.uploadedBytes
  expect(after - before).toBeGreaterThanOrEqual(job.bytesTotal!)
  expect(documents.fileBytes).toBe(0)
})

test('from webseeds only, without any peer', async () => {
  const { share, content } = await publisher()
  const plain = await startWebseed(content)
  const node = await Node.start()
  const job = await node.importBt(pinned(share, { webseeds: [plain.url], peers: [] }))
  expect(job).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
  expect(plain.fileBytes).toBeGreaterThanOrEqual(job.bytesTotal!)
})

test("from another daemon's webseed listener only, by magnet", async () => {
  const { share } = await publisher()
  const node = await Node.start()
  const magnet = share.magnet.replace(/&x\.pe=[^&]*/g, '')
  const job = await node.importBt({ magnet, manifestDigest: share.manifestDigest })
  expect(job).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
})

test.skipIf(!haveLibtorrent)('from libtorrent, a daemon and webseeds at once', async () => {
  const { share, content } = await publisher()
  // the peers are slow, and the webseed waits for both of them to have begun: none can be done alone
  const seeder = await libtorrentSeeder({ upload_rate_limit: MIB, ignore_limits_on_local_network: false })
  const slow = await Node.start({ swarm: { upload_limit: MIB } })
  expect(await slow.importBt(pinned(share))).toMatchObject({ state: 'done' })
  const { peers } = await slow.announced(share.manifestDigest)
  let webseedBytes = 0
  const uploaded = async () => [
    (await seeder.status()).uploaded,
    (await slow.client.status()).swarm.torrents[0]!.uploadedBytes
  ]
  let begun: Promise<unknown> | undefined
  const peersHaveBegun = () =>
    (begun ??= eventually(async () => (await uploaded()).every((bytes) => bytes > 0) || undefined))
  const plain = await startWebseed(content, (path, request, response, bytes) => {
    if (kindOf(path) !== 'file' || bytes === undefined) return false
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!
    const body = bytes.subarray(Number(start), Number(end) + 1)
    void peersHaveBegun().then(() => {
      response.writeHead(206, {
        'Content-Length': body.length,
        'Content-Range': `bytes ${start}-${end}/${bytes.length}`
      })
      webseedBytes += body.length
      response.end(body)
    })
    return true
  })
  const node = await Node.start()
  const job = await node.importBt(pinned(share, { webseeds: [plain.url], peers: [seeder.address, ...peers] }))
  expect(job).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
  expect(webseedBytes).toBeGreaterThan(0)
  for (const bytes of await uploaded()) expect(bytes).toBeGreaterThan(0)
})

test('a fetched artifact is seeded at once: a third node gets it from the second', async () => {
  const { share } = await publisher()
  const second = await Node.start({ swarm: { seed_on_import: false } })
  expect(await second.importBt(pinned(share))).toMatchObject({ state: 'done' })
  const again = await second.share(share.manifestDigest)
  expect(again).toMatchObject({ announced: true, infohash: share.infohash })
  const third = await Node.start()
  expect(await third.importBt(pinned(again))).toMatchObject({ state: 'done' })
  await third.expectWhole(share.manifestDigest)
  // no index is made: the artifact has its pin and no name (spec route.21)
  expect((await third.client.models()).namespaces).toEqual([])
  expect((await third.client.resolve(refOf(share.manifestDigest))).manifestDigest).toBe(share.manifestDigest)
})

test('two simultaneous imports of one pin, and a later one, fetch its bytes once', async () => {
  const { share, content } = await publisher()
  const plain = await startWebseed(content)
  const node = await Node.start()
  const body = pinned(share, { webseeds: [plain.url], peers: [] })
  const jobs = await Promise.all([node.importBt(body), node.importBt(body), node.importBt(body)])
  for (const job of jobs) expect(job).toMatchObject({ state: 'done', result: { manifests: [share.manifestDigest] } })
  expect(await node.importBt(body)).toMatchObject({ state: 'done' })
  expect(plain.fileBytes).toBeLessThan(1.2 * jobs[0]!.bytesTotal!)
  await node.expectWhole(share.manifestDigest)
})

test('two artifacts with the same blobs under swapped names are fetched at the same time', async () => {
  const source = await Node.start()
  const [a, b] = [weights(2 * MIB, 11), weights(3 * MIB, 12)]
  const one = await source.publish({ 'a-q8_0.gguf': a, 'b-q8_0.gguf': b }, 'me/one')
  const two = await source.publish({ 'a-q8_0.gguf': b, 'b-q8_0.gguf': a }, 'me/two')
  const node = await Node.start()
  const jobs = await Promise.all([node.importBt(pinned(one)), node.importBt(pinned(two))])
  for (const job of jobs) expect(job).toMatchObject({ state: 'done' })
  await node.expectSound()
})
