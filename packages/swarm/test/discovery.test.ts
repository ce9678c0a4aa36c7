import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type BencodeDictionary, decodeBencode, encodeBencode, toHex, truncateInfohash } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import DHT from 'bittorrent-dht'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { formatExtended, MESSAGE } from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { dialRaw } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 300_000, b: 5 }, 65_536)
})
afterEach(() => engines.close())

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

test('a third engine is found only by peer exchange', async () => {
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
  await until(() => idle.peers().length > 0)
  const folder = await fixture.target('leech')
  const torrent = (await engines.open()).add({
    info: fixture.info,
    storage: createFileStorage(folder),
    peers: [`127.0.0.1:${middle.port}`]
  })
  await torrent.completed()
  await expectFiles(fixture, folder)
})

test('a private torrent is not looked up in the DHT, and its peers are not told of each other', async () => {
  const secret = await engines.torrent({ c: 70_000 }, 65_536, { name: 'secret', private: true })
  const asked = new Set<string>()
  const other = createSocket('udp4')
  const lookedUp = new Promise<void>((resolve) => {
    other.on('message', (bytes) => {
      const fields = (decodeBencode(bytes) as BencodeDictionary).get('a') as BencodeDictionary | undefined
      const infohash = fields?.get('info_hash') as Uint8Array | undefined
      if (infohash !== undefined) asked.add(toHex(infohash))
      if (asked.has(toHex(truncateInfohash(fixture.info.infohash)))) resolve()
    })
  })
  other.bind(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const swarm = await engines.open({ dht: { bootstrap: [`127.0.0.1:${other.address().port}`], host: '127.0.0.1' } })
  const offered: boolean[] = []
  // the private one first, so that it would be looked up first
  for (const { info, layers, folder, ...rest } of [secret, fixture]) {
    engines.watch(
      swarm.add({ info, pieceLayers: layers, storage: createFileStorage(folder, { trusted: true }), seedOnly: true })
    )
    const peer = await dialRaw(swarm.port!, { info, layers, folder, ...rest })
    peer.send(formatExtended(0, encodeBencode({ m: { ut_pex: 5 } })))
    offered.push(Buffer.from(await peer.next(MESSAGE.extended)).includes('ut_pex'))
    peer.socket.destroy()
  }
  expect(offered).toEqual([false, true])
  await lookedUp
  expect([...asked]).toEqual([toHex(truncateInfohash(fixture.info.infohash))])
})
