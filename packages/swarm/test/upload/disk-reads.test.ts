import { equalBytes } from '@svc/metainfo'
import { afterEach, expect, test } from 'vitest'
import { createFileStorage, type TorrentStorage } from '../../src/index.ts'
import { formatBlockRef, formatSimple, MESSAGE, parseBlockRef } from '../../src/wire/messages.ts'
import { Engines } from '../engines.ts'
import { dialRaw, type RawPeer } from '../raw-peer.ts'
import type { Fixture } from '../torrent-fixture.ts'

const PIECE = 65_536
const BLOCK = 16_384

const engines = new Engines()
let fixture: Fixture
afterEach(() => engines.close())

/** The fixture's files, as if none were in memory: every read waits for the gate. */
function diskStorage(gate: () => Promise<void>): TorrentStorage {
  const files = createFileStorage(fixture.folder, { trusted: true })
  return {
    open: (layout) => files.open(layout),
    state: (file) => files.state(file),
    read: async (fileIndex, offset, target) => {
      await gate()
      return files.read(fileIndex, offset, target)
    },
    writer: (fileIndex) => files.writer(fileIndex),
    fileComplete: (fileIndex) => files.fileComplete(fileIndex),
    close: () => files.close()
  }
}

async function seedTo(storage: TorrentStorage, uploadLimit = 0): Promise<RawPeer> {
  const swarm = await engines.open({ uploadLimit })
  const torrent = engines.watch(swarm.add({ info: fixture.info, pieceLayers: fixture.layers, storage }))
  await torrent.completed()
  const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
  await peer.next(MESSAGE.unchoke)
  return peer
}

for (const uploadLimit of [0, 100_000_000])
  test(`blocks that a thread reads arrive with their bytes, in any order (limit ${uploadLimit})`, async () => {
    fixture = await engines.torrent({ a: 9 * PIECE + 7, b: 3 }, PIECE)
    const peer = await seedTo(
      diskStorage(() => new Promise((resolve) => setImmediate(resolve))),
      uploadLimit
    )
    const asked = [
      ...Array.from({ length: 36 }, (_, at) => ({ piece: Math.floor(at / 4), begin: (at % 4) * BLOCK, length: BLOCK })),
      { piece: 9, begin: 0, length: 7 },
      { piece: 4, begin: 5, length: 40_000 },
      { piece: 0, begin: 0, length: PIECE },
      { piece: 10, begin: 1, length: 2 }
    ]
    for (const { piece, begin, length } of asked) peer.send(formatBlockRef(MESSAGE.request, piece, begin, length))
    for (const { piece, begin, length } of asked) {
      const block = await peer.nextBlock()
      expect(block).toMatchObject({ piece, begin })
      expect(equalBytes(block.bytes, peer.bytesOf(piece, begin, length)), `${piece}:${begin}`).toBe(true)
    }
    peer.socket.destroy()
  })

test('requests cancelled during a read are rejected, and the others arrive', async () => {
  fixture = await engines.torrent({ a: 4 * PIECE }, PIECE)
  const gate = Promise.withResolvers<void>()
  const peer = await seedTo(diskStorage(() => gate.promise))
  const begins = [0, BLOCK, 2 * BLOCK, 3 * BLOCK]
  for (const begin of begins) peer.send(formatBlockRef(MESSAGE.request, 1, begin, BLOCK))
  for (const begin of [0, 2 * BLOCK]) peer.send(formatBlockRef(MESSAGE.cancel, 1, begin, BLOCK))
  expect(parseBlockRef(await peer.next(MESSAGE.reject)).begin).toBe(0)
  expect(parseBlockRef(await peer.next(MESSAGE.reject)).begin).toBe(2 * BLOCK)
  gate.resolve()
  for (const begin of [BLOCK, 3 * BLOCK]) {
    const block = await peer.nextBlock()
    expect(block.begin).toBe(begin)
    expect(equalBytes(block.bytes, peer.bytesOf(1, begin, BLOCK))).toBe(true)
  }
  expect(peer.blocks).toEqual([])
  peer.socket.destroy()
})

test("a failing read rejects the file's requests, and the file is no longer offered", async () => {
  fixture = await engines.torrent({ a: 4 * PIECE }, PIECE)
  const peer = await seedTo(
    diskStorage(async () => {
      throw new Error('the disk is gone')
    })
  )
  for (const piece of [0, 3]) peer.send(formatBlockRef(MESSAGE.request, piece, 0, BLOCK))
  const rejected = [await peer.next(MESSAGE.reject), await peer.next(MESSAGE.reject)]
  expect(rejected.map((body) => parseBlockRef(body).piece).sort()).toEqual([0, 3])
  peer.send(formatBlockRef(MESSAGE.request, 1, 0, BLOCK))
  expect(parseBlockRef(await peer.next(MESSAGE.reject)).piece).toBe(1)
  peer.socket.destroy()
})
