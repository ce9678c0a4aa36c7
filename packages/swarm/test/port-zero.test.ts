import { encodeBencode } from '@svc/metainfo'
import { expect, test } from 'vitest'
import { PeerBook } from '../src/torrent/peer-book.ts'
import { parseExtendedHandshake, parsePex } from '../src/wire/extensions.ts'
import { tryParseLsd } from '../src/wire/lsd.ts'
import { formatExtended, formatSimple, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw } from './raw-peer.ts'
import { makeTorrent } from './torrent-fixture.ts'

// Nothing can be sent to port 0: whoever names it, or comes from it, is passed over. Datagrams: listener.test.ts; nodes of the DHT:
// krpc.test.ts and checked-socket.test.ts of the discovery.

const compact = (port: number): Buffer => Buffer.from([8, 8, 8, 8, port >> 8, port & 255])

test('peer exchange: entries with port 0 are left out, the others accepted', () => {
  const added = Buffer.concat([compact(0), compact(6881), compact(0)])
  const added6 = Buffer.concat([Buffer.alloc(18, 1).fill(0, 16), Buffer.alloc(18, 2)])
  expect(parsePex(encodeBencode({ added, added6 })).map(({ port }) => port)).toEqual([6881, 0x0202])
})

test('local discovery: an announce of port 0 is ignored', () => {
  const of = (port: string): Buffer =>
    Buffer.from(`BT-SEARCH * HTTP/1.1\r\nPort: ${port}\r\nInfohash: ${'a'.repeat(40)}\r\n\r\n`)
  for (const port of ['0', '00000', '-1', '65536', '']) expect(tryParseLsd(of(port))).toBeUndefined()
  expect(tryParseLsd(of('1'))?.port).toBe(1)
})

test('port 0 is refused, even from the user', () => {
  for (const source of ['user', 'stranger'] as const)
    for (const port of [0, -1, 65_536, 1.5, Number.NaN])
      expect(new PeerBook().add({ host: '8.8.8.8', port }, source, true)).toBe(false)
})

test('a peer that claims to listen on port 0 is served, and not passed on', async () => {
  const engines = new Engines()
  const fixture = await makeTorrent({ a: 10 }, 16_384)
  try {
    const { swarm } = await engines.seed(fixture)
    const greeting = (p: number): Uint8Array => formatExtended(0, encodeBencode({ m: { ut_pex: 2 }, p }))
    const peers = await Promise.all(
      [0, 0, 0].map((port) =>
        dialRaw(swarm.port!, fixture, {
          greet: (to) => {
            to.send(greeting(port))
            to.send(formatSimple(MESSAGE.interested))
          }
        })
      )
    )
    for (const peer of peers) await peer.next(MESSAGE.unchoke)
    for (const peer of peers) {
      const told = peer.received.filter(({ id, body }) => id === MESSAGE.extended && body[0] === 2)
      for (const { body } of told) expect(parsePex(body.subarray(1))).toEqual([])
      peer.socket.destroy()
    }
    expect(parseExtendedHandshake(encodeBencode({ p: 0 })).listenPort ?? 0).toBe(0)
  } finally {
    await engines.close()
    await fixture.remove()
  }
})
