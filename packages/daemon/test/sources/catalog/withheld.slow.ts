// The BitTorrent v1 swarm of what came from the catalog: it is a door like the others (spec add.37).
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Client } from '@svc/client'
import { digestFromHex } from '@svc/ref'
import { haveLibtorrent } from '@svc/testkit/v1-peer'
import { describe, expect, test } from 'vitest'
import { signerIn } from '../../support/signed-models.ts'
import {
  catalog,
  cleanups,
  finished,
  folder,
  freshSources,
  GGUF,
  hub,
  line,
  listed,
  peer,
  portOf,
  pull,
  REPO,
  sha256,
  start,
  weights
} from './catalog-fixture.ts'

freshSources()

const REF = `svc:///${REPO.toLowerCase()}:q8_0`

const infohashes = async (client: Client): Promise<readonly string[]> =>
  ((await client.status()).catalog?.torrents ?? []).map(({ infohash }) => infohash)

describe.skipIf(!haveLibtorrent)('with a libtorrent seeder', () => {
  test('a model made private leaves, stays out after a restart, and returns when it is shared again', async () => {
    const { seed } = await listed({ [GGUF]: weights(70_000) })
    const { client, daemon, root } = await start()
    await pull(client, { peers: [seed.address] })
    await portOf(client, seed.infohash)
    await client.setPrivate({ ref: REF, private: true })
    expect(await infohashes(client)).toEqual([])
    await daemon.close()
    const again = await start({ root })
    expect(await infohashes(again.client)).toEqual([])
    await again.client.setPrivate({ ref: REF, private: false })
    await portOf(again.client, seed.infohash)
  })

  test('a private import does not join, and removes what had joined', async () => {
    const { seed } = await listed({ [GGUF]: weights(70_000) })
    const { client } = await start()
    await pull(client, { peers: [seed.address] })
    await portOf(client, seed.infohash)
    expect((await pull(client, { peers: [seed.address], private: true })).state).toBe('done')
    expect(await infohashes(client)).toEqual([])
  })

  test.each(['hub', 'pin'] as const)(
    'bytes that a private import brings again by another source (%s) leave the swarm',
    async (road) => {
      const { seed } = await listed({ [GGUF]: weights(70_000) })
      const { client } = await start()
      const { result } = await pull(client, { peers: [seed.address] })
      await portOf(client, seed.infohash)
      const { infohash, manifestDigest } = await client.share(REF)
      const pinned = { infohash, manifestDigest, webseeds: ['http://127.0.0.1:9/'] }
      const again = await (road === 'hub'
        ? client.importHf({ repo: REPO, private: true })
        : client.importBt({ ...pinned, private: true }))
      expect(await finished(client, again)).toMatchObject({ state: 'done', result: { manifests: result!.manifests } })
      await expect.poll(() => infohashes(client)).toEqual([])
    }
  )

  test("leftover bytes of another repository's interrupted import do not count as the catalog's", async () => {
    const { seed, files } = await listed({ [GGUF]: weights(300_000) })
    const { client, daemon, store } = await start()
    const content = files.get(GGUF)!
    const digest = digestFromHex(sha256(content))
    await daemon.context.holdings.arrivals.begin(digest, 'hf:other/model', { isEmpty: true })
    const partial = await store.partial({ key: digest, sizeBytes: content.length, digest })
    await partial.write(0, content.subarray(0, 65_536))
    await partial.release()
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    expect(await client.why(REF)).toMatchObject({ unproven: [GGUF] })
    expect(await infohashes(client)).toEqual([])
  })

  test.each([
    'nobody keeps',
    'is imported as private',
    'needs a signature',
    'has bytes of what its owner keeps'
  ] as const)('while a torrent that %s arrives, its peers get only shared files', async (which) => {
    const source = await folder()
    const files = { [GGUF]: weights(300_000), 'README.md': Buffer.alloc(600_000, 'a') }
    await mkdir(join(source, 'model'))
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(source, 'model', name), bytes)
    const commit = hub.commit({
      id: REPO,
      files: Object.entries(files).map(([path, content]) => ({ path, content, lfs: path === GGUF }))
    })
    const options = { folder: source, name: 'model', piece_length: 65_536 }
    const seed = await peer({ mode: 'seed', ...options, upload_limit: 300_000 })
    catalog.list([line(seed.infohash, GGUF, commit)])
    const leecher = await peer({ mode: 'leech', folder: await folder(), torrent: seed.torrent, peers: [] })
    const trust = [{ names: ['*/model-gguf'], mode: 'require', keys: [signerIn(await folder()).keyFile] }]
    const { client } = await start(which === 'needs a signature' ? { file: { trust } } : {})
    if (which === 'has bytes of what its owner keeps') {
      const paths = [join(source, 'model', GGUF)]
      await finished(client, await client.importLocal({ paths, as: 'me/own', private: true }))
    }
    const peers = [seed.address, leecher.address]
    const job = await pull(client, { peers, private: which === 'is imported as private' })
    expect(job.state).toBe(which === 'needs a signature' ? 'failed' : 'done')
    const { downloaded } = await leecher.until(() => true)
    expect(downloaded > 0).toBe(which === 'nobody keeps')
  })
})

/** A tracker and a node of the DHT on loopback that answer nothing. @returns what was asked of them about the torrent */
async function listeners(infohash: string) {
  const heard: string[] = []
  const server = createServer((_request, response) => {
    heard.push('tracker')
    response.end('d8:intervali60e5:peers0:e')
  })
  server.listen(0, '127.0.0.1')
  const node = createSocket('udp4').bind(0, '127.0.0.1')
  node.on('message', (packet) => {
    if (packet.includes(Buffer.from(infohash, 'hex'))) heard.push('dht')
  })
  await Promise.all([once(server, 'listening'), once(node, 'listening')])
  cleanups.push(async () => void (server.close(), server.closeAllConnections(), node.close()))
  const tracker = `http://127.0.0.1:${(server.address() as AddressInfo).port}/announce`
  return { heard, tracker, node: `127.0.0.1:${node.address().port}` }
}

test('a private import is not announced to the listing’s trackers or the DHT', async () => {
  const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content: weights(70_000), lfs: true }] })
  const infohash = 'ab'.repeat(20)
  const { heard, tracker, node } = await listeners(infohash)
  const entry = line(infohash, GGUF, commit)
  catalog.list([{ ...entry, magnet: `${entry.magnet}&tr=${encodeURIComponent(tracker)}` }])
  const { client } = await start({ file: { swarm: { dht: true, dht_bootstrap: [node] } } })
  // the web gives it at once: nobody else may be asked
  expect((await pull(client, { private: true })).state).toBe('done')
  expect(heard).toEqual([])
  // one that is not private is heard of
  const job = await client.importCatalog({ repo: REPO, as: 'other/name' })
  await expect.poll(() => heard).toEqual(expect.arrayContaining(['tracker', 'dht']))
  await client.cancelJob(job.id)
})
