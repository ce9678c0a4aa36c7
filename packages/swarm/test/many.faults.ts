import { readdir } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { endKeptThreads } from '@svc/testkit/threads'
import { until } from '@svc/testkit/until'
import { expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { startEngine } from '../src/swarm.ts'
import { formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { dialRaw, type RawPeer } from './raw-peer.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

async function descriptors(): Promise<number> {
  await endKeptThreads()
  return (await readdir('/proc/self/fd')).length
}

/** One engine seeds them all, another one fetches them; both are closed, and nothing stays on the disk. */
async function exchange(count: number): Promise<void> {
  const engines = new Engines()
  const fixtures: Fixture[] = []
  for (let index = 0; index < count; index += 1)
    fixtures.push(await makeTorrent({ a: 20_000 + index, b: index }, 16_384, { name: `t${index}` }))
  const seed = await engines.open()
  for (const fixture of fixtures) {
    seed.add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(fixture.folder, { trusted: true }),
      seedOnly: true
    })
  }
  const leech = await engines.open()
  const folder = await fixtures[0]!.target('all')
  const torrents = fixtures.map((fixture) =>
    leech.add({
      infohash: fixture.info.infohash,
      storage: createFileStorage(folder),
      peers: [`127.0.0.1:${seed.port}`]
    })
  )
  await Promise.all(torrents.map((torrent) => torrent.completed()))
  for (const fixture of fixtures) await expectFiles(fixture, folder)
  await engines.close()
  await Promise.all(fixtures.map((fixture) => fixture.remove()))
}

test('200 torrents on one listener: all are fetched, nothing is left after closing', async () => {
  // the first engine of a process opens descriptors that stay.
  await exchange(1)
  const before = await descriptors()
  await exchange(200)
  expect(await descriptors()).toBeLessThanOrEqual(before + 2)
})

test('200 peers at once on one torrent are served, memory stays flat, all places come back', async () => {
  const fixture = await makeTorrent({ a: 1_000_000 }, 65_536)
  const swarm = await startEngine({
    peerAddress: { host: '127.0.0.1', port: 0 },
    uploadSlots: 200,
    maxConnectionsPerHost: 200,
    verifyThreads: 1
  })
  const torrent = swarm.add({
    info: fixture.info,
    pieceLayers: fixture.layers,
    storage: createFileStorage(fixture.folder, { trusted: true }),
    seedOnly: true
  })
  const before = await descriptors()
  const round = async (): Promise<void> => {
    const peers: RawPeer[] = []
    for (let index = 0; index < 200; index += 1) {
      peers.push(await dialRaw(swarm.port!, fixture, { greet: (peer) => peer.send(formatSimple(MESSAGE.interested)) }))
    }
    await Promise.all(
      peers.map(async (peer, index) => {
        await peer.next(MESSAGE.unchoke)
        peer.send(Buffer.from([0, 0, 0, 13, MESSAGE.request, 0, 0, 0, index % 15, 0, 0, 0, 0, 0, 0, 0x40, 0]))
        const block = await peer.nextBlock()
        expect(Buffer.compare(block.bytes, peer.bytesOf(index % 15, 0, 16_384))).toBe(0)
      })
    )
    expect(torrent.progress().peers).toBe(200)
    for (const peer of peers) peer.socket.destroy()
    await until(() => torrent.progress().peers === 0)
  }
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = async (): Promise<number> => {
    // a closed socket frees its memory in later turns
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    // the first one ends a marking that was under way, which keeps garbage from since it began.
    collect()
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  await round()
  const usedBytes = await used()
  await round()
  await round()
  // 40 KB for each of them: less than its receive buffer
  expect((await used()) - usedBytes).toBeLessThan(16_000_000)
  expect(await descriptors()).toBeLessThanOrEqual(before + 2)
  await swarm.close()
  await fixture.remove()
})
