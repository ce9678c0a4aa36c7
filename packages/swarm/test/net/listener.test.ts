import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { systemClock } from '@svc/internal-clock'
import { expect, test } from 'vitest'
import { guarded } from '../../src/net/guarded.ts'
import { Listener } from '../../src/net/listener.ts'
import { refuseUtp } from '../../src/net/utp-responder.ts'
import { Engines } from '../engines.ts'
import { makeTorrent } from '../torrent-fixture.ts'

function syn(id: number): Buffer {
  const packet = Buffer.alloc(20)
  packet[0] = 0x41
  packet.writeUInt16BE(id, 2)
  return packet
}

test('a datagram from source port 0 is ignored, the next one answered', async () => {
  const from = createSocket('udp4')
  const socket = createSocket('udp4')
  await Promise.all([from, socket].map((udp) => new Promise<void>((done) => udp.bind(0, '127.0.0.1', done))))
  const answer = new Promise<Buffer>((resolve) => from.once('message', resolve))
  refuseUtp(socket, systemClock)
  socket.emit('message', syn(1), { address: '127.0.0.1', port: 0 })
  socket.emit('message', syn(2), { address: '127.0.0.1', port: from.address().port })
  expect((await answer).readUInt16BE(2)).toBe(2)
  await Promise.all([from, socket].map((udp) => new Promise<void>((done) => udp.close(done))))
})

/** A datagram that no kernel would send. */
const FORGE = `
import socket, struct, sys
port = int(sys.argv[1])
payload = bytes([0x41]) + bytes(19)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
raw.sendto(struct.pack('!HHHH', 0, port, 8 + len(payload), 0) + payload, ('127.0.0.1', port))
`
const canForge = process.getuid?.() === 0 && spawnSync('/usr/bin/python3', ['--version']).status === 0

test.skipIf(!canForge)('a running engine outlives a forged datagram from source port 0', async () => {
  const engines = new Engines()
  engines.overUdp = true
  const fixture = await makeTorrent({ a: 10 }, 16_384)
  const { swarm } = await engines.seed(fixture)
  expect(spawnSync('/usr/bin/python3', ['-c', FORGE, String(swarm.port)]).status).toBe(0)
  const udp = createSocket('udp4')
  const answer = new Promise<Buffer>((resolve) => udp.once('message', resolve))
  udp.send(syn(7), swarm.port!, '127.0.0.1')
  expect((await answer).readUInt16BE(2)).toBe(7)
  await new Promise<void>((done) => udp.close(done))
  await engines.close()
  await fixture.remove()
})

test('a listener whose UDP port is taken works without UDP, and leaks no socket', async () => {
  // an address of its own, on which the number is free for TCP
  const host = '127.0.0.66'
  const taken = createSocket('udp4')
  await new Promise<void>((done) => taken.bind(0, host, done))
  const { port } = taken.address()
  const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length
  const before = sockets()
  const listener = await Listener.open({ host, port, clock: systemClock, accept: () => undefined })
  expect(listener.port).toBe(port)
  await listener.close()
  await expect.poll(sockets).toBeLessThanOrEqual(before)
  await new Promise<void>((done) => taken.close(done))
})

test('an error in a handler is reported and does not spread', async () => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  const listener = await Listener.open({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    accept: () => {
      throw new Error('a defect in accepting')
    }
  })
  const socket = connect(listener.port, '127.0.0.1')
  await new Promise((resolve) => socket.once('close', resolve))
  guarded(() => {
    throw new Error('a defect in a timer')
  })()
  while (warnings.filter(({ name }) => name === 'SwarmDefect').length < 2)
    await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  await listener.close()
})
