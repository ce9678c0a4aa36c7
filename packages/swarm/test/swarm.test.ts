import { open, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { formatMagnet } from '@svc/metainfo'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createFileStorage, createSwarm, type TorrentStorage } from '../src/index.ts'
import { Engines, expectFiles } from './engines.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

const engines = new Engines()
let fixture: Fixture
afterEach(() => engines.close())

const PIECE = 65_536
const small = { 'a.bin': 1_000_003, 'sub/b.bin': PIECE, empty: 0, one: 1, 'twin-a': 300_000, 'ü/ñ.bin': 16_385 }

describe('between two engines', () => {
  test.each(['info', 'infohash', 'magnet'] as const)('everything arrives by %s', async (how) => {
    fixture = await engines.torrent(small, PIECE)
    const { address } = await engines.seed(fixture)
    const leech = await engines.open()
    const folder = await fixture.target('leech')
    const identity =
      how === 'info'
        ? { info: fixture.info }
        : how === 'infohash'
          ? { infohash: fixture.info.infohash }
          : { magnet: formatMagnet({ infohash: fixture.info.infohash, peers: [address] }) }
    const torrent = engines.watch(
      leech.add({ ...identity, storage: createFileStorage(folder), peers: how === 'magnet' ? [] : [address] })
    )
    await torrent.completed()
    await expectFiles(fixture, folder)
    expect(torrent.state).toBe('seeding')
    expect(torrent.progress().verifiedBytes).toBe(fixture.info.totalBytes)
    expect(engines.warningsOf(torrent)).toEqual([])
  })

  test('identical files share one layer and both arrive', async () => {
    const twin = new Uint8Array(400_000).fill(7)
    fixture = await engines.torrent({ a: twin, b: twin, c: 10 }, PIECE)
    const { address } = await engines.seed(fixture)
    const folder = await fixture.target('leech')
    const torrent = (await engines.open()).add({
      infohash: fixture.info.infohash,
      storage: createFileStorage(folder),
      peers: [address]
    })
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('two leeches with different halves trade', async () => {
    fixture = await engines.torrent({ a: 2_000_000, b: 2_000_000 }, PIECE)
    const one = await fixture.target('one')
    const two = await fixture.target('two')
    const halves = { [one]: 'a', [two]: 'b' }
    for (const folder of [one, two]) {
      const half = await engines.torrent({ [halves[folder]!]: fixture.files.get(halves[folder]!)! }, PIECE)
      await (await import('node:fs/promises')).cp(half.folder, folder, { recursive: true })
    }
    const first = await engines.open()
    const second = await engines.open()
    const a = first.add({ info: fixture.info, pieceLayers: fixture.layers, storage: createFileStorage(one) })
    const b = second.add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(two),
      peers: [`127.0.0.1:${first.port}`]
    })
    await Promise.all([a.completed(), b.completed()])
    await expectFiles(fixture, one)
    await expectFiles(fixture, two)
  })

  test('five engines fetch from one seed and each other', async () => {
    fixture = await engines.torrent({ a: 3_000_000, b: 100 }, PIECE)
    const { address } = await engines.seed(fixture)
    const peers = [address]
    const torrents = []
    for (let index = 0; index < 5; index += 1) {
      const swarm = await engines.open()
      const folder = await fixture.target(`leech-${index}`)
      torrents.push({
        folder,
        torrent: swarm.add({ info: fixture.info, storage: createFileStorage(folder), peers: [...peers] })
      })
      peers.push(`127.0.0.1:${swarm.port}`)
    }
    await Promise.all(torrents.map(({ torrent }) => torrent.completed()))
    for (const { folder } of torrents) await expectFiles(fixture, folder)
  })

  test('a file of priority 0 is not fetched until it gets one', async () => {
    fixture = await engines.torrent({ a: 500_000, b: 500_000 }, PIECE)
    const { address, torrent: seeding } = await engines.seed(fixture)
    const torrent = (await engines.open()).add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(await fixture.target('leech'))
    })
    torrent.priority(1, 0)
    const first = new Promise((resolve) => torrent.once('file', resolve))
    torrent.addPeer(address)
    expect(await first).toMatchObject({ path: 'a' })
    expect(seeding.progress().uploadedBytes).toBeLessThanOrEqual(500_000)
    torrent.priority(1, 3)
    await torrent.completed()
  })

  test('the range that a reader waits for comes first, until another replaces it', async () => {
    const [sizeBytes, start] = [40 * PIECE, 31 * PIECE]
    fixture = await engines.torrent({ a: 5 * PIECE, b: sizeBytes }, PIECE)
    const { address } = await engines.seed(fixture)
    const torrent = (await engines.open()).add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(await fixture.target('leech'))
    })
    const { firstPiece } = torrent.layout!.files[1]!
    torrent.hasten([{ fileIndex: 0, start: 0, end: PIECE }])
    torrent.hasten([
      { fileIndex: 1, start: start + 1, end: start + 2 * PIECE },
      { fileIndex: 1, start: sizeBytes, end: sizeBytes + 1 },
      { fileIndex: 7, start: 0, end: 1 }
    ])
    const pieces: number[] = []
    torrent.on('piece', (piece) => pieces.push(piece))
    torrent.addPeer(address)
    await torrent.completed()
    const awaited = [firstPiece + 31, firstPiece + 32]
    expect(pieces.slice(0, 20)).toEqual(expect.arrayContaining(awaited))
    expect(new Set(pieces).size).toBe(45)
    torrent.hasten([])
  })
})

describe('storage', () => {
  test('verified pieces are not fetched again after a restart; damaged ones are', async () => {
    fixture = await engines.torrent({ a: 2_000_000, b: 300_000 }, PIECE)
    const { address, torrent: seeding } = await engines.seed(fixture)
    const folder = await fixture.target('leech')
    const add = async () =>
      // the second one hears nothing of the first, which could give it that piece
      (await engines.open({ pex: false })).add({
        info: fixture.info,
        pieceLayers: fixture.layers,
        storage: createFileStorage(folder),
        peers: [address]
      })
    await (await add()).completed()
    const once = seeding.progress().uploadedBytes
    const file = path.join(folder, 'torrent', 'a')
    const handle = await open(file, 'r+')
    await handle.write(new Uint8Array([1, 2, 3]), 0, 3, 5 * PIECE + 17)
    await handle.close()
    await (await add()).completed()
    expect(seeding.progress().uploadedBytes - once).toBe(PIECE)
    await expectFiles(fixture, folder)
  })

  test('an interrupted download resumes from its verified pieces', async () => {
    fixture = await engines.torrent({ a: 3_000_000, b: 300_000 }, PIECE)
    const { address, torrent: seeding } = await engines.seed(fixture, { uploadLimit: 2_000_000 })
    const folder = await fixture.target('leech')
    const add = async () =>
      (await engines.open()).add({
        info: fixture.info,
        pieceLayers: fixture.layers,
        storage: createFileStorage(folder),
        peers: [address]
      })
    const first = await add()
    let pieces = 0
    await new Promise<void>((resolve) =>
      first.on('piece', () => {
        pieces += 1
        if (pieces === 15) resolve()
      })
    )
    await first.remove()
    // until it knows, it goes on sending
    await expect.poll(() => seeding.progress().peers).toBe(0)
    const before = seeding.progress().uploadedBytes
    const second = await add()
    await second.completed()
    await expectFiles(fixture, folder)
    expect(seeding.progress().uploadedBytes - before).toBeLessThanOrEqual(
      fixture.info.totalBytes - 15 * PIECE + 4 * PIECE
    )
    // the end game may ask for a few blocks twice
    expect(second.progress().downloadedBytes).toBeLessThanOrEqual(fixture.info.totalBytes - 15 * PIECE + 2 * PIECE)
  })

  test('a storage that refuses a correct file fails the torrent after one retry', async () => {
    fixture = await engines.torrent({ a: 200_000 }, PIECE)
    const { address } = await engines.seed(fixture)
    const storage = createFileStorage(await fixture.target('leech'))
    const refusing = Object.assign(Object.create(storage) as TorrentStorage, {
      open: storage.open.bind(storage),
      state: storage.state.bind(storage),
      read: storage.read.bind(storage),
      writer: storage.writer.bind(storage),
      close: storage.close.bind(storage),
      fileComplete: async () => 'wrong' as const
    })
    const torrent = (await engines.open()).add({ info: fixture.info, storage: refusing, peers: [address] })
    await expect(torrent.completed()).rejects.toMatchObject({ code: 'E_STORAGE', reason: 'refused' })
    expect(torrent.state).toBe('failed')
  })

  test('a write error fails the torrent with its cause', async () => {
    fixture = await engines.torrent({ a: 200_000 }, PIECE)
    const { address } = await engines.seed(fixture)
    const folder = await fixture.target('leech')
    const storage = createFileStorage(folder)
    // a descriptor that cannot be written to.
    await writeFile(path.join(folder, 'readonly'), '')
    const readonly = await open(path.join(folder, 'readonly'), 'r')
    const failing: TorrentStorage = {
      open: (layout) => storage.open(layout),
      state: (file) => storage.state(file),
      read: (index, offset, target) => storage.read(index, offset, target),
      writer: async () => ({
        fd: readonly.fd,
        write: async () => undefined,
        markWritten: () => undefined,
        unmark: () => undefined
      }),
      fileComplete: (index) => storage.fileComplete(index),
      close: () => storage.close()
    }
    const torrent = (await engines.open()).add({ info: fixture.info, storage: failing, peers: [address] })
    await expect(torrent.completed()).rejects.toMatchObject({
      code: 'E_STORAGE',
      reason: 'write',
      cause: { code: 'EBADF' }
    })
    await torrent.remove()
    await readonly.close()
  })

  test('if storage cannot be closed, remove and close report it, and everything else has ended', async () => {
    fixture = await engines.torrent({ a: 200_000 }, PIECE)
    const folder = await fixture.target('leech')
    const full = new Error('no room for the journal')
    const failing = (): TorrentStorage => {
      const storage = createFileStorage(folder)
      return Object.assign(storage, {
        close: async () => {
          await Object.getPrototypeOf(storage).close.call(storage)
          throw full
        }
      })
    }
    const engine = await createSwarm({ peerAddress: { host: '127.0.0.1', port: 0 }, verifyThreads: 1 })
    const torrent = engine.add({ info: fixture.info, storage: failing(), peers: [] })
    const waiting = expect(torrent.completed()).rejects.toMatchObject({ code: 'E_CLOSED' })
    await expect(torrent.remove()).rejects.toBe(full)
    await waiting
    expect(torrent.state).toBe('closed')
    engine.add({ info: fixture.info, storage: failing(), peers: [] })
    await expect(engine.close()).rejects.toBe(full)
  })

  test('a storage without descriptors receives bytes by write', async () => {
    fixture = await engines.torrent({ a: 200_001, b: 5 }, PIECE)
    const { address } = await engines.seed(fixture)
    const files = [new Uint8Array(200_001), new Uint8Array(5)]
    const memory: TorrentStorage = {
      open: async () => undefined,
      state: async () => ({ kind: 'partial', ranges: [] }),
      read: async (index, offset, target) => {
        const part = files[index]!.subarray(offset, offset + target.length)
        target.set(part)
        return part.length
      },
      writer: async (index) => ({
        fd: undefined,
        markWritten: () => undefined,
        unmark: () => undefined,
        write: async (offset, bytes) => files[index]!.set(bytes, offset)
      }),
      fileComplete: async () => 'ok',
      close: async () => undefined
    }
    const torrent = (await engines.open()).add({ info: fixture.info, storage: memory, peers: [address] })
    await torrent.completed()
    expect(files).toEqual([fixture.files.get('a'), fixture.files.get('b')])
  })

  test('a seed that loses a file stops offering it and reports that; the rest still arrives', async () => {
    fixture = await engines.torrent({ a: 300_000, b: 300_000 }, PIECE)
    const good = createFileStorage(fixture.folder, { trusted: true })
    const losing: TorrentStorage = {
      open: (layout) => good.open(layout),
      state: (file) => good.state(file),
      writer: (index) => good.writer(index),
      read: async (index, offset, target) => {
        if (index === 1) throw Object.assign(new Error('gone'), { code: 'ENOENT' })
        return good.read(index, offset, target)
      },
      fileComplete: (index) => good.fileComplete(index),
      close: () => good.close()
    }
    const { address, torrent: seeding } = await engines.seed(fixture, {}, { storage: losing })
    const folder = await fixture.target('leech')
    const leech = await engines.open()
    const torrent = leech.add({ info: fixture.info, storage: createFileStorage(folder), peers: [address] })
    await new Promise((resolve) => torrent.once('file', resolve))
    // the other file may have been asked for a moment later
    await expect.poll(() => engines.warningsOf(seeding)).toMatchObject([{ kind: 'storage', source: 'b' }])
    // an honest seed finishes the job.
    const { address: other } = await engines.seed(fixture)
    torrent.addPeer(other)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })
})

test('nonsensical options are refused with a code', async () => {
  fixture = await engines.torrent({ a: 10 }, PIECE)
  const swarm = await engines.open()
  const storage = createFileStorage(await fixture.target('x'))
  expect(() => swarm.add({ storage })).toThrow(expect.objectContaining({ code: 'E_OPTION', reason: 'identity' }))
  expect(() => swarm.add({ infohash: new Uint8Array(20), storage })).toThrow(
    expect.objectContaining({ code: 'E_OPTION', reason: 'infohash' })
  )
  swarm.add({ info: fixture.info, storage })
  expect(() => swarm.add({ info: fixture.info, storage })).toThrow(
    expect.objectContaining({ code: 'E_OPTION', reason: 'duplicate' })
  )
  await swarm.close()
  expect(() => swarm.add({ info: fixture.info, storage })).toThrow(expect.objectContaining({ code: 'E_CLOSED' }))
})

test('closing leaves no socket, timer, thread or descriptor', async () => {
  // outlives the engines
  fixture = await makeTorrent(small, PIECE)
  onTestFinished(fixture.remove)
  const count = async () => (await (await import('node:fs/promises')).readdir('/proc/self/fd')).length
  // of other tests in this process, too
  const resources = () =>
    process.getActiveResourcesInfo().filter((name) => /^(TCPSocketWrap|UDPWrap|TCPServerWrap|MessagePort)$/.test(name))
      .length
  const round = async (name: string) => {
    const { address } = await engines.seed(fixture)
    const folder = await fixture.target(name)
    await (await engines.open())
      .add({ infohash: fixture.info.infohash, storage: createFileStorage(folder), peers: [address] })
      .completed()
    await engines.close()
  }
  await round('warm-up')
  const before = [await count(), resources()]
  await round('counted')
  // the other end of a connection hears of its end a moment later; after ten seconds the spare threads are gone, and their descriptors
  const left = async () => [(await count()) <= before[0]!, resources() <= before[1]!]
  await expect.poll(left).toEqual([true, true])
  expect(await readFile(fixture.torrentFile)).toBeDefined()
})
