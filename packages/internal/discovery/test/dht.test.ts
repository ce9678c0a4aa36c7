import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type BencodeDictionary, decodeBencode, encodeBencode } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, onTestFinished, test } from 'vitest'
import { DhtNode } from '../src/dht.ts'

const HASH = Buffer.alloc(20, 9)
const ID = Buffer.alloc(20, 7)

test('lookups of a torrent without peers start after 2 s and back off to 15 minutes', async () => {
  const clock = new VirtualClock()
  // the whole DHT: a node that knows nobody.
  const other = createSocket('udp4')
  let lookups = 0
  other.on('message', (bytes, { port, address }) => {
    const message = decodeBencode(bytes) as BencodeDictionary
    if (Buffer.from(message.get('y') as Uint8Array).toString() !== 'q') return
    if (Buffer.from(message.get('q') as Uint8Array).toString() === 'get_peers') lookups += 1
    const r = { id: ID, nodes: new Uint8Array(), token: Buffer.from('x') }
    other.send(encodeBencode({ t: message.get('t'), y: 'r', r } as never), port, address)
  })
  other.bind(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const node = await DhtNode.start({ bootstrap: [`127.0.0.1:${other.address().port}`], host: '127.0.0.1' }, clock)
  onTestFinished(() => node.close())
  node.join(HASH.toString('hex'), undefined, () => expect.unreachable())
  for (const seconds of [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]) {
    // the lookup has ended
    await until(() => clock.pending === 1)
    const before = lookups
    await clock.advance(seconds * 1_000 - 1)
    expect([lookups, clock.pending]).toEqual([before, 1])
    await clock.advance(1)
    await until(() => lookups > before)
  }
})

/** A whole DHT of one node, which knows these peers of everything. */
async function dhtOf(...peers: readonly (readonly number[])[]): Promise<number> {
  const other = createSocket('udp4')
  other.on('message', (bytes, { port, address }) => {
    const message = decodeBencode(bytes) as BencodeDictionary
    if (Buffer.from(message.get('y') as Uint8Array).toString() !== 'q') return
    const values = peers.map((peer) => Buffer.from(peer))
    const r = { id: ID, nodes: new Uint8Array(), token: Buffer.from('x'), values }
    other.send(encodeBencode({ t: message.get('t'), y: 'r', r } as never), port, address)
  })
  other.bind(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  return other.address().port
}

test.each([
  // entered by a name, as the public one is
  ['localhost', [['8.8.8.8', false]]],
  [
    '127.0.0.1',
    [
      ['10.0.0.1', true],
      ['127.0.0.1', true],
      ['8.8.8.8', true]
    ]
  ]
])('a DHT entered through %s names %j', async (host, expected) => {
  const port = await dhtOf([10, 0, 0, 1, 0, 80], [127, 0, 0, 1, 0, 80], [8, 8, 8, 8, 0, 80])
  const node = await DhtNode.start({ bootstrap: [`${host}:${port}`], host: '127.0.0.1' })
  onTestFinished(() => node.close())
  const found = new Map<string, boolean>()
  const named = Promise.withResolvers<void>()
  node.join(HASH.toString('hex'), undefined, (peer, allowPrivate) => {
    found.set(peer.host, allowPrivate)
    if (peer.host === '8.8.8.8') named.resolve()
  })
  // the last one that the node names
  await named.promise
  expect([...found].sort()).toEqual([...expected].sort())
})
