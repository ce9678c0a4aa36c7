import type { ShareResult } from '@svc/client/protocol'
import { createSwarm } from '@svc/swarm'
import { haveLibtorrent, Libtorrent } from '@svc/testkit/libtorrent'
import { startTracker } from '@svc/testkit/tracker'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { contentOf, documentsOnly, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, Node, type NodeOptions, pinned, weights } from './nodes.ts'

const FILES = { 'model-q8_0.gguf': weights(2 * MIB + 3, 41) }

/** A fetch that names no peer: who has the bytes is found by `swarm`. */
async function importWithoutPeers(
  share: ShareResult,
  swarm: NodeOptions['swarm'],
  trackers: string[] = []
): Promise<Node> {
  const documents = await startWebseed(await contentOf(share), documentsOnly)
  const node = await Node.start(swarm && { swarm })
  const job = await node.importBt(pinned(share, { webseeds: [documents.url], peers: [], trackers }))
  expect(job).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
  return node
}

async function tracker() {
  const started = await startTracker()
  onTestFinished(() => started.close())
  return started
}

async function dhtNode(bootstrap: readonly string[]): Promise<number> {
  const node = await createSwarm({ peerAddress: false, dht: { bootstrap, host: '127.0.0.1' } })
  onTestFinished(() => node.close())
  return node.dhtPort!
}

test.each(['http', 'udp'] as const)('a tracker of the configuration, by %s', async (scheme) => {
  const { [scheme]: url } = await tracker()
  const seeder = await Node.start({ swarm: { trackers: [url] } })
  const share = await seeder.publish(FILES)
  expect(share.trackers).toEqual([url])
  expect(share.magnet).toContain(`tr=${encodeURIComponent(url)}`)
  await importWithoutPeers(share, { trackers: [url] })
})

test('a tracker that the request names, which is kept for later', async () => {
  const { http } = await tracker()
  const seeder = await Node.start({ swarm: { trackers: [http] } })
  const share = await seeder.publish(FILES)
  const node = await importWithoutPeers(share, {}, [http])
  expect((await node.share(share.manifestDigest)).trackers).toEqual([http])
})

test('a local DHT of several nodes', async () => {
  const first = await dhtNode([])
  const bootstrap = [`127.0.0.1:${first}`]
  for (let i = 0; i < 3; i++) await dhtNode(bootstrap)
  const seeder = await Node.start({ swarm: { dht: true, dht_bootstrap: bootstrap } })
  const share = await seeder.publish(FILES)
  await importWithoutPeers(share, { dht: true, dht_bootstrap: bootstrap })
})

test.skipIf(!haveLibtorrent)(
  'libtorrent finds the daemon in the DHT by the magnet, so the v2 infohash is truncated as BEP 52 says',
  async () => {
    const first = await dhtNode([])
    const bootstrap = [`127.0.0.1:${first}`]
    const seeder = await Node.start({ swarm: { dht: true, dht_bootstrap: bootstrap } })
    const share = await seeder.publish(FILES)
    const session = await Libtorrent.start({
      enable_dht: true,
      dht_restrict_routing_ips: false,
      dht_restrict_search_ips: false,
      dht_ignore_dark_internet: false
    })
    onTestFinished(() => session.stop())
    await session.addDhtNode(first)
    await session.add({ magnet: share.magnet.replace(/&(ws|x\.pe)=[^&]*/g, ''), save: temporaryFolder() })
    await session.until(({ seeding }) => seeding)
  }
)

test('peer exchange: a node that knows one peer learns of the other', async () => {
  // PEX goes with the DHT; that one finds nobody here
  const swarm = { dht: true, dht_bootstrap: ['127.0.0.1:9'] }
  const seeder = await Node.start({ swarm: { ...swarm, upload_limit: MIB / 4 } })
  const share = await seeder.publish(FILES)
  const documents = await startWebseed(await contentOf(share), documentsOnly)
  const between = await Node.start({ swarm })
  const third = await Node.start({ swarm })
  const jobs = [await between.client.importBt(pinned(share, { webseeds: [documents.url] }))]
  await eventually(async () => ((await seeder.client.status()).swarm.peers === 1 ? true : undefined))
  const { peer } = await between.addresses()
  jobs.push(await third.client.importBt(pinned(share, { webseeds: [documents.url], peers: [peer] })))
  await eventually(async () => ((await seeder.client.status()).swarm.peers === 2 ? true : undefined))
  expect(await between.done(jobs[0]!)).toMatchObject({ state: 'done' })
  expect(await third.done(jobs[1]!)).toMatchObject({ state: 'done' })
})
