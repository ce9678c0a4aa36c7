// The memory that peers cost that request much and read nothing.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createFileStorage, type TorrentStorage } from '../../src/index.ts'
import { FramePool } from '../../src/upload/frame.ts'
import { formatBlockRef, formatSimple, MESSAGE } from '../../src/wire/messages.ts'
import { Engines } from '../engines.ts'
import { dialRaw } from '../raw-peer.ts'
import type { Fixture } from '../torrent-fixture.ts'

const MIB = 1_048_576
const BLOCK = 16_384

const engines = new Engines()
let fixture: Fixture
beforeEach(async () => {
  fixture = await engines.torrent({ a: 16 * MIB }, MIB)
})
afterEach(() => engines.close())

/** Frames that were acquired and not released: they are sent, or a thread reads into them. */
const outstanding = (): number =>
  vi.mocked(FramePool.prototype.acquire).mock.calls.length - vi.mocked(FramePool.prototype.release).mock.calls.length

/** A storage that reads nothing from memory. */
function slowStorage(): TorrentStorage {
  const files = createFileStorage(fixture.folder, { trusted: true })
  return {
    open: (layout) => files.open(layout),
    state: (file) => files.state(file),
    read: (fileIndex, offset, target) => files.read(fileIndex, offset, target),
    writer: (fileIndex) => files.writer(fileIndex),
    fileComplete: (fileIndex) => files.fileComplete(fileIndex),
    close: () => files.close()
  }
}

/** Peers that request the whole file, and read nothing from then on. */
async function stalled(count: number, uploadLimit: number): Promise<void> {
  const swarm = await engines.open({ uploadLimit })
  const torrent = engines.watch(swarm.add({ info: fixture.info, pieceLayers: fixture.layers, storage: slowStorage() }))
  await torrent.completed()
  vi.spyOn(FramePool.prototype, 'acquire')
  vi.spyOn(FramePool.prototype, 'release')
  for (let i = 0; i < count; i += 1) {
    const peer = await dialRaw(swarm.port!, fixture, { greet: (raw) => raw.send(formatSimple(MESSAGE.interested)) })
    engines.before(() => peer.socket.destroy())
    await peer.next(MESSAGE.unchoke)
    peer.socket.pause()
    for (let at = 0; at < 16 * MIB; at += BLOCK)
      peer.send(formatBlockRef(MESSAGE.request, Math.floor(at / MIB), at % MIB, BLOCK))
  }
  // until nothing is sent any more: the kernel has what it takes
  let sent = -1
  await vi.waitFor(
    () => {
      const before = sent
      sent = torrent.progress().uploadedBytes
      expect(sent).toBeGreaterThan(0)
      expect(sent).toBe(before)
    },
    { interval: 300, timeout: 60_000 }
  )
}

test.each([0, 1_000_000_000])(
  'a peer that reads nothing holds one frame, and no file is read for it (limit %i)',
  async (limit) => {
    await stalled(2, limit)
    // a read during the flight of a frame would hold another frame
    expect(outstanding()).toBeLessThanOrEqual(2)
  }
)
