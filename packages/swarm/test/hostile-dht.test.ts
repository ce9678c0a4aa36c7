import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { DhtOptions } from '@svc/internal-discovery'
import { encodeBencode } from '@svc/metainfo'
import { mutateBencode, randomFrom } from '@svc/testkit/mutate'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Engines } from './engines.ts'

let engines: Engines
let stranger: Socket
const faults: string[] = []
beforeEach(async () => {
  engines = new Engines()
  faults.length = 0
  stranger = createSocket('udp4')
  stranger.bind(0, '127.0.0.1')
  await once(stranger, 'listening')
})
afterEach(async () => {
  stranger.close()
  await engines.close()
})

const onFault = ({ error }: { readonly error: Error }): void => void faults.push(String(error.stack))
const ID = Buffer.alloc(20, 7)
const HASH = Buffer.alloc(20, 9)

const query = (q: string, a: object): Uint8Array => encodeBencode({ t: 'aa', y: 'q', q, a: { id: ID, ...a } } as never)

let pings = 0
/** Resolves when the node answers this ping: it has handled everything that came before. */
async function ping(port: number): Promise<void> {
  const t = `p${String((pings += 1)).padStart(5, '0')}`
  const message = encodeBencode({ t, y: 'q', q: 'ping', a: { id: ID } })
  const send = (): void => stranger.send(message, port, '127.0.0.1')
  const answered = new Promise<void>((resolve) => {
    const listener = (bytes: Buffer): void => {
      if (!bytes.includes(`1:t6:${t}1:y1:r`)) return
      stranger.off('message', listener)
      resolve()
    }
    stranger.on('message', listener)
  })
  send()
  // a full receive buffer drops datagrams silently.
  const timer = setInterval(send, 100)
  await answered
  clearInterval(timer)
}

const node = async (
  bootstrap: readonly string[] = [],
  limits: NonNullable<DhtOptions['limits']> = {}
): Promise<number> => (await engines.open({ dht: { bootstrap, host: '127.0.0.1', limits }, onFault })).dhtPort!
/** For tests of the library behind the checks. */
const UNLIMITED = { perAddress: 1_000_000, total: 1_000_000 }

test.each([
  ['find_node with an integer target', query('find_node', { target: 5 })],
  ['find_node with a list as target', query('find_node', { target: [1] })],
  ['find_node with a short target', query('find_node', { target: 'x' })],
  ['get with an integer target', query('get', { target: 5 })],
  ['get_peers with an integer infohash', query('get_peers', { info_hash: 5 })],
  ['get_peers with a list as infohash', query('get_peers', { info_hash: [HASH] })],
  ['get_peers with a dictionary as infohash', query('get_peers', { info_hash: { a: 1 } })],
  ['announce_peer with a list as token', query('announce_peer', { info_hash: HASH, token: [1], port: 5 })],
  ['announce_peer with a huge port', query('announce_peer', { info_hash: HASH, token: 'x', port: 70_000 })],
  ['put of an integer key', query('put', { token: 'x', k: 5, v: 1, seq: 1, sig: 2 })],
  ['an integer as the sender', encodeBencode({ t: 'aa', y: 'q', q: 'ping', a: { id: 5 } })],
  ['a prototype', encodeBencode({ t: 'aa', y: 'q', q: 'find_node', a: { id: ID, __proto__x: 1 } })],
  ['a response with an integer id', encodeBencode({ t: '\0\x01', y: 'r', r: { id: 5, nodes: 5, values: 5 } })],
  ['an error that is not a list', encodeBencode({ t: '\0\x01', y: 'e', e: 5 })],
  ['deep nesting', Buffer.from('l'.repeat(60_000))]
])('a DHT message does not crash anything: %s', async (_, message) => {
  const port = await node()
  stranger.send(message, port, '127.0.0.1')
  await ping(port)
  expect(faults).toEqual([])
})

test.each([
  ['an integer id', { id: 5 }],
  ['a list as nodes', { id: ID, nodes: [1] }],
  ['nodes cut short', { id: ID, nodes: Buffer.alloc(27) }],
  ['an integer in values', { id: ID, token: 'x', values: [5] }],
  ['a dictionary as token', { id: ID, token: { a: 1 } }]
])('a bootstrap node that answers with %s does not crash anything', async (_, r) => {
  const asked = Promise.withResolvers<void>()
  stranger.on('message', (bytes: Buffer, { port }) => {
    const at = bytes.indexOf('1:t2:')
    if (!bytes.includes('1:y1:q')) return
    stranger.send(encodeBencode({ t: bytes.subarray(at + 5, at + 7), y: 'r', r } as never), port, '127.0.0.1')
    asked.resolve()
  })
  const port = await node([`127.0.0.1:${stranger.address().port}`])
  await asked.promise
  await ping(port)
  expect(faults).toEqual([])
})

test('10,000 mutated messages leave the node answering', async () => {
  const port = await node([], UNLIMITED)
  const templates = [
    query('ping', {}),
    query('find_node', { target: HASH }),
    query('get_peers', { info_hash: HASH }),
    query('announce_peer', { info_hash: HASH, token: 'abcdefgh', port: 6881, implied_port: 1 }),
    query('get', { target: HASH }),
    query('put', { token: 'x', v: 'value', k: Buffer.alloc(32), sig: Buffer.alloc(64), seq: 1, salt: 's' }),
    encodeBencode({
      t: '\0\x01',
      y: 'r',
      r: { id: ID, nodes: Buffer.alloc(52, 1), token: 'x', values: [Buffer.alloc(6, 1)] }
    }),
    encodeBencode({ t: '\0\x01', y: 'e', e: [201, 'x'] })
  ]
  const random = randomFrom(12_345)
  for (let count = 0; count < 10_000; count++) {
    const bytes = mutateBencode(random, templates[random(templates.length)]!)
    stranger.send(bytes, port, '127.0.0.1')
    // no faster than the node reads them: a full buffer would drop most.
    if (count % 50 === 49) await ping(port)
  }
  await ping(port)
  expect(faults).toEqual([])
})
