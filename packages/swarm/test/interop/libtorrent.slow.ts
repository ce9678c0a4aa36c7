import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { formatMagnet, parseTorrent, toHex } from '@svc/metainfo'
import { startTracker } from '@svc/testkit/tracker'
import { until } from '@svc/testkit/until'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFileStorage } from '../../src/index.ts'
import { Engines, expectFiles } from '../engines.ts'
import { type Fixture, sha256Hex } from '../torrent-fixture.ts'
import { startWebseed } from '../webseed-server.ts'
import { hasLibtorrent, Libtorrent } from './libtorrent.ts'

const engines = new Engines()
let fixture: Fixture
let sessions: Libtorrent[]
beforeEach(() => {
  sessions = []
})
afterEach(async () => {
  await Promise.all(sessions.map((session) => session.stop()))
  await engines.close()
})

async function libtorrent(options: object = {}): Promise<Libtorrent> {
  const session = await Libtorrent.start(options)
  sessions.push(session)
  return session
}

const oddSizes = (piece: number) => ({
  'a.bin': piece * 3 + 17,
  'sub/exact.bin': piece,
  'sub/plus.bin': piece + 1,
  'sub/minus.bin': piece - 1,
  one: 1,
  empty: 0,
  block: 16_384,
  'block-1': 16_383,
  'block+1': 16_385,
  'ü/ñ 語.bin': 40_000
})

describe.skipIf(!hasLibtorrent)('libtorrent', () => {
  test('computes the same infohash and piece layers from the same files', async () => {
    fixture = await engines.torrent(oddSizes(65_536), 65_536)
    const lt = await libtorrent()
    const out = path.join(await fixture.target('out'), 'lt.torrent')
    const made = await lt.ask({ cmd: 'make', path: path.join(fixture.folder, 'torrent'), piece: 65_536, out }, 'made')
    expect(made.infohash).toBe(toHex(fixture.info.infohash))
    const theirs = parseTorrent(await readFile(out))
    expect(Buffer.compare(theirs.info.infoBytes, fixture.info.infoBytes)).toBe(0)
    expect([...theirs.pieceLayers.layers].map(([root, layer]) => [root, sha256Hex(layer)]).sort()).toEqual(
      [...fixture.layers].map(([root, layer]) => [root, sha256Hex(layer)]).sort()
    )
  })

  test.each([16_384, 65_536, 1_048_576, 4_194_304])(
    'downloads from us with pieces of %i bytes, by .torrent and by magnet alone',
    async (piece) => {
      fixture = await engines.torrent(oddSizes(piece), piece)
      const { swarm, torrent } = await engines.seed(fixture)
      const lt = await libtorrent()
      const byFile = await fixture.target('by-file')
      lt.send({
        cmd: 'add',
        id: 'file',
        torrent: fixture.torrentFile,
        save: byFile,
        peers: [['127.0.0.1', swarm.port]]
      })
      await lt.written('file')
      await expectFiles(fixture, byFile)
      const second = await libtorrent()
      const byMagnet = await fixture.target('by-magnet')
      second.send({
        cmd: 'add',
        id: 'magnet',
        magnet: formatMagnet({ infohash: fixture.info.infohash }),
        save: byMagnet,
        peers: [['127.0.0.1', swarm.port]]
      })
      await second.written('magnet')
      await expectFiles(fixture, byMagnet)
      expect(engines.warningsOf(torrent)).toEqual([])
      expect([...lt.seen('hash-failed'), ...second.seen('hash-failed')]).toEqual([])
    }
  )

  test.each([16_384, 65_536, 4_194_304])(
    'is downloaded from by us with pieces of %i bytes, by info, with layers, by magnet',
    async (piece) => {
      fixture = await engines.torrent(oddSizes(piece), piece)
      const lt = await libtorrent()
      lt.send({ cmd: 'add', id: 's', torrent: fixture.torrentFile, save: fixture.folder, seed: true })
      await lt.wait('added')
      const ways = [
        { info: fixture.info },
        { info: fixture.info, pieceLayers: fixture.layers },
        { magnet: formatMagnet({ infohash: fixture.info.infohash }) }
      ]
      for (const [index, way] of ways.entries()) {
        const folder = await fixture.target(`us-${index}`)
        const torrent = engines.watch(
          (await engines.open()).add({ ...way, storage: createFileStorage(folder), peers: [`127.0.0.1:${lt.port}`] })
        )
        await torrent.completed()
        await expectFiles(fixture, folder)
        expect(engines.warningsOf(torrent)).toEqual([])
      }
    }
  )

  test.each([512, 1025])('hash requests work both ways for a file of %i pieces', async (pieces) => {
    fixture = await engines.torrent({ big: pieces * 16_384 - 5, small: 10 }, 16_384)
    const { swarm } = await engines.seed(fixture)
    const lt = await libtorrent()
    const folder = await fixture.target('lt')
    lt.send({
      cmd: 'add',
      id: 't',
      magnet: formatMagnet({ infohash: fixture.info.infohash }),
      save: folder,
      peers: [['127.0.0.1', swarm.port]]
    })
    await lt.written('t')
    await expectFiles(fixture, folder)
    const seed = await libtorrent()
    seed.send({ cmd: 'add', id: 's', torrent: fixture.torrentFile, save: fixture.folder, seed: true })
    await seed.wait('added')
    const ours = await fixture.target('us')
    const torrent = (await engines.open()).add({
      infohash: fixture.info.infohash,
      storage: createFileStorage(ours),
      peers: [`127.0.0.1:${seed.port}`]
    })
    await torrent.completed()
    await expectFiles(fixture, ours)
  })

  test('with its defaults (uTP first, then encryption) gets the first block without waiting for uTP', async () => {
    fixture = await engines.torrent({ a: 300_000, b: 1 }, 65_536)
    engines.overUdp = true
    const { swarm } = await engines.seed(fixture)
    // a second until it dials again, by TCP. Without an answer by uTP it waits for a minute, where three seconds are usual.
    const lt = await libtorrent({ defaults: true, settings: { utp_connect_timeout: 60_000, peer_connect_timeout: 60 } })
    lt.send({
      cmd: 'add',
      id: 't',
      torrent: fixture.torrentFile,
      save: await fixture.target('lt'),
      peers: [['127.0.0.1', swarm.port]]
    })
    const first = await lt.wait('first-block', 't')
    expect(first.sinceDial).toBeLessThan(30)
    await lt.wait('finished', 't')
  })

  test('that insists on encryption, both ways', async () => {
    fixture = await engines.torrent({ a: 300_000, b: 1 }, 65_536)
    const forced = { settings: { in_enc_policy: 0, out_enc_policy: 0, allowed_enc_level: 2 } }
    const { swarm } = await engines.seed(fixture)
    const lt = await libtorrent(forced)
    const theirs = await fixture.target('lt')
    lt.send({ cmd: 'add', id: 't', torrent: fixture.torrentFile, save: theirs, peers: [['127.0.0.1', swarm.port]] })
    await lt.written('t')
    await expectFiles(fixture, theirs)
    // what was encrypted for one is plain for the next.
    const plain = await fixture.target('plain')
    await (await engines.open())
      .add({ info: fixture.info, storage: createFileStorage(plain), peers: [`127.0.0.1:${swarm.port}`] })
      .completed()
    await expectFiles(fixture, plain)
    const seed = await libtorrent(forced)
    seed.send({ cmd: 'add', id: 's', torrent: fixture.torrentFile, save: fixture.folder, seed: true })
    await seed.wait('added')
    const ours = await fixture.target('us')
    const torrent = (await engines.open()).add({
      info: fixture.info,
      storage: createFileStorage(ours),
      peers: [`127.0.0.1:${seed.port}`]
    })
    await torrent.completed()
    await expectFiles(fixture, ours)
  })

  test('sends us a third peer by peer exchange', async () => {
    fixture = await engines.torrent({ a: 2_000_000, b: 1 }, 65_536)
    // libtorrent tells both ends of each other at the same moment. Only one end may dial, or the connection that stays could
    // be the seed's, which shows another port: the seed hears nothing.
    const { swarm } = await engines.seed(fixture, { uploadLimit: 200_000, pex: false })
    const middle = await libtorrent()
    middle.send({
      cmd: 'add',
      id: 'm',
      torrent: fixture.torrentFile,
      save: await fixture.target('m'),
      peers: [['127.0.0.1', swarm.port]]
    })
    await middle.wait('first-block', 'm')
    // we know libtorrent only; the seed comes from its peer exchange.
    const torrent = (await engines.open()).add({
      info: fixture.info,
      storage: createFileStorage(await fixture.target('us')),
      peers: [`127.0.0.1:${middle.port}`]
    })
    await until(() => torrent.peers().some((peer) => peer.address === `127.0.0.1:${swarm.port}`))
  })

  test('learns of a third peer from us', async () => {
    fixture = await engines.torrent({ a: 500_000, b: 1 }, 65_536)
    const seed = await libtorrent()
    seed.send({ cmd: 'add', id: 's', torrent: fixture.torrentFile, save: fixture.folder, seed: true })
    await seed.wait('added')
    const swarm = await engines.open()
    const idle = swarm.add({
      info: fixture.info,
      storage: createFileStorage(await fixture.target('us')),
      peers: [`127.0.0.1:${seed.port}`],
      upload: false
    })
    idle.priority(0, 0)
    await until(() => idle.peers().length > 0)
    const leech = await libtorrent()
    const folder = await fixture.target('lt')
    leech.send({ cmd: 'add', id: 't', torrent: fixture.torrentFile, save: folder, peers: [['127.0.0.1', swarm.port]] })
    await leech.written('t')
    await expectFiles(fixture, folder)
  })

  test('finds us and is found through a tracker, HTTP and UDP', async () => {
    const tracker = await startTracker()
    const { http, udp } = tracker
    try {
      fixture = await engines.torrent({ a: 300_000, b: 1 }, 65_536, { trackers: [http] })
      await engines.seed(fixture, {}, { trackers: [udp] })
      const folder = await fixture.target('us')
      const torrent = (await engines.open()).add({
        infohash: fixture.info.infohash,
        storage: createFileStorage(folder),
        trackers: [http]
      })
      await torrent.completed()
      await expectFiles(fixture, folder)
      const lt = await libtorrent()
      const theirs = await fixture.target('lt')
      lt.send({ cmd: 'add', id: 't', torrent: fixture.torrentFile, save: theirs })
      await lt.written('t')
      await expectFiles(fixture, theirs)
    } finally {
      await engines.close()
      await Promise.all(sessions.splice(0).map((session) => session.stop()))
      await tracker.close()
    }
  })

  test('and a webseed feed one download together', async () => {
    fixture = await engines.torrent({ a: 2_000_000, b: 900_000 }, 65_536)
    const webseed = await startWebseed(fixture)
    const seed = await libtorrent({ settings: { upload_rate_limit: 300_000 } })
    seed.send({ cmd: 'add', id: 's', torrent: fixture.torrentFile, save: fixture.folder, seed: true })
    await seed.wait('added')
    const folder = await fixture.target('us')
    const torrent = (await engines.open()).add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(folder),
      webseeds: [webseed.url]
    })
    // a peer on loopback would be done before a busy machine has asked the webseed
    await until(() => webseed.requests.length > 0)
    torrent.addPeer(`127.0.0.1:${seed.port}`)
    await torrent.completed()
    await expectFiles(fixture, folder)
    await webseed.close()
  })
})
