import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type BencodeDictionary, decodeBencode, type Encodable, encodeBencode } from '@svc/metainfo'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { DhtNode } from '../src/dht.ts'

const ID = Buffer.alloc(20, 7)
const HASH = Buffer.alloc(20, 9)
const UNKNOWN = Buffer.alloc(20, 5)
const PEERS = 240

let socket: Socket
let node: DhtNode

beforeEach(async () => {
  socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  node = await DhtNode.start({
    bootstrap: [],
    host: '127.0.0.1',
    limits: { perAddress: 1_000_000, total: 1_000_000 }
  })
  onTestFinished(() => node.close())
})

async function ask(request: Uint8Array): Promise<Buffer> {
  const answered = once(socket, 'message')
  socket.send(request, node.port, '127.0.0.1')
  const [answer] = (await answered) as [Buffer]
  return answer
}

const query = (q: string, a: Readonly<Record<string, Encodable>>, more: Readonly<Record<string, Encodable>> = {}) =>
  encodeBencode({ t: 'aa', y: 'q', q, a: { id: ID, ...a }, ...more })
const resultOf = (answer: Uint8Array): BencodeDictionary =>
  (decodeBencode(answer) as BencodeDictionary).get('r') as BencodeDictionary

/** Fills the node's table, and has it know many peers of {@link HASH}. */
async function fill(): Promise<void> {
  for (let index = 0; index < 40; index++)
    await ask(encodeBencode({ t: 'aa', y: 'q', q: 'ping', a: { id: Buffer.alloc(20, index * 6 + 1) } }))
  const token = resultOf(await ask(query('get_peers', { info_hash: HASH }))).get('token') as Uint8Array
  for (let port = 1; port <= PEERS; port++) await ask(query('announce_peer', { info_hash: HASH, token, port }))
}

test('every answer stays below three times its query, and is still useful (spec swarm.19)', async () => {
  await fill()
  const requests: readonly (readonly [name: string, request: Uint8Array])[] = [
    ['ping', query('ping', {})],
    ['find_node', query('find_node', { target: HASH })],
    ['get_peers of what has peers', query('get_peers', { info_hash: HASH })],
    ['get_peers of what has none', query('get_peers', { info_hash: UNKNOWN })],
    ['announce_peer without a token', query('announce_peer', { info_hash: HASH, token: 'x', port: 1 })],
    ['get_peers of 600 bytes', query('get_peers', { info_hash: HASH }, { x: 'x'.repeat(500) })]
  ]
  const shown: Record<string, unknown> = {}
  for (const [name, request] of requests) {
    const answer = await ask(request)
    expect(answer.length, name).toBeLessThan(3 * request.length)
    const result = resultOf(answer)
    if (result === undefined) continue
    const values = result.get('values') as readonly unknown[] | undefined
    const nodes = result.get('nodes') as Uint8Array | undefined
    shown[name] = { values: values?.length, nodes: nodes && nodes.length / 26 }
  }
  expect(shown).toEqual({
    ping: {},
    find_node: { nodes: 8 },
    'get_peers of what has peers': { values: 24 },
    'get_peers of what has none': { nodes: 7 },
    'get_peers of 600 bytes': { values: 25 }
  })
})

test('a lookup finds announced peers', async () => {
  const found = new Set<number>()
  const token = resultOf(await ask(query('get_peers', { info_hash: HASH }))).get('token') as Uint8Array
  for (let port = 1; port <= 20; port++) await ask(query('announce_peer', { info_hash: HASH, token, port }))
  const all = Promise.withResolvers<void>()
  const other = await DhtNode.start({ bootstrap: [`127.0.0.1:${node.port}`], host: '127.0.0.1' })
  onTestFinished(() => other.close())
  other.join(HASH.toString('hex'), undefined, ({ port }) => {
    found.add(port)
    if (found.size === 20) all.resolve()
  })
  await all.promise
})
