// Peers that send thousands of small messages at once: what they can make the engine do in one turn of its event loop.
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { encodeBencode, truncateInfohash } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { WireDecoder } from '../src/wire/decoder.ts'
import { formatHandshake, HANDSHAKE_BYTES } from '../src/wire/handshake.ts'
import { formatBitfield, formatExtended, formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, MARK } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

const FLOOD = 20_000
const PIECES = 256
const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: PIECES * 16_384 }, 16_384)
})
afterEach(() => engines.close())

const times = (count: number, ...messages: Uint8Array[]): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => Buffer.concat(messages)))

/** A peer without the fast extension: its choke cancels all requests to it. Counts the messages that it gets. */
async function plainPeer(port: number): Promise<{ readonly socket: Socket; readonly count: (id: number) => number }> {
  const socket = connect(port, '127.0.0.1')
  engines.before(() => socket.destroy())
  socket.on('error', () => undefined)
  const infohash = truncateInfohash(fixture.info.infohash)
  socket.write(formatHandshake({ infohash, peerId: randomBytes(20), extended: false, fast: false }))
  const counts = new Map<number, number>()
  const countOne = (id: number): void => void counts.set(id, (counts.get(id) ?? 0) + 1)
  const decoder = new WireDecoder({
    admits: () => true,
    message: countOne,
    requested: () => countOne(MESSAGE.request),
    blockStart: () => undefined,
    blockData: () => undefined,
    blockEnd: () => undefined
  })
  let toSkip = HANDSHAKE_BYTES
  await new Promise<void>((resolve) =>
    socket.on('data', (bytes: Buffer) => {
      const skipped = Math.min(toSkip, bytes.length)
      toSkip -= skipped
      decoder.push(bytes.subarray(skipped))
      if (toSkip === 0) resolve()
    })
  )
  return { socket, count: (id) => counts.get(id) ?? 0 }
}

test('a peer that changes its interest constantly is handled once per turn, with its last state', async () => {
  const { swarm } = await engines.seed(fixture)
  const { socket, count } = await plainPeer(swarm.port!)
  const [interested, not] = [formatSimple(MESSAGE.interested), formatSimple(MESSAGE.notInterested)]
  socket.write(Buffer.concat([times(FLOOD, interested, not), interested, MARK]))
  await until(() => count(MESSAGE.hashReject) === 1)
  await until(() => count(MESSAGE.unchoke) === count(MESSAGE.choke) + 1)
  expect(count(MESSAGE.unchoke)).toBeLessThan(FLOOD / 20)
  socket.write(Buffer.concat([times(FLOOD, not, interested), not, MARK]))
  await until(() => count(MESSAGE.hashReject) === 2)
  await until(() => count(MESSAGE.unchoke) === count(MESSAGE.choke))
  expect(count(MESSAGE.unchoke)).toBeLessThan(FLOOD / 20)
})

test('a peer that chokes and unchokes constantly is asked once per turn', async () => {
  const swarm = await engines.open()
  const storage = createFileStorage(await fixture.target('leech'))
  engines.watch(swarm.add({ info: fixture.info, pieceLayers: fixture.layers, storage }))
  const { socket, count } = await plainPeer(swarm.port!)
  const [choke, unchoke] = [formatSimple(MESSAGE.choke), formatSimple(MESSAGE.unchoke)]
  socket.write(formatBitfield(new Uint8Array(PIECES / 8).fill(0xff)))
  await until(() => count(MESSAGE.interested) === 1)
  socket.write(Buffer.concat([times(FLOOD, unchoke, choke), unchoke, MARK]))
  await until(() => count(MESSAGE.hashReject) === 1 && count(MESSAGE.request) > 0)
  expect(count(MESSAGE.request)).toBeLessThan(FLOOD / 2)
})

test('a peer that sends endless handshakes is closed', async () => {
  const { swarm } = await engines.seed(fixture)
  const greeting = formatExtended(0, encodeBencode({ m: { ut_metadata: 1, ut_pex: 2 } }))
  const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(times(100, greeting)) })
  await peer.next(MESSAGE.extended)
  expect(peer.socket.destroyed).toBe(false)
  peer.send(greeting)
  await peer.closed
})

test('encryption handshakes are limited per host and second, as each costs a millisecond', async () => {
  const { swarm } = await engines.seed(fixture, { clock: new VirtualClock() })
  const answered = (host: string, count: number): Promise<boolean>[] =>
    Array.from({ length: count }, async () => {
      const socket = connect({ port: swarm.port!, host: '127.0.0.1', localAddress: host })
      engines.before(() => socket.destroy())
      socket.on('error', () => undefined)
      // a public key: no handshake begins like this
      socket.write(Buffer.alloc(96, 7))
      return new Promise((resolve) => {
        socket.once('data', () => resolve(true))
        socket.once('close', () => resolve(false))
      })
    })
  const flood = await Promise.all(answered('127.0.0.1', 60))
  expect(flood.filter(Boolean)).toHaveLength(20)
  expect(await Promise.all(answered('127.0.0.2', 5))).toEqual([true, true, true, true, true])
  // a peer without encryption is not held up
  await plainPeer(swarm.port!)
})
