import { connect } from 'node:net'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatBlockRef, formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, MARK, type RawPeer } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 100_000 }, 65_536)
})
afterEach(() => engines.close())

async function raw(port: number, greet: (peer: RawPeer) => void = () => undefined): Promise<RawPeer> {
  const peer = await dialRaw(port, fixture, { greet })
  engines.before(() => peer.socket.destroy())
  return peer
}

/** Resolves when the engine has made its side of the handshake, or closed. */
async function settled(peer: RawPeer): Promise<'open' | 'closed'> {
  await peer.next(MESSAGE.extended).catch(() => undefined)
  return peer.socket.destroyed ? 'closed' : 'open'
}

describe('places', () => {
  test('idle peers give up their upload slots', async () => {
    const clock = new VirtualClock()
    const { swarm } = await engines.seed(fixture, { uploadSlots: 2, clock })
    const interested = (peer: RawPeer): void => peer.send(formatSimple(MESSAGE.interested))
    const idle = await Promise.all([raw(swarm.port!, interested), raw(swarm.port!, interested)])
    for (const peer of idle) await peer.next(MESSAGE.unchoke)
    const third = await raw(swarm.port!, (peer) => peer.send(Buffer.concat([formatSimple(MESSAGE.interested), MARK])))
    await third.next(MESSAGE.hashReject)
    expect(third.received.some(({ id }) => id === MESSAGE.unchoke)).toBe(false)
    await clock.advance(12_000)
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
    await until(() => torrent.progress().peers === 2)
    expect(await settled(await raw(swarm.port!))).toBe('open')
  })

  test('when all are taken, a useless one makes room', async () => {
    const clock = new VirtualClock()
    const { swarm, torrent } = await engines.seed(fixture, { maxConnections: 4, clock })
    const idle = await Promise.all(Array.from({ length: 3 }, () => raw(swarm.port!)))
    for (const peer of idle) expect(await settled(peer)).toBe('open')
    const early = connect(swarm.port!, '127.0.0.1')
    await new Promise((resolve) => early.once('close', resolve))
    await clock.advance(14_000)
    expect(await settled(await raw(swarm.port!))).toBe('closed')
    await clock.advance(2_000)
    expect(await settled(await raw(swarm.port!))).toBe('open')
    expect(torrent.progress().peers).toBe(3)
    // it may notice after the late one was greeted
    await Promise.race(idle.map((peer) => peer.closed))
    expect(idle.filter((peer) => peer.socket.destroyed)).toHaveLength(1)
  })

  test('a connection without a handshake makes room for one with it', async () => {
    const clock = new VirtualClock()
    const { swarm } = await engines.seed(fixture, { maxConnections: 4, clock })
    const silent = Array.from({ length: 4 }, () => connect(swarm.port!, '127.0.0.1'))
    await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    await clock.advance(900)
    expect(await settled(await raw(swarm.port!))).toBe('closed')
    // long before the end of its ten seconds for the handshake.
    await clock.advance(200)
    expect(await settled(await raw(swarm.port!))).toBe('open')
    for (const socket of silent) socket.destroy()
  })
})
