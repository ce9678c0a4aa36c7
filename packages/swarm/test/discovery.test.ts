import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import DHT from 'bittorrent-dht'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { Engines, expectFiles } from './engines.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

let engines: Engines
let fixture: Fixture
beforeEach(async () => {
  engines = new Engines()
  fixture = await makeTorrent({ a: 300_000, b: 5 }, 65_536)
})
afterEach(async () => {
  await engines.close()
  await fixture.remove()
})

test('two engines find each other through a local DHT of several nodes, by the truncated v2 infohash', async () => {
  const nodes: InstanceType<typeof DHT>[] = []
  const first = new DHT({ bootstrap: false })
  await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve))
  nodes.push(first)
  const bootstrap = [`127.0.0.1:${first.address().port}`]
  for (let index = 0; index < 4; index += 1) {
    const node = new DHT({ bootstrap })
    await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))
    nodes.push(node)
  }
  try {
    const dht = { bootstrap, host: '127.0.0.1' }
    await engines.seed(fixture, { dht })
    const folder = await fixture.target('leech')
    const torrent = (await engines.open({ dht })).add({
      infohash: fixture.info.infohash,
      storage: createFileStorage(folder)
    })
    await torrent.completed()
    await expectFiles(fixture, folder)
  } finally {
    await engines.close()
    await Promise.all(nodes.map((node) => new Promise<void>((resolve) => node.destroy(resolve))))
  }
})

test('a third engine is found by peer exchange alone', async () => {
  const { address } = await engines.seed(fixture)
  const middle = await engines.open()
  const idle = middle.add({
    info: fixture.info,
    storage: createFileStorage(await fixture.target('middle')),
    peers: [address],
    upload: false
  })
  idle.priority(0, 0)
  idle.priority(1, 0)
  while (idle.peers().length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  const folder = await fixture.target('leech')
  const torrent = (await engines.open()).add({
    info: fixture.info,
    storage: createFileStorage(folder),
    peers: [`127.0.0.1:${middle.port}`]
  })
  await torrent.completed()
  await expectFiles(fixture, folder)
})

test.each(['i4000000e', 'i-5e'])(
  'a tracker that asks for an announce every %s seconds is not flooded',
  async (interval) => {
    let announces = 0
    const server = createServer((_request, response) => {
      announces += 1
      response.end(`d8:interval${interval}5:peers0:e`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      const tracker = `http://127.0.0.1:${(server.address() as AddressInfo).port}/announce`
      const torrent = (await engines.open()).add({
        info: fixture.info,
        storage: createFileStorage(await fixture.target('leech')),
        trackers: [tracker]
      })
      while (announces === 0) await delay(10)
      // A timer gone wild announces hundreds of times by then.
      await delay(300)
      expect(announces).toBe(1)
      await torrent.remove()
    } finally {
      server.closeAllConnections()
      server.close()
    }
  }
)
