import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { isPublicAddress, parseCompact, tryParseAddress } from '@svc/internal-net'
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

test.each([
  ['8.8.8.8', true],
  ['127.0.0.1', false],
  ['10.1.2.3', false],
  ['172.16.0.1', false],
  ['172.32.0.1', true],
  ['192.168.1.1', false],
  ['169.254.169.254', false],
  ['100.64.0.1', false],
  ['0.0.0.0', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::1', false],
  ['::', false],
  ['fe80::1', false],
  ['fd00::1', false],
  ['2606:4700::1111', true],
  ['::ffff:127.0.0.1', false],
  ['::ffff:8.8.8.8', true],
  ['::ffff:7f00:1', false],
  ['64:ff9b::7f00:1', false],
  ['example.org', false]
])('%s may be contacted on the word of a stranger: %s', (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected)
})

test('addresses are read strictly', () => {
  expect(tryParseAddress('1.2.3.4:80')).toEqual({ host: '1.2.3.4', port: 80 })
  expect(tryParseAddress('[::1]:80')).toEqual({ host: '::1', port: 80 })
  for (const bad of ['1.2.3.4', '1.2.3.4:0', '1.2.3.4:65536', ':80', 'a b:80', '::1:80', ''])
    expect(tryParseAddress(bad)).toBeUndefined()
  expect(parseCompact(new Uint8Array([1, 2, 3, 4, 0, 80, 9, 9, 9, 9, 0, 0, 7]), 4)).toEqual([
    { host: '1.2.3.4', port: 80 }
  ])
})
