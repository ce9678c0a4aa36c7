import { type AddressInfo, createServer } from 'node:net'
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
  // the loser is closed on both sides, perhaps later.
  await until(() => sockets() === before + 2)
  await expect.poll(ends).toEqual(['false', 'true'])
})

test('sources that nobody vouches for are not dialled on this machine; the same ones are on the user’s word', async () => {
  let asked = 0
  const server = createServer((socket) => {
    asked++
    socket.destroy()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  engines.before(() => server.close())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const sources = { trackers: [`http://${host}/announce`], webseeds: [`http://${host}/`], peers: [host] }
  const refusals = async (strangers: readonly string[], name: string): Promise<string[]> => {
    const swarm = await engines.open()
    const storage = createFileStorage(await fixture.target(name))
    const { info, layers: pieceLayers } = fixture
    const torrent = swarm.add({ info, pieceLayers, storage, ...sources, strangers })
    const warnings: string[] = []
    torrent.on('warning', ({ kind, message }) => void warnings.push(`${kind} ${message}`))
    await until(() => warnings.some((each) => each.startsWith('webseed')) && warnings.length > 1)
    await torrent.remove()
    return warnings
  }
  const all = Object.values(sources).flat()
  for (const each of await refusals(all, 'stranger')) expect(each).toMatch(/must not name/)
  expect(asked).toBe(0)
  for (const each of await refusals([], 'user')) expect(each).not.toMatch(/must not name/)
  expect(asked).toBeGreaterThanOrEqual(3)
})
