// Twice each budget that an engine with its defaults has for strangers (docs/budgets.md), except those that a faster test
// exceeds. Prints the results, for the table.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { encodeBencode } from '@svc/metainfo'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { parsePex } from '../src/wire/extensions.ts'
import { formatBlockRef, formatExtended, formatHashRange, formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, RawPeer } from './raw-peer.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

let engines: Engines
let fixture: Fixture
let sockets: Socket[]
beforeEach(async () => {
  engines = new Engines()
  sockets = []
  fixture = await makeTorrent({ a: 16_777_216 }, 65_536)
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await engines.close()
  await fixture.remove()
})

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const seen = (what: string): void => console.log(`twice the budget: ${what}`)
/** This many connections from each of several hosts of this machine. */
const hostOf = (index: number, each: number): string => `127.0.0.${2 + Math.floor(index / each)}`

async function connected(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  sockets.push(socket)
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  return socket
}

/** A peer that says nothing after its handshake but what `greet` says. */
async function peerFrom(
  port: number,
  localAddress: string,
  greet: (peer: RawPeer) => void = () => undefined
): Promise<RawPeer> {
  return new RawPeer(await connected(port, localAddress), fixture, { greet }, true)
}

/** The number of open connections once nothing changes any more. */
async function openOnes(all: readonly Socket[]): Promise<number> {
  for (let open = -1; ; ) {
    const now = all.filter((socket) => !socket.destroyed).length
    if (now === open) return now
    open = now
    await delay(300)
  }
}

test('of 1,000 connections from 20 hosts, 375 are accepted, and ours still finds a place', async () => {
  const swarm = await engines.open()
  const torrent = swarm.add({ info: fixture.info, storage: createFileStorage(await fixture.target('leech')) })
  const strangers = await Promise.all(Array.from({ length: 1_000 }, (_, i) => connected(swarm.port!, hostOf(i, 50))))
  const open = await openOnes(strangers)
  torrent.addPeer((await engines.seed(fixture)).address)
  await torrent.completed()
  seen(`${open} of 1,000 connections open; everything fetched from a peer that was dialled`)
  expect(open).toBeLessThanOrEqual(375)
})

test('of 128 connections from one host, 64 are accepted', async () => {
  const { swarm } = await engines.seed(fixture)
  const open = await openOnes(await Promise.all(Array.from({ length: 128 }, () => connected(swarm.port!, '127.0.0.2'))))
  seen(`${open} of 128 connections of one host open`)
  expect(open).toBe(64)
})

test('of 300 peers of one torrent, 200 stay', async () => {
  const { swarm, torrent } = await engines.seed(fixture)
  const peers = await Promise.all(Array.from({ length: 300 }, (_, i) => peerFrom(swarm.port!, hostOf(i, 50))))
  while (torrent.progress().peers < 200) await delay(10)
  await openOnes(peers.map(({ socket }) => socket))
  seen(`${torrent.progress().peers} of 300 peers of one torrent`)
  expect(torrent.progress().peers).toBe(200)
})

test('of 32 addresses that accept and stay silent, 16 are dialled', async () => {
  let most = 0
  const servers = await Promise.all(
    Array.from({ length: 32 }, async () => {
      const server = createServer((socket) => {
        sockets.push(socket)
        socket.on('error', () => undefined)
        most = Math.max(most, sockets.filter(({ destroyed }) => !destroyed).length)
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    })
  )
  const peers = servers.map((server) => `127.0.0.1:${(server.address() as { port: number }).port}`)
  const swarm = await engines.open()
  swarm.add({ info: fixture.info, storage: createFileStorage(await fixture.target('leech')), peers })
  while (most < 16) await delay(10)
  await delay(500)
  seen(`${most} of 32 addresses dialled at once`)
  expect(most).toBe(16)
  for (const server of servers) server.close()
})

test('a peer that says nothing for 150 s is cut, one that says something is not', async () => {
  const { swarm, torrent } = await engines.seed(fixture)
  const peer = await peerFrom(swarm.port!, '127.0.0.2')
  while (torrent.progress().peers < 1) await delay(5)
  // the engine's clock, ahead of its time
  const { tick } = swarm.get(fixture.info.infohash)! as unknown as { tick: (nowMs: number) => void }
  const at = (ms: number): void => tick.call(swarm.get(fixture.info.infohash), performance.now() + ms)
  at(149_000)
  expect(torrent.progress().peers).toBe(1)
  at(151_000)
  await peer.closed
  expect(torrent.progress().peers).toBe(0)
  seen('a silent peer is there after 149 s and gone after 151 s')
})

test('of 64 requesting peers, 32 are served at a time', async () => {
  const { swarm } = await engines.seed(fixture, { uploadLimit: 100_000 })
  const interested = (peer: RawPeer): void => {
    peer.send(formatSimple(MESSAGE.interested))
    for (let i = 0; i < 4; i++) peer.send(formatBlockRef(MESSAGE.request, i, 0, 16_384))
  }
  const peers = await Promise.all(
    Array.from({ length: 64 }, (_, i) => peerFrom(swarm.port!, hostOf(i, 50), interested))
  )
  const unchoked = (): number =>
    peers.filter(({ received }) => {
      const last = received.findLast(({ id }) => id === MESSAGE.choke || id === MESSAGE.unchoke)
      return last?.id === MESSAGE.unchoke
    }).length
  while (unchoked() < 32) await delay(10)
  await delay(1_000)
  seen(`${unchoked()} of 64 peers unchoked`)
  expect(unchoked()).toBe(32)
})

test('of 128 hash requests, those beyond the queue are rejected at once', async () => {
  const { swarm } = await engines.seed(fixture, { uploadLimit: 20_000 })
  const peer = await peerFrom(swarm.port!, '127.0.0.2')
  const root = fixture.info.files[0]!.piecesRoot!
  const range = { root, baseLayer: 0, index: 0, length: 512, proofLayers: 0 }
  for (let i = 0; i < 128; i++) peer.send(formatHashRange(MESSAGE.hashRequest, range))
  await peer.next(MESSAGE.hashReject)
  await delay(500)
  const rejected = 1 + peer.received.filter(({ id }) => id === MESSAGE.hashReject).length
  seen(`${rejected} of 128 hash requests rejected`)
  expect(rejected).toBeGreaterThanOrEqual(128 - 64 - 8)
  expect(rejected).toBeLessThanOrEqual(128 - 64)
})

test('40 messages of peer exchange in a row end the connection', async () => {
  const { torrent, swarm } = await engines.seed(fixture)
  const peer = await peerFrom(swarm.port!, '127.0.0.2', (opened) =>
    opened.send(formatExtended(0, encodeBencode({ m: { ut_pex: 5 } })))
  )
  const hello = Buffer.from(await peer.next(MESSAGE.extended)).toString('latin1')
  const id = Number(/ut_pexi(\d+)e/.exec(hello)![1])
  const added = Buffer.alloc(600)
  // on loopback, where nobody listens
  for (let i = 0; i < 100; i++) added.set([127, 0, 1, 1 + i, 0, 9], i * 6)
  for (let i = 0; i < 40; i++) peer.send(formatExtended(id, encodeBencode({ added, 'added.f': Buffer.alloc(100) })))
  await peer.closed
  const [warning] = engines.warningsOf(torrent)
  seen(`100 addresses in each of 40 messages: the connection is closed`)
  expect(warning?.kind).toBe('peer')
  expect(parsePex(encodeBencode({ added }))).toHaveLength(50)
})

test('of 400 uTP requests within a second, 200 are answered', async () => {
  const { swarm } = await engines.seed(fixture)
  const udp = createSocket('udp4').bind(0, '127.0.0.1')
  await once(udp, 'listening')
  const answers: number[] = []
  udp.on('message', () => answers.push(Math.floor(performance.now() / 1_000)))
  const syn = Buffer.alloc(20)
  syn[0] = 0x41
  // from the start of a second of the engine's clock, which is this process's
  await delay(1_000 - (performance.now() % 1_000))
  for (let i = 0; i < 400; i++) {
    udp.send(syn, swarm.port!, '127.0.0.1')
    if (i % 50 === 49) await delay(1)
  }
  await delay(300)
  udp.close()
  seen(`${answers.length} of 400 uTP requests answered`)
  expect(answers.length).toBeLessThanOrEqual(200 * new Set(answers).size)
  expect(answers.length).toBeGreaterThan(0)
})

test('with two files of unread answers, a peer is no longer read from, and others are served', async () => {
  const { swarm } = await engines.seed(fixture)
  const interested = (peer: RawPeer): void => peer.send(formatSimple(MESSAGE.interested))
  const deaf = await dialRaw(swarm.port!, fixture, { greet: interested })
  sockets.push(deaf.socket)
  await deaf.next(MESSAGE.unchoke)
  deaf.socket.pause()
  const before = process.memoryUsage()
  // 32 MiB of blocks: eight times what may be on its way to one socket
  for (let i = 0; i < 2_000; i++) deaf.send(formatBlockRef(MESSAGE.request, i % 256, 0, 16_384))
  const other = await peerFrom(swarm.port!, '127.0.0.3', interested)
  await other.next(MESSAGE.unchoke)
  const begun = performance.now()
  other.send(formatBlockRef(MESSAGE.request, 0, 0, 16_384))
  await other.nextBlock()
  const { external, arrayBuffers } = process.memoryUsage()
  const grown = Math.max(external - before.external, arrayBuffers - before.arrayBuffers) / 2 ** 20
  seen(
    `32 MiB asked for and not read: ${grown.toFixed(0)} MiB more, another peer's block after ${(performance.now() - begun).toFixed(0)} ms`
  )
  // the read cache is 32 MiB by itself
  expect(grown).toBeLessThan(56)
})

test('silence, and half a handshake: closed after ten seconds', async () => {
  const { swarm } = await engines.seed(fixture)
  const begun = performance.now()
  const silent = await connected(swarm.port!, '127.0.0.2')
  const half = await connected(swarm.port!, '127.0.0.2')
  half.write('\x13BitTorrent protocol')
  await Promise.all([silent, half].map((socket) => socket.closed || once(socket, 'close')))
  const seconds = (performance.now() - begun) / 1_000
  seen(`closed after ${seconds.toFixed(1)} s without a handshake`)
  expect(seconds).toBeGreaterThan(9)
  expect(seconds).toBeLessThan(40)
})

test('of 400 simultaneous encryption handshakes from 20 hosts, 100 are answered within a second', async () => {
  const { swarm } = await engines.seed(fixture)
  const begun = Math.floor(performance.now() / 1_000)
  const answers = await Promise.all(
    Array.from({ length: 400 }, async (_, i) => {
      const socket = await connected(swarm.port!, hostOf(i, 20))
      // a public key: no handshake begins like this
      socket.write(Buffer.alloc(96, 7))
      return new Promise<boolean>((resolve) => {
        socket.once('data', () => resolve(true))
        socket.once('close', () => resolve(false))
      })
    })
  )
  const seconds = Math.floor(performance.now() / 1_000) - begun + 1
  const answered = answers.filter(Boolean).length
  seen(`${answered} of 400 encryption handshakes answered, in ${seconds} s by the clock`)
  expect(answered).toBeGreaterThanOrEqual(100)
  expect(answered).toBeLessThanOrEqual(100 * seconds)
})
