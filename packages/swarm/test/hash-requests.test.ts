import { encodeBencode, leafLayer } from '@svc/metainfo'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFileStorage, type TorrentStorage } from '../src/index.ts'
import { formatExtended, formatHashRange, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, type RawPeer } from './raw-peer.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

const PIECE = 16_384 * 64
let engines: Engines
let fixture: Fixture
let raws: RawPeer[]
beforeEach(async () => {
  engines = new Engines()
  raws = []
  fixture = await makeTorrent({ a: PIECE * 9 + 5, b: PIECE * 8 }, PIECE)
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

describe('hash requests', () => {
  test('of two files in turn read only what is asked for, one at a time', async () => {
    const asked: { fileIndex: number; start: number; end: number }[] = []
    const files = createFileStorage(fixture.folder, { trusted: true })
    let loading = 0
    let mostLoading = 0
    const storage: TorrentStorage = {
      open: (layout) => files.open(layout),
      state: (file) => files.state(file),
      read: (...request) => files.read(...request),
      writer: (file) => files.writer(file),
      fileComplete: (file) => files.fileComplete(file),
      close: () => files.close(),
      leaves: async (fileIndex, start, end) => {
        asked.push({ fileIndex, start, end })
        loading += 1
        mostLoading = Math.max(mostLoading, loading)
        await delay(1)
        loading -= 1
        const bytes = fixture.files.get(fixture.info.files[fileIndex]!.path)!
        return leafLayer(bytes).slice(start * 32, end * 32)
      }
    }
    const { swarm } = await engines.seed(fixture, {}, { storage, upload: false })
    const peers = await Promise.all([raw(swarm.port!), raw(swarm.port!)])
    const roots = fixture.info.files.map((file) => file.piecesRoot!)
    for (let index = 0; index < 20; index += 1) {
      const range = { root: roots[index % 2]!, baseLayer: 0, index: 64 * (index % 5), length: 2, proofLayers: 0 }
      for (const peer of peers) {
        peer.send(formatHashRange(MESSAGE.hashRequest, range))
        expect(Buffer.compare((await peer.next(MESSAGE.hashes)).subarray(48), peer.honestHashes(range)!)).toBe(0)
      }
      for (const peer of peers) peer.send(formatHashRange(MESSAGE.hashRequest, range))
      for (const peer of peers) await peer.next(MESSAGE.hashes)
    }
    expect(asked).toHaveLength(80)
    for (const { start, end } of asked) expect(end - start).toBe(64)
    expect(mostLoading).toBe(1)
  })

  test('leaves that the storage has wrong are made from the bytes', async () => {
    const files = createFileStorage(fixture.folder, { trusted: true })
    const storage = Object.assign(files, {
      leaves: async (_file: number, start: number, end: number) => new Uint8Array((end - start) * 32).fill(1)
    })
    const { swarm } = await engines.seed(fixture, {}, { storage })
    const peer = await raw(swarm.port!)
    const range = { root: fixture.info.files[0]!.piecesRoot!, baseLayer: 0, index: 0, length: 64, proofLayers: 0 }
    peer.send(formatHashRange(MESSAGE.hashRequest, range))
    expect(Buffer.compare((await peer.next(MESSAGE.hashes)).subarray(48), peer.honestHashes(range)!)).toBe(0)
  })

  test('and metadata requests stay within the upload limit, and leave no endless debt', async () => {
    const limit = 100_000
    const { swarm } = await engines.seed(fixture, { uploadLimit: limit })
    const peer = await raw(swarm.port!, (opened) =>
      opened.send(formatExtended(0, encodeBencode({ m: { ut_metadata: 3 } })))
    )
    const root = fixture.info.files[0]!.piecesRoot!
    const range = { root, baseLayer: 0, index: 0, length: 512, proofLayers: 0 }
    let bytes = 0
    let debtMs = 0
    peer.socket.on('data', (data) => {
      bytes += data.length
    })
    const begun = performance.now()
    while (performance.now() - begun < 3_000) {
      for (let index = 0; index < 8; index += 1) {
        peer.send(formatHashRange(MESSAGE.hashRequest, range))
        peer.send(formatExtended(1, encodeBencode({ msg_type: 0, piece: 0 })))
      }
      await delay(20)
      debtMs = Math.max(debtMs, swarm.uploadBudget!.waitMs(performance.now()))
    }
    const seconds = (performance.now() - begun) / 1000
    // Rejects of what is beyond the queue are as long as their requests and come at once.
    const rejects = 150 * 16 * 60
    expect(bytes).toBeLessThan(limit * seconds + 131_072 + rejects)
    expect(peer.received.some(({ id }) => id === MESSAGE.hashes)).toBe(true)
    // They count: who waits for the limit waits for them.
    expect(debtMs).toBeGreaterThan(0)
    expect(debtMs).toBeLessThan(3_000)
  })
})
