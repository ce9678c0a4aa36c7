import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { Worker } from 'node:worker_threads'
import { encodeBencode } from '@svc/metainfo'
import { type V1JoinOptions, V1Swarm, type V1Torrent } from '@svc/swarm-v1'
import { afterAll, afterEach, expect, test } from 'vitest'
import { CONTENT, handshake, INFO, INFOHASH, message } from './torrent-fixture.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Started {
  readonly client: V1Swarm
  readonly faults: string[]
}

async function start(): Promise<Started> {
  const faults: string[] = []
  const client = await V1Swarm.start({
    peerAddress: { host: '127.0.0.1', port: 0 },
    // no nodes to start from: on for peer exchange.
    dht: [],
    policy: 'machine',
    uploadLimitBytesPerSecond: 0,
    onFault: ({ error }) => void faults.push(String(error.stack))
  })
  return { client, faults }
}

async function swarm(): Promise<Started> {
  const started = await start()
  cleanups.push(() => started.client.close())
  return started
}

const complete = {
  has: () => true,
  write: async () => {},
  read: async (_: number, at: number, target: Uint8Array) => target.set(CONTENT.subarray(at, at + target.length))
}

const seed = (client: V1Swarm): V1Torrent =>
  client.join({
    infohash: INFOHASH,
    info: INFO,
    trackers: [],
    peers: [],
    metadataTimeoutMs: 10_000,
    complete: true,
    open: async () => complete
  })

function leech(client: V1Swarm, peers: readonly string[]): { readonly torrent: V1Torrent; readonly bytes: Buffer } {
  const bytes = Buffer.alloc(CONTENT.length)
  const written = new Set<number>()
  const torrent = client.join({
    infohash: INFOHASH,
    info: INFO,
    trackers: [],
    peers,
    metadataTimeoutMs: 10_000,
    open: async () => ({
      has: (_, start, end) =>
        [...Array(Math.ceil((end - start) / 16_384)).keys()].every((index) => written.has(start + index * 16_384)),
      read: async (_, at, target) => target.set(bytes.subarray(at, at + target.length)),
      write: async (_, at, block) => {
        bytes.set(block, at)
        written.add(at)
      }
    })
  })
  return { torrent, bytes }
}

interface Stranger {
  readonly socket: Socket
  readonly closed: Promise<void>
  /** The number that the other side gave an extension. */
  readonly extension: (name: string) => number
}

/** A peer that has shaken hands: what it sends now meets a connection whose extensions are set up. */
async function stranger(port: number): Promise<Stranger> {
  const socket = connect(port, '127.0.0.1')
  cleanups.push(() => socket.destroy())
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write(handshake())
  let text = ''
  await new Promise<void>((resolve) =>
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (text.includes('lt_donthave')) resolve()
    })
  )
  return { socket, closed, extension: (name) => Number(new RegExp(`${name}i(\\d+)e`).exec(text)![1]) }
}

const extended = (id: number, value: unknown): Buffer =>
  message(20, Buffer.concat([Buffer.from([id]), encodeBencode(value as never)]))

let shared: ReturnType<typeof seeding> | undefined
/** One seed for all that should not disturb it. */
async function seeding() {
  const started = await start()
  await seed(started.client).done
  return started
}
afterAll(async () => (await shared)?.client.close())

async function endsOnlyThat(send: (to: Stranger) => Buffer): Promise<void> {
  shared ??= seeding()
  const { client, faults } = await shared
  const peer = await stranger(client.address.port)
  peer.socket.write(send(peer))
  await peer.closed
  expect(faults).toEqual([])
}

test.each([
  ['a length of 4 GiB', Buffer.from([255, 255, 255, 255, 7])],
  ['a length above all messages', Buffer.from([0, 4, 0, 1, 7])],
  ['a have that is cut short', message(4, Buffer.alloc(3))],
  ['a request that is too long', message(6, Buffer.alloc(13))],
  ['a block without bytes', message(7, Buffer.alloc(8))],
  ['an empty extension message', message(20)],
  ['an extension handshake that is not a dictionary', extended(0, [1])],
  ['extension numbers that are lists', extended(0, { m: { ut_metadata: [1] } })],
  ['an extension handshake with a huge size', extended(0, { m: { ut_metadata: 1 }, metadata_size: 2 ** 40 })],
  ['a key that is there twice', message(20, Buffer.from('\0d1:v1:a1:mde1:v1:be', 'latin1'))]
])('%s ends the connection, and only that', (_, bytes) => endsOnlyThat(() => bytes), 30_000)

const FIXED = new Map([
  ...[0, 1, 2, 3, 14, 15].map((id) => [id, 1] as const),
  ...[4, 13, 17].map((id) => [id, 5] as const),
  ...[6, 8, 16].map((id) => [id, 13] as const),
  [9, 3] as const
])
const ANY_ID = [...Array(21).keys(), 21, 200, 255]
function head(length: number, id: number): Buffer {
  const bytes = Buffer.alloc(5)
  bytes.writeUInt32BE(length)
  bytes[4] = id
  return bytes
}

test.each([0xffff_ffff, 0x8000_0000, 0x7fff_ffff, 262_145])(
  'a message of %d bytes of any kind ends the connection at its head, also byte by byte',
  async (length) => {
    shared ??= seeding()
    const { client, faults } = await shared
    for (const id of ANY_ID) {
      const peer = await stranger(client.address.port)
      peer.socket.setNoDelay(true)
      for (const byte of head(length, id)) peer.socket.write(Buffer.of(byte))
      await peer.closed
    }
    expect(faults).toEqual([])
  }
)

test('each message of a fixed length is read at that length; one byte more or less ends the connection', async () => {
  shared ??= seeding()
  const { client, faults } = await shared
  for (const [id, length] of FIXED) {
    for (const other of [length - 1, length + 1]) {
      // one without a byte is a sign of life, and has no kind
      if (other === 0) continue
      const peer = await stranger(client.address.port)
      peer.socket.write(Buffer.concat([head(other, id), Buffer.alloc(other - 1)]))
      await peer.closed
    }
    const peer = await stranger(client.address.port)
    // what is refused behind it shows that it was read to its end, and no further.
    peer.socket.write(Buffer.concat([head(length, id), Buffer.alloc(length - 1)]))
    const alive = await Promise.race([peer.closed.then(() => false), answersRequest(peer)])
    expect(alive, `message ${id}`).toBe(true)
    peer.socket.destroy()
    await peer.closed
  }
  expect(faults).toEqual([])
})

test.each([
  ['of an unknown kind', 200],
  ['of extensions', 20],
  ['with a block', 7]
])('a message %s at the limit is buffered, and judged with its last byte', async (_, id) => {
  shared ??= seeding()
  const { client, faults } = await shared
  const peer = await stranger(client.address.port)
  peer.socket.write(Buffer.concat([head(262_144, id), Buffer.alloc(262_143 - 1)]))
  if (id === 200) {
    peer.socket.write(Buffer.alloc(1))
    expect(await answersRequest(peer)).toBe(true)
    peer.socket.destroy()
  } else peer.socket.write(Buffer.alloc(1))
  await peer.closed
  expect(faults).toEqual([])
})

test('a peer that names others at port 0 is still served, and nothing is thrown', async () => {
  shared ??= seeding()
  const { client, faults } = await shared
  const peer = await stranger(client.address.port)
  const added = Buffer.from([8, 8, 8, 8, 0, 0, 127, 0, 0, 1, 0, 0])
  peer.socket.write(extended(peer.extension('ut_pex'), { added, added6: Buffer.alloc(18), dropped: added }))
  expect(await answersRequest(peer)).toBe(true)
  peer.socket.destroy()
  await peer.closed
  expect(faults).toEqual([])
})

/** Whether a request behind what was sent gets its block. */
async function answersRequest({ socket }: Stranger): Promise<boolean> {
  const seen = new Promise<boolean>((resolve) => {
    let bytes = 0
    socket.on('data', (data) => {
      bytes += data.length
      if (bytes > 16_384) resolve(true)
    })
  })
  const request = Buffer.alloc(12)
  request.writeUInt32BE(16_384, 8)
  socket.write(Buffer.concat([message(2), message(6, request)]))
  return seen
}

test.each([
  ['metadata of a piece that is a string', 'ut_metadata', { msg_type: 1, piece: 'x', total_size: 5 }],
  ['peer exchange that is a number', 'ut_pex', 5],
  ['peer exchange of addresses cut short', 'ut_pex', { added: Buffer.alloc(7) }]
])(
  '%s ends the connection, and only that',
  (_, name, value) => endsOnlyThat(({ extension }) => extended(extension(name), value)),
  30_000
)

test('afterwards it still serves an honest peer', async () => {
  shared ??= seeding()
  const { client, faults } = await shared
  const { torrent, bytes } = leech((await swarm()).client, [`127.0.0.1:${client.address.port}`])
  await torrent.done
  expect(bytes.equals(CONTENT)).toBe(true)
  expect(faults).toEqual([])
})

test('a message of 4 GiB is not buffered', async () => {
  const { client } = await swarm()
  await seed(client).done
  const { socket, closed } = await stranger(client.address.port)
  socket.write(Buffer.from([255, 255, 255, 255, 20]))
  let sent = 0
  const chunk = Buffer.alloc(1 << 20)
  // it would take all of it, and copy it with each packet.
  while (!socket.destroyed && sent < 256) {
    sent += 1
    await Promise.race([closed, new Promise((resolve) => socket.write(chunk, resolve))])
  }
  await closed
  expect(sent).toBeLessThan(64)
})

test('a host that keeps opening connections gets only its share', async () => {
  const { client, faults } = await swarm()
  await seed(client).done
  const open = Array.from({ length: 40 }, () => {
    const socket = connect(client.address.port, '127.0.0.1')
    cleanups.push(() => socket.destroy())
    return socket.on('error', () => {})
  })
  await expect.poll(() => open.filter(({ closed }) => closed).length).toBe(24)
  for (const socket of open) socket.destroy()
  await Promise.all(open.map((socket) => socket.closed || once(socket, 'close')))
  // another one is served once they are gone
  const { torrent, bytes } = leech((await swarm()).client, [`127.0.0.1:${client.address.port}`])
  await torrent.done
  expect(bytes.equals(CONTENT)).toBe(true)
  expect(faults).toEqual([])
})

test('unrequested blocks are dropped', async () => {
  const served: Socket[] = []
  const server = createServer((socket) => {
    served.push(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(Buffer.concat([handshake(0), message(5, Buffer.from([0xe0]))]))
      // wrong bytes for each block, before it is asked for.
      for (let piece = 0; piece < 3; piece++) {
        const head = Buffer.alloc(8)
        head.writeUInt32BE(piece)
        socket.write(message(7, Buffer.concat([head, Buffer.alloc(16_384)])))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    for (const socket of served) socket.destroy()
    server.close()
  })
  const { client } = await swarm()
  await seed(client).done
  const other = await swarm()
  const liar = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const { torrent, bytes } = leech(other.client, [liar, `127.0.0.1:${client.address.port}`])
  await torrent.done
  expect(bytes.equals(CONTENT)).toBe(true)
  expect(other.faults).toEqual([])
})

test('a crashed thread is reported once, restarted on the same port, and seeds and fetches again', async () => {
  const workers: Worker[] = []
  const noted = (worker: Worker): void => void workers.push(worker)
  process.on('worker', noted)
  cleanups.push(() => process.off('worker', noted))
  const { client, faults } = await swarm()
  const seeding = seed(client)
  await seeding.done
  const { port } = client.address
  const other = await swarm()
  const { torrent, bytes } = leech(other.client, [])
  await torrent.ready
  expect(workers).toHaveLength(2)
  await Promise.all(workers.slice(0, 2).map((worker) => worker.terminate()))
  await expect.poll(() => [faults.length, other.faults.length]).toEqual([1, 1])
  torrent.addPeer(`127.0.0.1:${port}`)
  await torrent.done
  expect(bytes.equals(CONTENT)).toBe(true)
  expect(client.address.port).toBe(port)
  expect([faults.length, other.faults.length]).toEqual([1, 1])
})

test('a tracker without a port is left out', async () => {
  const warnings: string[] = []
  const { client, faults } = await swarm()
  const torrent = client.join({
    infohash: INFOHASH,
    info: INFO,
    trackers: ['udp://127.0.0.1:0', 'udp://host:0/announce', 'http://user:word@127.0.0.1:1/', 'ws://127.0.0.1:1'],
    peers: ['127.0.0.1:0', 'a\0b:5', 'nowhere'],
    metadataTimeoutMs: 10_000,
    complete: true,
    open: async () => complete,
    onWarning: (text) => void warnings.push(text)
  })
  await torrent.done
  await expect.poll(() => warnings.length).toBe(4)
  expect(faults).toEqual([])
})

test('a torrent whose trackers nobody vouches for contacts none on this machine', async () => {
  let asked = 0
  const tracker = createServer((socket) => {
    asked++
    socket.destroy()
  })
  await new Promise<void>((listening) => tracker.listen(0, '127.0.0.1', listening))
  cleanups.push(() => tracker.close())
  const { client } = await swarm()
  const warning = async (more: Partial<V1JoinOptions>): Promise<string> => {
    const warned = Promise.withResolvers<string>()
    const torrent = client.join({
      infohash: INFOHASH,
      info: INFO,
      trackers: [`http://127.0.0.1:${(tracker.address() as AddressInfo).port}/announce`],
      peers: [],
      metadataTimeoutMs: 10_000,
      complete: true,
      open: async () => complete,
      onWarning: warned.resolve,
      ...more
    })
    torrent.done.catch(() => undefined)
    const message = await warned.promise
    await torrent.leave()
    return message
  }
  expect(await warning({ policy: 'internet' })).toMatch(/must not name/)
  expect(asked).toBe(0)
  expect(await warning({})).not.toMatch(/must not name/)
  expect(asked).toBeGreaterThan(0)
})
