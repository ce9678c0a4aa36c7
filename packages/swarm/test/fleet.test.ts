import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFileStorage, type SwarmError, type SwarmTorrentOptions } from '../src/index.ts'
import { formatBlockRef, formatSimple, MESSAGE, readU32 } from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { dialRaw, type RawPeer } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'
import { startWebseed } from './webseed-server.ts'

const PIECE = 65_536
const TRUSTED = ['127.0.0.0/8']
const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 40 * PIECE - 7, b: 100_000 }, PIECE)
})
afterEach(() => engines.close())

async function raw(port: number): Promise<RawPeer> {
  const peer = await dialRaw(port, fixture, { greet: (self) => self.send(formatSimple(MESSAGE.haveNone)) })
  engines.before(() => peer.socket.destroy())
  return peer
}

const fetching = (more: Partial<SwarmTorrentOptions>, folder: string): SwarmTorrentOptions => ({
  info: fixture.info,
  pieceLayers: fixture.layers,
  storage: createFileStorage(folder),
  ...more
})

describe('a first seed', () => {
  test('offers a trusted peer a few pieces, then more; shows any other peer everything', async () => {
    const { swarm } = await engines.seed(fixture, { trusted: ['127.0.0.1'] }, { firstSeed: true })
    const peer = await raw(swarm.port!)
    await peer.next(MESSAGE.haveNone)
    peer.send(formatSimple(MESSAGE.interested))
    const told = new Set([readU32(await peer.next(MESSAGE.have), 0)])
    const piece = [...told][0]!
    await peer.next(MESSAGE.unchoke)
    peer.send(formatBlockRef(MESSAGE.request, piece, 0, 16_384))
    expect((await peer.nextBlock()).piece).toBe(piece)

    const plain = await engines.seed(fixture, { trusted: ['10.0.0.0/8'] }, { firstSeed: true })
    await (await raw(plain.swarm.port!)).next(MESSAGE.haveAll)
  })

  test('sends small files at once to a peer that wants nothing else', async () => {
    const { address } = await engines.seed(fixture, { trusted: TRUSTED }, { firstSeed: true })
    const swarm = await engines.open({ trusted: TRUSTED })
    const torrent = swarm.add(fetching({ peers: [address] }, await fixture.target('small')))
    const file = once(torrent, 'file')
    torrent.priority(0, 0)
    expect(await file).toMatchObject([{ path: 'b' }])
  })

  test('keeps offering as the peer reports pieces, beyond the first offer', async () => {
    const big = await engines.torrent({ a: 300 * PIECE }, PIECE)
    const { address } = await engines.seed(big, { trusted: TRUSTED }, { firstSeed: true })
    const swarm = await engines.open()
    const folder = await big.target('leech')
    const torrent = swarm.add({
      info: big.info,
      pieceLayers: big.layers,
      storage: createFileStorage(folder),
      peers: [address]
    })
    await torrent.completed()
    await expectFiles(big, folder)
  })

  test('completes several peers that have no other source', async () => {
    const { address } = await engines.seed(fixture, { trusted: TRUSTED }, { firstSeed: true })
    const folders = await Promise.all([1, 2, 3].map((n) => fixture.target(`leech${n}`)))
    const torrents = []
    const peers = [address]
    for (const folder of folders) {
      const swarm = await engines.open({ trusted: TRUSTED })
      torrents.push(swarm.add(fetching({ peers }, folder)))
      peers.push(`127.0.0.1:${swarm.port}`)
    }
    await Promise.all(torrents.map((torrent) => torrent.completed()))
    for (const folder of folders) await expectFiles(fixture, folder)
  })
})

test('in a fleet, a webseed sends everything without peers, and helps beside them', async () => {
  const server = await startWebseed(fixture)
  try {
    const folders = [await fixture.target('alone'), await fixture.target('second')] as const
    const first = await engines.open({ trusted: TRUSTED })
    await first.add(fetching({ webseeds: [server.url] }, folders[0])).completed()
    await expectFiles(fixture, folders[0])
    const bytes = server.requests.reduce((sum, { start, end }) => sum + end - start, 0)
    expect(bytes).toBe(40 * PIECE - 7 + 100_000)

    const second = await engines.open({ trusted: TRUSTED })
    const peers = [`127.0.0.1:${first.port}`]
    await second.add(fetching({ webseeds: [server.url], peers }, folders[1])).completed()
    await expectFiles(fixture, folders[1])
  } finally {
    await server.close()
  }
})

test('strangers without pieces do not keep a fleet node from its webseed', { timeout: 60_000 }, async () => {
  const server = await startWebseed(fixture)
  try {
    const swarm = await engines.open({ trusted: ['10.0.0.0/8'] })
    const folder = await fixture.target('alone')
    // the webseed is not asked within the first 300 ms
    const torrent = swarm.add(fetching({ webseeds: [server.url] }, folder))
    await Promise.all(Array.from({ length: 20 }, () => raw(swarm.port!)))
    await torrent.completed()
    await expectFiles(fixture, folder)
  } finally {
    await server.close()
  }
})

test('engines of two zones share a torrent, pieces cross, and all complete', async () => {
  const { address } = await engines.seed(fixture, { trusted: TRUSTED, zone: 'a' }, { firstSeed: true })
  const folders = await Promise.all(['a', 'b', 'b'].map((zone, n) => fixture.target(`${zone}${n}`)))
  const peers = [address]
  const torrents = []
  for (const [n, zone] of ['a', 'b', 'b'].entries()) {
    const swarm = await engines.open({ trusted: TRUSTED, zone })
    torrents.push(swarm.add(fetching({ peers }, folders[n]!)))
    peers.push(`127.0.0.1:${swarm.port}`)
  }
  await Promise.all(torrents.map((torrent) => torrent.completed()))
  for (const folder of folders) await expectFiles(fixture, folder)
})

test.each([
  [{ trusted: ['10.0.0.0/40'] }, 'trusted'],
  [{ zone: 'rack 1' }, 'zone']
])('an engine with %j is refused', async (options, reason) => {
  await expect(engines.open(options)).rejects.toSatisfy(
    (error) => (error as SwarmError).code === 'E_OPTION' && (error as SwarmError).reason === reason
  )
})

test('peers over IPv6 exchange pieces and IPv6 addresses', async () => {
  const { swarm } = await engines.seed(fixture, { peerAddress: { host: '::1', port: 0 } })
  const first = await engines.open({ peerAddress: { host: '::1', port: 0 } })
  const folders = [await fixture.target('first'), await fixture.target('second')] as const
  const one = first.add(fetching({ peers: [`[::1]:${swarm.port}`], upload: false }, folders[0]))
  await one.completed()
  await expectFiles(fixture, folders[0])
  // the second knows the seed's address from the magnet alone, as a listener on all addresses of both families
  const second = await engines.open({ peerAddress: { host: '::', port: 0 } })
  const two = second.add(fetching({ peers: [`127.0.0.1:${second.port}`, `[::1]:${swarm.port}`] }, folders[1]))
  await two.completed()
  await expectFiles(fixture, folders[1])
})
