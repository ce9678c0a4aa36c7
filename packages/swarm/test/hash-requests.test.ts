import { setImmediate } from 'node:timers/promises'
import { TokenBucket } from '@svc/internal-net'
import { encodeBencode, leafLayer } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFileStorage, type TorrentStorage } from '../src/index.ts'
import { formatExtended, formatHashRange, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, type RawPeer } from './raw-peer.ts'
import type { Fixture } from './torrent-fixture.ts'

const PIECE = 16_384 * 64
const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: PIECE * 9 + 5, b: PIECE * 8 }, PIECE)
})
afterEach(() => engines.close())

async function raw(port: number, greet: (peer: RawPeer) => void = () => undefined): Promise<RawPeer> {
  const peer = await dialRaw(port, fixture, { greet })
  engines.before(() => peer.socket.destroy())
  return peer
}

describe('hash requests', () => {
  test('for two files in turn read only the requested parts, one at a time', async () => {
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
        await setImmediate()
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

  test('leaves that are wrong in storage are recomputed from the bytes', async () => {
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

  test('stay within the upload limit, and leave no endless debt', async () => {
    const limit = 100_000
    const clock = new VirtualClock()
    const uploadLimit = new TokenBucket(limit, clock.monotonic())
    const { swarm } = await engines.seed(fixture, { uploadLimit, clock })
    const peer = await raw(swarm.port!)
    const root = fixture.info.files[0]!.piecesRoot!
    const range = { root, baseLayer: 0, index: 0, length: 512, proofLayers: 0 }
    const requests = formatHashRange(MESSAGE.hashRequest, range)
    const answers = () => peer.received.filter(({ id }) => id === MESSAGE.hashes)
    const advance = (): Promise<unknown> => clock.advance(20)
    // threads read the hashes of the first answer, in their own time.
    peer.send(requests)
    await until(() => answers().length > 0, advance)
    const before = answers().length
    const beginMs = clock.monotonic()
    let debtMs = 0
    await until(
      () => clock.monotonic() >= beginMs + 3_000,
      async () => {
        peer.send(requests)
        await advance()
        debtMs = Math.max(debtMs, uploadLimit.waitMs(clock.monotonic()))
      }
    )
    await until(() => answers().length > before, advance)
    const seconds = (clock.monotonic() - beginMs) / 1000
    const later = answers().slice(before)
    expect(later.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThan(limit * seconds + 131_072)
    // rejects come at once and count: a sender waits for the limit after them, but not after all requests there ever were.
    expect(debtMs).toBeGreaterThan(0)
    expect(debtMs).toBeLessThan(3_000)
  })
})

test('a peer that endlessly requests missing hashes, or more than its queue holds, is closed; others are served', async () => {
  const { swarm } = await engines.seed(fixture, { uploadLimit: 100_000 })
  const root = fixture.info.files[0]!.piecesRoot!
  const good = { root, baseLayer: 6, index: 0, length: 8, proofLayers: 0 }
  for (const bad of [
    { ...good, index: 3 },
    { ...good, baseLayer: 0, length: 512 },
    { ...good, root: new Uint8Array(32) }
  ]) {
    const peer = await raw(swarm.port!)
    peer.send(Buffer.concat(Array.from({ length: 2_000 }, () => formatHashRange(MESSAGE.hashRequest, bad))))
    const honest = await raw(swarm.port!)
    honest.send(formatHashRange(MESSAGE.hashRequest, good))
    await peer.closed
    const rejects = peer.received.filter(({ id }) => id === MESSAGE.hashReject)
    expect(rejects.length).toBeLessThan(600)
    expect(Buffer.compare((await honest.next(MESSAGE.hashes)).subarray(48), honest.honestHashes(good)!)).toBe(0)
  }
})

test('metadata requests stay within the upload limit', async () => {
  const limit = 50_000
  const many = await engines.torrent(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`file-${n}`, 1])), PIECE)
  expect(many.info.infoBytes.length).toBeGreaterThan(16_384)
  const clock = new VirtualClock()
  const { swarm } = await engines.seed(many, { uploadLimit: limit, clock })
  const peer = await dialRaw(swarm.port!, many, {
    greet: (opened) => opened.send(formatExtended(0, encodeBencode({ m: { ut_metadata: 3 } })))
  })
  engines.before(() => peer.socket.destroy())
  await peer.next(MESSAGE.extended)
  let bytes = 0
  peer.socket.on('data', (data) => (bytes += data.length))
  const request = formatExtended(1, encodeBencode({ msg_type: 0, piece: 0 }))
  for (let n = 0; n < 60; n += 1) peer.send(request)
  // all of them are a megabyte
  await until(
    () => bytes >= 40_000,
    () => clock.advance(20)
  )
  for (let n = 0; n < 15; n += 1) await clock.advance(20)
  expect(bytes).toBeLessThan((limit * clock.monotonic()) / 1000 + 131_072)
})
