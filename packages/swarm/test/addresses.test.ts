import { until } from '@svc/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { Engines } from './engines.ts'
import type { Fixture } from './torrent-fixture.ts'

const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 300_000 }, 65_536)
})
afterEach(() => engines.close())

test.each([
  { host: 'a\0b', port: 1 },
  { host: '127.0.0.1', port: 0 },
  { host: '127.0.0.1', port: 70_000 },
  'a\0b:1',
  '1.2.3:4'
])('a torrent with the peer %j is refused, and nothing of it remains', async (peer) => {
  const swarm = await engines.open()
  const options = { info: fixture.info, storage: createFileStorage(await fixture.target('leech')) }
  expect(() => swarm.add({ ...options, peers: [peer] })).toThrow(expect.objectContaining({ code: 'E_ADDRESS' }))
  expect(swarm.torrents).toEqual([])
  const torrent = swarm.add(options)
  expect(() => torrent.addPeer(peer)).toThrow(expect.objectContaining({ code: 'E_ADDRESS' }))
})

test('two engines that dial each other at once end with one connection, the same on both sides', async () => {
  const [one, two] = await Promise.all([engines.open(), engines.open()])
  const add = async (swarm: typeof one, name: string) => {
    const torrent = swarm.add({ info: fixture.info, storage: createFileStorage(await fixture.target(name)) })
    await until(() => torrent.state === 'fetching')
    return torrent
  }
  const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  const before = sockets()
  const a = await add(one, 'one')
  const b = await add(two, 'two')
  a.addPeer(`127.0.0.1:${two.port}`)
  b.addPeer(`127.0.0.1:${one.port}`)
  const ends = (): string[] =>
    [a, b]
      .map((torrent) =>
        torrent
          .peers()
          .map(({ incoming }) => incoming)
          .join()
      )
      .sort()
  await expect.poll(ends).toEqual(['false', 'true'])
  // The loser is closed on both sides, perhaps later.
  await until(() => sockets() === before + 2)
  await expect.poll(ends).toEqual(['false', 'true'])
})
