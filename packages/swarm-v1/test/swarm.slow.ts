import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type DownloadLimit, SharedDownloadLimit } from '@svc/internal-net'
import { encodeBencode } from '@svc/metainfo'
import { type V1Layout, type V1Storage, V1Swarm, type V1Torrent } from '@svc/swarm-v1'
import { startLyingPeer } from '@svc/testkit/lying-v1-peer'
import { until } from '@svc/testkit/until'
import { haveLibtorrent, startV1Peer, type V1PeerOptions } from '@svc/testkit/v1-peer'
import { afterEach, describe, expect, test } from 'vitest'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-v1-'))
  cleanups.push(() => rm(path, { recursive: true, force: true }))
  return path
}

async function peer(options: V1PeerOptions) {
  const started = await startV1Peer(options)
  cleanups.push(() => started.stop())
  return started
}

async function swarm(
  uploadLimitBytesPerSecond = 0,
  dht: false | string[] = false,
  downloads?: DownloadLimit
): Promise<V1Swarm> {
  const started = await V1Swarm.start({
    peerAddress: { host: '127.0.0.1', port: 0 },
    dht,
    policy: 'machine',
    uploadLimitBytesPerSecond,
    downloads
  })
  cleanups.push(() => started.close())
  return started
}

/** Files in memory, as a store would hold them: nothing until written. */
class MemoryFiles implements V1Storage {
  readonly files: Buffer[]
  readonly written: [number, number][][]
  constructor(layout: V1Layout, content?: ReadonlyMap<string, Buffer>) {
    this.files = layout.files.map((file) => content?.get(file.path) ?? Buffer.alloc(file.sizeBytes))
    this.written = layout.files.map((file) => (content ? [[0, file.sizeBytes]] : []))
  }
  has(file: number, start: number, end: number) {
    return this.written[file]!.some(([from, to]) => from <= start && end <= to)
  }
  async read(file: number, offset: number, target: Uint8Array) {
    target.set(this.files[file]!.subarray(offset, offset + target.length))
  }
  async write(file: number, offset: number, bytes: Uint8Array) {
    this.files[file]!.set(bytes, offset)
    this.written[file]!.push([offset, offset + bytes.length])
  }
}

const CONTENT = new Map([
  ['config.json', Buffer.from('{"a": 1}')],
  ['model-q8_0.gguf', randomBytes(300_001)],
  ['sub/ü n.txt', randomBytes(16_384)],
  ['empty', Buffer.alloc(0)]
])

async function seedFolder(): Promise<string> {
  const root = await folder()
  for (const [path, bytes] of CONTENT) {
    await mkdir(dirname(join(root, 'model', path)), { recursive: true })
    await writeFile(join(root, 'model', path), bytes)
  }
  return root
}

function joined(
  client: V1Swarm,
  infohash: string,
  peers: string[],
  more: Partial<Parameters<V1Swarm['join']>[0]> = {}
) {
  let files: MemoryFiles | undefined
  const warnings: string[] = []
  const torrent: V1Torrent = client.join({
    infohash,
    trackers: [],
    peers,
    metadataTimeoutMs: 10_000,
    open: async (layout) => (files = new MemoryFiles(layout)),
    onWarning: (message) => warnings.push(message),
    ...more
  })
  return { torrent, warnings, files: () => files! }
}

describe.skipIf(!haveLibtorrent)('a BitTorrent v1 swarm with libtorrent', () => {
  test('a magnet alone is enough: metadata and content come from the peer', async () => {
    const seed = await peer({ mode: 'seed', folder: await seedFolder(), name: 'model' })
    const { torrent, files } = joined(await swarm(), seed.infohash, [seed.address])
    const layout = await torrent.ready
    await torrent.done
    expect(layout.name).toBe('model')
    for (const [path, bytes] of CONTENT) {
      const index = layout.files.findIndex((file) => file.path === path)
      expect(files().files[index]!.equals(bytes), path).toBe(true)
    }
  })

  test('serves its files to another client that has only the info dictionary', async () => {
    const seed = await peer({ mode: 'seed', folder: await seedFolder(), name: 'model' })
    const first = joined(await swarm(), seed.infohash, [seed.address])
    const { info } = await first.torrent.ready
    await first.torrent.leave()

    const client = await swarm()
    const { torrent } = joined(client, seed.infohash, [], {
      info,
      complete: true,
      open: async (layout) => new MemoryFiles(layout, CONTENT)
    })
    await torrent.done
    const target = await folder()
    const leech = await peer({
      mode: 'leech',
      folder: target,
      torrent: seed.torrent,
      peers: [`127.0.0.1:${client.address.port}`]
    })
    await leech.until((state) => state.seeding)
    for (const [path, bytes] of CONTENT) expect((await readFile(join(target, 'model', path))).equals(bytes)).toBe(true)
  })

  test('resumes from the pieces in storage', async () => {
    const seed = await peer({ mode: 'seed', folder: await seedFolder(), name: 'model' })
    const first = joined(await swarm(), seed.infohash, [seed.address])
    await first.torrent.done
    const layout = await first.torrent.ready
    const kept = new MemoryFiles(layout, CONTENT)
    kept.written[layout.files.findIndex((file) => file.path === 'model-q8_0.gguf')] = [[0, 200_000]]
    const fetched: number[] = []
    const second = joined(await swarm(), seed.infohash, [seed.address], {
      open: async () => ({
        has: (file, start, end) => kept.has(file, start, end),
        read: (file, offset, target) => kept.read(file, offset, target),
        write: async (file, offset, bytes) => {
          fetched.push(bytes.length)
          await kept.write(file, offset, bytes)
        }
      })
    })
    await second.torrent.done
    const sum = fetched.reduce((a, b) => a + b, 0)
    expect(sum).toBeGreaterThanOrEqual(100_001)
    expect(sum).toBeLessThan(160_000)
  })

  test('a peer that sends wrong pieces is dropped and named, and the honest peer completes the file', async () => {
    const honest = await peer({ mode: 'seed', folder: await seedFolder(), name: 'model' })
    const first = joined(await swarm(), honest.infohash, [honest.address])
    const { info, pieceCount } = await first.torrent.ready
    await first.torrent.leave()
    const liar = await startLyingPeer(honest.infohash, info, pieceCount)
    cleanups.push(() => liar.close())
    const { torrent, warnings, files } = joined(await swarm(), honest.infohash, [liar.address])
    const layout = await torrent.ready
    await expect.poll(() => warnings.length).toBeGreaterThan(0)
    expect(warnings[0]).toContain(liar.address)
    expect(liar.blocks()).toBeGreaterThan(0)
    torrent.addPeer(honest.address)
    await torrent.done
    const index = layout.files.findIndex((file) => file.path === 'model-q8_0.gguf')
    expect(files().files[index]!.equals(CONTENT.get('model-q8_0.gguf')!)).toBe(true)
  })

  test('if open refuses, the torrent leaves the swarm with that error', async () => {
    const seed = await peer({ mode: 'seed', folder: await seedFolder(), name: 'model' })
    const refusal = new Error('not in the anchor')
    const { torrent } = joined(await swarm(), seed.infohash, [seed.address], { open: () => Promise.reject(refusal) })
    await expect(torrent.ready).rejects.toBe(refusal)
    await expect(torrent.done).rejects.toBe(refusal)
  })

  test('the upload limit holds', async () => {
    const root = await folder()
    await mkdir(join(root, 'model'))
    const bytes = randomBytes(3 << 20)
    await writeFile(join(root, 'model', 'big.gguf'), bytes)
    const seed = await peer({ mode: 'seed', folder: root, name: 'model' })
    const first = joined(await swarm(), seed.infohash, [seed.address])
    const { info } = await first.torrent.ready
    const client = await swarm(1 << 20)
    const { torrent } = joined(client, seed.infohash, [], {
      info,
      complete: true,
      open: async (layout) => new MemoryFiles(layout, new Map([['big.gguf', bytes]]))
    })
    await torrent.done
    const started = performance.now()
    const leech = await peer({
      mode: 'leech',
      folder: await folder(),
      torrent: seed.torrent,
      peers: [`127.0.0.1:${client.address.port}`]
    })
    await leech.until((state) => state.seeding)
    expect((3 << 20) / ((performance.now() - started) / 1000)).toBeLessThan(1.5 * (1 << 20))
  })
})

test('blocks count as they arrive, long before their piece is whole', async () => {
  const whole = randomBytes(1 << 20)
  const pieces = createHash('sha1').update(whole).digest()
  const info = encodeBencode({ length: whole.length, name: 'm.gguf', 'piece length': whole.length, pieces })
  const infohash = createHash('sha1').update(info).digest('hex')
  const seeder = await swarm(200_000)
  const open = async (layout: V1Layout) => new MemoryFiles(layout, new Map([['m.gguf', whole]]))
  await joined(seeder, infohash, [], { info, complete: true, open }).torrent.done
  const { torrent, files } = joined(await swarm(), infohash, [`127.0.0.1:${seeder.address.port}`], { info })
  const seen = new Set<number>()
  await until(
    () => files()?.written[0]?.length === 1,
    async () => seen.add(torrent.progress().unverifiedBytes)
  )
  expect(seen.size).toBeGreaterThan(2)
  expect(Math.max(...seen)).toBeLessThanOrEqual(whole.length)
  await torrent.done
  await expect.poll(() => torrent.progress().unverifiedBytes).toBe(0)
})

test('a download limit holds, also for what has a piece under way when it is set', async () => {
  const content = new Map([['m.gguf', randomBytes(4 << 20)]])
  const bytes = content.get('m.gguf')!
  const pieces = Buffer.concat(
    Array.from({ length: 64 }, (_, piece) =>
      createHash('sha1')
        .update(bytes.subarray(piece << 16, (piece + 1) << 16))
        .digest()
    )
  )
  const info = encodeBencode({ length: bytes.length, name: 'm.gguf', 'piece length': 1 << 16, pieces })
  const infohash = createHash('sha1').update(info).digest('hex')
  const seeder = await swarm()
  await joined(seeder, infohash, [], { info, complete: true, open: async (layout) => new MemoryFiles(layout, content) })
    .torrent.done
  const limit = new SharedDownloadLimit()
  const client = await swarm(0, false, limit)
  limit.bytesPerSecond = 1 << 20
  const started = performance.now()
  await joined(client, infohash, [`127.0.0.1:${seeder.address.port}`], { info }).torrent.done
  const rate = bytes.length / ((performance.now() - started) / 1000)
  expect(rate).toBeLessThan(1.25 * (1 << 20))
  expect(rate).toBeGreaterThan(0.6 * (1 << 20))
})

test('two clients find each other through a DHT', async () => {
  const { Client } = (await import('bittorrent-dht')) as unknown as {
    Client: new (
      options: object
    ) => {
      listen(port: number, host: string, done: () => void): void
      address(): { port: number }
      destroy(done: () => void): void
    }
  }
  const node = new Client({ bootstrap: false })
  await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => new Promise<void>((resolve) => node.destroy(resolve)))
  const bootstrap = [`127.0.0.1:${node.address().port}`]
  const content = Buffer.from('a small model')
  const info = encodeBencode({
    length: content.length,
    name: 'm.gguf',
    'piece length': 16384,
    pieces: createHash('sha1').update(content).digest()
  })
  const infohash = createHash('sha1').update(info).digest('hex')
  const seed = joined(await swarm(0, bootstrap), infohash, [], {
    info,
    complete: true,
    open: async (layout) => new MemoryFiles(layout, new Map([['m.gguf', content]]))
  })
  await seed.torrent.done
  // the second one asks the DHT at the start and again after a while; it may be there before the first has announced.
  let found: ReturnType<typeof joined> | undefined
  await expect
    .poll(
      async () => {
        await found?.torrent.leave()
        found = joined(await swarm(0, bootstrap), infohash, [], { metadataTimeoutMs: 3_000 })
        return found.torrent.done.then(
          () => true,
          () => false
        )
      },
      { timeout: 60_000, interval: 10 }
    )
    .toBe(true)
  expect(found!.files().files[0]!.equals(content)).toBe(true)
})

test('without a peer the metadata times out', async () => {
  const { torrent } = joined(await swarm(), 'a'.repeat(40), [], { metadataTimeoutMs: 200 })
  await expect(torrent.ready).rejects.toMatchObject({ code: 'E_SWARM_V1', reason: 'metadata-timeout' })
})

test('an abort ends the torrent', async () => {
  const controller = new AbortController()
  const { torrent } = joined(await swarm(), 'a'.repeat(40), [], { signal: controller.signal })
  controller.abort()
  await expect(torrent.ready).rejects.toMatchObject({ code: 'E_SWARM_V1', reason: 'aborted' })
})
