// One file because its peers share a raw listener, a fixture and the way that they are found out; each test is one lie.

import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { buildInfo, encodeBencode, equalBytes, truncateInfohash } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFileStorage, type SwarmOptions, type SwarmTorrent } from '../src/index.ts'
import { formatHandshake } from '../src/wire/handshake.ts'
import {
  formatBitfield,
  formatBlockRef,
  formatExtended,
  formatHashes,
  formatHashRange,
  formatIndex,
  formatSimple,
  MESSAGE,
  parseHashRange
} from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { dialRaw, listenRaw, type RawListener, type Script } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

const PIECE = 65_536
const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 700_000, b: 10_000 }, PIECE)
})
afterEach(() => engines.close())

async function liar(script: Script): Promise<RawListener> {
  const listener = await listenRaw(fixture, script)
  engines.before(() => listener.close())
  return listener
}

async function leech(
  peers: readonly string[],
  layers = true,
  options: SwarmOptions = {}
): Promise<{ torrent: SwarmTorrent; folder: string }> {
  const folder = await fixture.target('leech')
  const torrent = engines.watch(
    (await engines.open({ pex: false, ...options })).add({
      info: fixture.info,
      ...(layers ? { pieceLayers: fixture.layers } : {}),
      storage: createFileStorage(folder),
      peers
    })
  )
  return { torrent, folder }
}

/** Resolves when everything that the engine has sent so far was read and answered. */
async function afterTraffic({ peers }: RawListener): Promise<void> {
  const [peer] = peers
  const before = peer!.received.filter(({ id }) => id === MESSAGE.hashReject).length
  const range = { root: new Uint8Array(32), baseLayer: 0, index: 0, length: 2, proofLayers: 0 }
  peer!.send(formatHashRange(MESSAGE.hashRequest, range))
  await until(() => peer!.received.filter(({ id }) => id === MESSAGE.hashReject).length > before)
}

function flipped(bytes: Uint8Array): Uint8Array {
  const wrong = bytes.slice()
  wrong[wrong.length >> 1]! ^= 1
  return wrong
}

/** The liar's address is named in a warning. */
const namesLiar = (torrent: SwarmTorrent, address: string): boolean =>
  engines.warningsOf(torrent).some((warning) => warning.kind === 'peer' && warning.source.startsWith(address))

describe('peers that lie to a download', () => {
  test('a peer that rejects pieces it claims is soon asked for little, and for more once it sends', async () => {
    let refused = 0
    let isHonest = false
    const refusing = await liar({
      block: (honest, { piece, begin, length }, peer) => {
        if (isHonest) return honest
        refused += 1
        peer.send(formatBlockRef(MESSAGE.reject, piece, begin, length))
        return undefined
      }
    })
    const clock = new VirtualClock()
    const { torrent, folder } = await leech([refusing.address], true, { clock })
    // requests from before the pause are refused as well.
    await until(() => refused >= 64)
    // without a pause thousands would come.
    for (let n = 0; n < 15; n += 1) {
      await clock.advance(100)
      await afterTraffic(refusing)
    }
    expect(refused).toBeLessThan(400)
    isHonest = true
    await clock.advance(4_000)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('a peer that corrupts everything is named and dropped; an honest one completes', async () => {
    const corrupt = await liar({ block: flipped })
    const { torrent, folder } = await leech([corrupt.address])
    await corrupt.peers[0]?.closed
    while (!namesLiar(torrent, corrupt.address)) await new Promise((resolve) => torrent.once('warning', resolve))
    const { address } = await engines.seed(fixture)
    torrent.addPeer(address)
    await torrent.completed()
    await expectFiles(fixture, folder)
    // banned: it is not dialled again.
    expect(corrupt.peers).toHaveLength(1)
  })

  test('beside an honest one only the liar is dropped, and good blocks of mixed pieces are kept', async () => {
    // one piece of 64 blocks: both serve blocks of it.
    fixture = await engines.torrent({ a: 1_048_576 }, 1_048_576)
    const asked: number[] = []
    let lies = 0
    const held: (() => void)[] = []
    // each sends something: this one a few blocks before the other says anything, the others after its first lie.
    const honestPeer = await liar({
      block: (bytes, { piece, begin }, peer) => {
        asked.push(begin)
        if (asked.length <= 4 || lies > 0) return bytes
        held.push(() => peer.sendBlock(piece, begin, bytes))
        return undefined
      }
    })
    const isCorrupted = (begin: number): boolean => begin % (5 * 16_384) === 0
    const beforeIt = Promise.withResolvers<void>()
    const corrupt = await liar({
      greet: (peer) =>
        void beforeIt.promise.then(() => {
          peer.send(formatSimple(MESSAGE.haveAll))
          peer.send(formatSimple(MESSAGE.unchoke))
        }),
      block: (bytes, { begin }) => {
        if (!isCorrupted(begin)) return bytes
        lies += 1
        for (const send of held.splice(0)) send()
        return flipped(bytes)
      }
    })
    const { torrent, folder } = await leech([honestPeer.address, corrupt.address])
    await expect.poll(() => torrent.progress().downloadedBytes).toBeGreaterThan(0)
    beforeIt.resolve()
    await torrent.completed()
    await expectFiles(fixture, folder)
    expect(lies).toBeGreaterThan(0)
    expect(namesLiar(torrent, honestPeer.address)).toBe(false)
    // a block that both were asked for at the end may be the liar's, and is requested again.
    const twice = asked.filter((begin, at) => asked.indexOf(begin) < at)
    expect(twice.filter((begin) => !isCorrupted(begin))).toEqual([])
  })

  test('wrong hashes and bogus proofs end the connection; the layer comes from an honest peer', async () => {
    const bogus = await liar({ hashes: (honest) => (honest === undefined ? undefined : flipped(honest)) })
    const { torrent, folder } = await leech([bogus.address], false)
    while (!namesLiar(torrent, bogus.address)) await new Promise((resolve) => torrent.once('warning', resolve))
    const { address } = await engines.seed(fixture)
    torrent.addPeer(address)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('peers that reject proofs are asked without them, and the layer is checked at the end', async () => {
    const asked: number[] = []
    // more than 512 pieces: several chunks, so that proofs are asked for.
    fixture = await engines.torrent({ a: 16_384 * 700 }, 16_384)
    const listener = await listenRaw(fixture, {
      hashes: (honest, range) => {
        asked.push(range.proofLayers)
        return range.proofLayers > 0 ? undefined : honest
      }
    })
    engines.before(() => listener.close())
    const { torrent, folder } = await leech([listener.address], false)
    await torrent.completed()
    await expectFiles(fixture, folder)
    expect(Math.max(...asked)).toBeGreaterThan(0)
    expect(asked).toContain(0)
  })

  test('unrequested hashes are refused before they are buffered', async () => {
    const pushy = await liar({
      greet: (peer) => {
        peer.send(
          formatHashes(
            { root: fixture.info.files[0]!.piecesRoot!, baseLayer: 2, index: 0, length: 512, proofLayers: 0 },
            new Uint8Array(512 * 32)
            // the rest never comes
          ).subarray(0, 100)
        )
      }
    })
    const { torrent } = await leech([pushy.address])
    while (!namesLiar(torrent, pushy.address)) await new Promise((resolve) => torrent.once('warning', resolve))
  })

  test.each<[string, (peer: Parameters<NonNullable<Script['greet']>>[0]) => void]>([
    ['a bitfield of the wrong size', (peer) => peer.send(formatBitfield(new Uint8Array(9)))],
    ['a bitfield with spare bits', (peer) => peer.send(formatBitfield(new Uint8Array(2).fill(255)))],
    ['a piece that does not exist', (peer) => peer.send(formatIndex(MESSAGE.have, 4_000_000))],
    [
      'have all twice',
      (peer) => {
        peer.send(formatSimple(MESSAGE.haveAll))
        peer.send(formatSimple(MESSAGE.haveAll))
      }
    ],
    ['an absurd length', (peer) => peer.send(new Uint8Array([0xff, 0xff, 0xff, 0xff, 7]))],
    ['a long choke', (peer) => peer.send(new Uint8Array([0, 0, 0, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8]))],
    ['a piece message of 1 MB', (peer) => peer.send(new Uint8Array([0, 0x10, 0, 0, MESSAGE.piece]))],
    ['bad bencoding in the extended handshake', (peer) => peer.send(formatExtended(0, Buffer.from('d1:md')))],
    ['deep bencoding', (peer) => peer.send(formatExtended(0, Buffer.from('l'.repeat(5000))))],
    ['a request outside the torrent', (peer) => peer.send(formatBlockRef(MESSAGE.request, 999_999, 0, 16_384))],
    ['a request of 1 GB', (peer) => peer.send(formatBlockRef(MESSAGE.request, 0, 0, 0x40000000))],
    [
      'blocks without end that nobody asked for',
      (peer) => {
        for (let index = 0; index < 100; index += 1) peer.sendBlock(1, 0, new Uint8Array(16_384))
      }
    ]
  ])('%s ends the connection and is named', async (_name, greet) => {
    const bad = await liar({ greet })
    const { torrent } = await leech([bad.address])
    while (!namesLiar(torrent, bad.address)) await new Promise((resolve) => torrent.once('warning', resolve))
    await bad.peers[0]!.closed
    expect(torrent.progress().verifiedBytes).toBe(0)
  })

  test('metadata with pieces that no receive slot holds fails the torrent at once', async () => {
    const info = buildInfo({
      name: 'huge',
      pieceLength: 2 ** 27,
      files: [{ path: 'a', length: 10, piecesRoot: new Uint8Array(32).fill(1) }]
    })
    const listener = await listenRaw(
      { ...fixture, info },
      {
        greet: (peer) => {
          peer.send(formatExtended(0, encodeBencode({ m: { ut_metadata: 3 }, metadata_size: info.infoBytes.length })))
          void peer.next(MESSAGE.extended).then(
            async () => {
              const head = encodeBencode({ msg_type: 1, piece: 0, total_size: info.infoBytes.length })
              await peer.next(MESSAGE.extended)
              peer.send(formatExtended(1, Buffer.concat([head, info.infoBytes])))
            },
            () => undefined
          )
        }
      }
    )
    engines.before(() => listener.close())
    const torrent = engines.watch(
      (await engines.open()).add({
        infohash: info.infohash,
        storage: createFileStorage(await fixture.target('leech')),
        peers: [listener.address]
      })
    )
    await expect(torrent.completed()).rejects.toMatchObject({ code: 'E_METAINFO', reason: 'piece-length' })
  })

  test('metadata is requested from three peers at a time; those silent for ten seconds lose their turn', async () => {
    const clock = new VirtualClock()
    const { infoBytes, infohash } = fixture.info
    const silent = await Promise.all(
      Array.from({ length: 6 }, () =>
        liar({
          greet: (peer) =>
            peer.send(formatExtended(0, encodeBencode({ m: { ut_metadata: 3 }, metadata_size: infoBytes.length })))
        })
      )
    )
    const asked = (): number =>
      silent.filter(({ peers }) =>
        peers.some(({ received }) => received.some(({ id, body }) => id === MESSAGE.extended && body[0] === 3))
      ).length
    const swarm = await engines.open({ pex: false, clock })
    const torrent = engines.watch(
      swarm.add({
        infohash,
        storage: createFileStorage(await fixture.target('leech')),
        peers: silent.map(({ address }) => address)
      })
    )
    const there = (): number =>
      silent.filter(({ peers }) => peers.some(({ received }) => received.some(({ id }) => id === MESSAGE.extended)))
        .length
    await expect.poll(there).toBe(6)
    await expect.poll(asked).toBe(3)
    await clock.advance(9_900)
    await expect.poll(() => torrent.progress().peers).toBe(6)
    expect(asked()).toBe(3)
    await clock.advance(2_000)
    await expect.poll(asked).toBe(6)
  })

  test('wrong metadata for a magnet is refused and the peer named; an honest one completes', async () => {
    const wrongInfo = flipped(fixture.info.infoBytes)
    const bad = await liar({
      greet: (peer) => {
        peer.send(formatExtended(0, encodeBencode({ m: { ut_metadata: 3 }, metadata_size: wrongInfo.length })))
        void peer.next(MESSAGE.extended).then(
          async () => {
            const answer = Buffer.concat([
              encodeBencode({ msg_type: 1, piece: 0, total_size: wrongInfo.length }),
              wrongInfo
            ])
            await peer.next(MESSAGE.extended)
            peer.send(formatExtended(1, answer))
          },
          () => undefined
        )
      }
    })
    const folder = await fixture.target('leech')
    const torrent = engines.watch(
      (await engines.open()).add({
        infohash: fixture.info.infohash,
        storage: createFileStorage(folder),
        peers: [bad.address]
      })
    )
    while (!namesLiar(torrent, bad.address)) await new Promise((resolve) => torrent.once('warning', resolve))
    const { address } = await engines.seed(fixture)
    torrent.addPeer(address)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('a peer that accepts requests and stays silent does not delay the others', async () => {
    const silent = await liar({ block: () => undefined })
    const clock = new VirtualClock()
    const { torrent, folder } = await leech([silent.address], true, { clock })
    await until(() => silent.peers[0]?.received.some(({ id }) => id === MESSAGE.request))
    const { address } = await engines.seed(fixture)
    torrent.addPeer(address)
    await clock.advance(12_000)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('a peer that sends a byte a second does not delay the others', async () => {
    const clock = new VirtualClock()
    const drip = await liar({
      block: (bytes, block, peer) => {
        if (block.begin !== 0) return undefined
        const header = Buffer.alloc(13)
        header.writeUInt32BE(9 + bytes.length, 0)
        header[4] = MESSAGE.piece
        header.writeUInt32BE(block.piece, 5)
        peer.send(header)
        let at = 0
        clock.every(200, () => {
          if (!peer.socket.destroyed) peer.send(bytes.subarray(at, at + 1))
          at += 1
        })
        return undefined
      }
    })
    const { torrent, folder } = await leech([drip.address], true, { clock })
    await until(() => drip.peers[0]?.received.some(({ id }) => id === MESSAGE.request))
    const { address } = await engines.seed(fixture)
    torrent.addPeer(address)
    await clock.advance(12_000)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })
})

describe('peers that abuse a seed', () => {
  test('blocks past the end of a file are padded with zeros up to the piece', async () => {
    const { swarm } = await engines.seed(fixture)
    const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
    await peer.next(MESSAGE.unchoke)
    const piece = fixture.info.files[1]!.firstPiece
    peer.send(formatBlockRef(MESSAGE.request, piece, 0, 16_384))
    const { bytes } = await peer.nextBlock()
    expect(bytes).toHaveLength(16_384)
    expect(equalBytes(bytes.subarray(0, 10_000), fixture.files.get('b')!)).toBe(true)
    expect(bytes.subarray(10_000).every((byte) => byte === 0)).toBe(true)
    peer.socket.destroy()
  })

  test('hash requests are answered or rejected, always, also while choked', async () => {
    const { swarm } = await engines.seed(fixture, {}, { upload: false })
    const peer = await dialRaw(swarm.port!, fixture, { greet: () => undefined })
    const root = fixture.info.files[0]!.piecesRoot!
    const level = 2
    const good = { root, baseLayer: level, index: 0, length: 16, proofLayers: 0 }
    peer.send(formatHashRange(MESSAGE.hashRequest, good))
    const answer = await peer.next(MESSAGE.hashes)
    expect(equalBytes(answer.subarray(48), peer.honestHashes(good)!)).toBe(true)
    const leaves = { root, baseLayer: 0, index: 4, length: 4, proofLayers: 0 }
    peer.send(formatHashRange(MESSAGE.hashRequest, leaves))
    expect(equalBytes((await peer.next(MESSAGE.hashes)).subarray(48), peer.honestHashes(leaves)!)).toBe(true)
    const bad = [
      { ...good, root: new Uint8Array(32) },
      { ...good, baseLayer: 60 },
      { ...good, index: 3 },
      { ...good, length: 100_000 },
      { ...good, length: 0 },
      { ...good, index: 16 },
      { ...good, proofLayers: 4_000_000 }
    ]
    for (const range of bad) {
      peer.send(formatHashRange(MESSAGE.hashRequest, range))
      expect(parseHashRange(await peer.next(MESSAGE.hashReject))).toEqual(range)
    }
    peer.socket.destroy()
  })

  test('a torrent that discloses nothing rejects good hash requests too', async () => {
    const { swarm } = await engines.seed(fixture, {}, { disclose: false })
    const peer = await dialRaw(swarm.port!, fixture, { greet: () => undefined })
    const good = { root: fixture.info.files[0]!.piecesRoot!, baseLayer: 2, index: 0, length: 16, proofLayers: 0 }
    peer.send(formatHashRange(MESSAGE.hashRequest, good))
    expect(parseHashRange(await peer.next(MESSAGE.hashReject))).toEqual(good)
    peer.socket.destroy()
  })

  test('a flood of requests while choked ends the connection', async () => {
    const { swarm } = await engines.seed(fixture, {}, { upload: false })
    const peer = await dialRaw(swarm.port!, fixture, { greet: () => undefined })
    for (let index = 0; index < 400; index += 1) peer.send(formatBlockRef(MESSAGE.request, 0, 0, 16_384))
    await peer.closed
    expect(peer.received.filter((message) => message.id === MESSAGE.reject).length).toBeLessThanOrEqual(301)
  })

  // a peer that reads nothing is closed after a minute in any case: the flood ends it earlier.
  test('a flood of requests that are not read back ends the connection, not the memory', {
    timeout: 45_000
  }, async () => {
    const { swarm, torrent } = await engines.seed(fixture)
    const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
    await peer.next(MESSAGE.unchoke)
    peer.socket.pause()
    const request = formatBlockRef(MESSAGE.request, 0, 0, 16_384)
    const many = Buffer.concat(Array.from({ length: 20_000 }, () => request))
    const before = process.memoryUsage().external
    peer.socket.write(many)
    await until(() => engines.warningsOf(torrent).length > 0)
    expect(process.memoryUsage().external - before).toBeLessThan(100_000_000)
    peer.socket.resume()
    await peer.closed
  })

  test('cancelled and choked requests are rejected one by one', async () => {
    const { swarm } = await engines.seed(fixture, { uploadLimit: 20_000 })
    const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
    await peer.next(MESSAGE.unchoke)
    for (let index = 0; index < 4; index += 1) peer.send(formatBlockRef(MESSAGE.request, 0, index * 16_384, 16_384))
    peer.send(formatBlockRef(MESSAGE.cancel, 0, 3 * 16_384, 16_384))
    const rejected = await peer.next(MESSAGE.reject)
    expect(Buffer.from(rejected).readUInt32BE(4)).toBe(3 * 16_384)
    peer.socket.destroy()
  })

  test('a flood of cancels that match nothing costs little, however many requests wait', async () => {
    const { swarm } = await engines.seed(fixture, { uploadLimit: 20_000 })
    const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
    await peer.next(MESSAGE.unchoke)
    const root = new Uint8Array(32)
    const mark = formatHashRange(MESSAGE.hashRequest, { root, baseLayer: 0, index: 0, length: 2, proofLayers: 0 })
    const cancels = Buffer.concat(
      Array.from({ length: 100_000 }, () => formatBlockRef(MESSAGE.cancel, 0, 1, 16_384)).concat(mark)
    )
    const cost = async (): Promise<number> => {
      const before = process.cpuUsage()
      peer.send(cancels)
      await peer.next(MESSAGE.hashReject)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }
    const alone = await cost()
    for (let n = 0; n < 1_990; n += 1) peer.send(formatBlockRef(MESSAGE.request, 0, 0, 16_384))
    // ten times as long if each cancel searched all waiting requests
    expect(await cost()).toBeLessThan(4 * alone + 150)
    peer.socket.destroy()
  })

  test('an unknown infohash, silence and garbage get no answer and no place', { timeout: 40_000 }, async () => {
    const { swarm } = await engines.seed(fixture)
    const wrong = formatHandshake({
      infohash: new Uint8Array(20),
      peerId: new Uint8Array(20),
      extended: true,
      fast: true
    })
    for (const bytes of [wrong, new Uint8Array(2000).fill(1)]) {
      const socket = connect(swarm.port!, '127.0.0.1')
      let answer = 0
      socket.on('data', (data) => {
        answer += data.length
      })
      socket.write(bytes)
      await new Promise((resolve) => socket.once('close', resolve))
      // an encryption handshake is answered with a key before the other side names a torrent.
      expect(answer).toBeLessThan(700)
    }
  })

  test('uTP requests get a reset, other packets nothing', async () => {
    engines.overUdp = true
    const { swarm } = await engines.seed(fixture)
    const udp = createSocket('udp4')
    const answers: Uint8Array[] = []
    udp.on('message', (bytes) => answers.push(bytes))
    const syn = Buffer.alloc(20)
    syn[0] = 0x41
    syn.writeUInt16BE(4711, 2)
    syn.writeUInt16BE(1, 16)
    udp.send(Buffer.alloc(100), swarm.port!, '127.0.0.1')
    udp.send(syn, swarm.port!, '127.0.0.1')
    await until(() => answers.length > 0)
    expect(answers).toHaveLength(1)
    expect(answers[0]![0]).toBe(0x31)
    expect(Buffer.from(answers[0]!).readUInt16BE(2)).toBe(4711)
    await new Promise<void>((resolve) => udp.close(() => resolve()))
  })

  test('one peer id is connected once', async () => {
    const { swarm, torrent } = await engines.seed(fixture)
    const bytes = formatHandshake({
      infohash: truncateInfohash(fixture.info.infohash),
      peerId: new Uint8Array(20).fill(5),
      extended: true,
      fast: true
    })
    const first = connect(swarm.port!, '127.0.0.1')
    first.write(bytes)
    await new Promise((resolve) => first.once('data', resolve))
    const second = connect(swarm.port!, '127.0.0.1')
    second.resume()
    second.write(bytes)
    await new Promise((resolve) => second.once('close', resolve))
    expect(torrent.progress().peers).toBe(1)
    first.destroy()
  })
})
