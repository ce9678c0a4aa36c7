import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatBlockRef, formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, type RawPeer } from './raw-peer.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

let engines: Engines
let fixture: Fixture
let raws: RawPeer[]
beforeEach(async () => {
  engines = new Engines()
  raws = []
  fixture = await makeTorrent({ a: 100_000 }, 65_536)
})
afterEach(async () => {
  for (const raw of raws) raw.socket.destroy()
  await engines.close()
  await fixture.remove()
})

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function raw(port: number, greet: (peer: RawPeer) => void = () => undefined): Promise<RawPeer> {
  const peer = await dialRaw(port, fixture, { greet })
  raws.push(peer)
  return peer
}

/** Resolves when the engine has made its side of the handshake, or closed. */
async function settled(peer: RawPeer): Promise<'open' | 'closed'> {
  await peer.next(MESSAGE.extended).catch(() => undefined)
  return peer.socket.destroyed ? 'closed' : 'open'
}

describe('places', () => {
  test('of an upload slot are for those who use them: an idle peer gives its slot up', {
    timeout: 30_000
  }, async () => {
    const { swarm } = await engines.seed(fixture, { uploadSlots: 2 })
    const interested = (peer: RawPeer): void => peer.send(formatSimple(MESSAGE.interested))
    const idle = await Promise.all([raw(swarm.port!, interested), raw(swarm.port!, interested)])
    for (const peer of idle) await peer.next(MESSAGE.unchoke)
    const third = await raw(swarm.port!, interested)
    await third.next(MESSAGE.unchoke)
    third.send(formatBlockRef(MESSAGE.request, 0, 0, 16_384))
    expect((await third.nextBlock()).bytes).toHaveLength(16_384)
  })

  test('one host has at most its share of all connections', async () => {
    const { swarm, torrent } = await engines.seed(fixture, { maxConnectionsPerHost: 3 })
    const peers = await Promise.all(Array.from({ length: 3 }, () => raw(swarm.port!)))
    for (const peer of peers) expect(await settled(peer)).toBe('open')
    expect(await settled(await raw(swarm.port!))).toBe('closed')
    expect(torrent.progress().peers).toBe(3)
    peers[0]!.socket.destroy()
    await peers[0]!.closed
    while (torrent.progress().peers > 2) await delay(5)
    expect(await settled(await raw(swarm.port!))).toBe('open')
  })

  test('when all are taken, the one of no use makes room', { timeout: 30_000 }, async () => {
    const { swarm, torrent } = await engines.seed(fixture, { maxConnections: 4 })
    const idle = await Promise.all(Array.from({ length: 3 }, () => raw(swarm.port!)))
    for (const peer of idle) expect(await settled(peer)).toBe('open')
    const early = connect(swarm.port!, '127.0.0.1')
    await new Promise((resolve) => early.once('close', resolve))
    let late: RawPeer
    do {
      await delay(500)
      late = await raw(swarm.port!)
    } while ((await settled(late)) === 'closed')
    expect(torrent.progress().peers).toBe(3)
    // it may hear of that after the late one was greeted
    await Promise.race(idle.map((peer) => peer.closed))
    expect(idle.filter((peer) => peer.socket.destroyed)).toHaveLength(1)
  })

  test('a connection without a handshake makes room for one with it', async () => {
    const { swarm } = await engines.seed(fixture, { maxConnections: 4 })
    const silent = Array.from({ length: 4 }, () => connect(swarm.port!, '127.0.0.1'))
    await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    const begun = performance.now()
    let late: RawPeer
    do {
      await delay(100)
      late = await raw(swarm.port!)
    } while ((await settled(late)) === 'closed')
    // Before its time for a handshake is over: ten seconds. It may be a second that it is left alone.
    expect(performance.now() - begun).toBeLessThan(9_000)
    for (const socket of silent) socket.destroy()
  })
})
