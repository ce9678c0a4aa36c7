import { equalBytes } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { formatBitfield, formatBlockRef, formatIndex, formatSimple, MESSAGE, readU32 } from '../src/wire/messages.ts'
import { Engines, expectFiles } from './engines.ts'
import { dialRaw, listenRaw } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

const engines = new Engines()
let fixture: Fixture
afterEach(() => engines.close())

test('a downloading peer serves pieces as they arrive, with the right bytes', async () => {
  // several pieces lie in what one frame holds.
  fixture = await engines.torrent({ a: 5 * 16_384 + 7 }, 16_384)
  const order = [1, 4, 0, 5, 3, 2]
  const bits = new Uint8Array([0x80 >> order[0]!])
  const source = await listenRaw(fixture, {
    greet: (peer) => {
      peer.send(formatBitfield(bits))
      peer.send(formatSimple(MESSAGE.unchoke))
    }
  })
  const swarm = await engines.open()
  const folder = await fixture.target('leech')
  const torrent = engines.watch(
    swarm.add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(folder),
      peers: [source.address]
    })
  )
  await until(() => torrent.state === 'fetching')
  const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
  await peer.next(MESSAGE.unchoke)
  const seen = new Set<number>()
  for (const [at, piece] of order.entries()) {
    await until(() => torrent.has(piece))
    if (at > 0) while (!seen.has(piece)) seen.add(readU32(await peer.next(MESSAGE.have), 0))
    const honest = peer.bytesOf(piece, 0, 16_384)
    peer.send(formatBlockRef(MESSAGE.request, piece, 0, honest.length))
    const block = await peer.nextBlock()
    expect(equalBytes(block.bytes, honest), `piece ${piece}`).toBe(true)
    const next = order[at + 1]
    if (next !== undefined) source.peers[0]!.send(formatIndex(MESSAGE.have, next))
  }
  await torrent.completed()
  await expectFiles(fixture, folder)
  expect(engines.warningsOf(torrent).filter(({ kind }) => kind === 'storage')).toEqual([])
  peer.socket.destroy()
  await source.close()
})
