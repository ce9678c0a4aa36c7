// Floods of every kind, in a thread of their own, so that who measures beside them has its event loop for itself.
import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { encodeBencode } from '@svc/metainfo'
import { mutateBytes, randomFrom } from '@svc/testkit/mutate'
import type { FloodData } from './floods.ts'
import { framed, u32 } from './wire-bytes.ts'

const data = workerData as FloodData
const { kind, socketPath, webseedPort, webseedPath, peerPort, dhtPort, digest, root, handshake, ref } = data
const HOST = '127.0.0.1'
const random = randomFrom(99)
let stopped = false
let count = 0
parentPort!.on('message', () => {
  stopped = true
  parentPort!.postMessage(count)
  // sockets that wait for nothing hold the thread
  setTimeout(() => process.exit(), 50)
})

type Door = 'api' | 'webseed' | 'hub' | 'oci' | 'metrics'
const PORTS = { webseed: webseedPort, hub: data.hubPort, oci: data.ociPort, metrics: data.metricsPort }
function dial(door: Door): Socket {
  const socket = door === 'api' ? connect(socketPath) : connect(PORTS[door], HOST)
  return socket.on('error', () => undefined)
}
const get = (door: Door, more = ''): string =>
  door === 'api'
    ? `GET /v1/blob/${digest} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    : `GET ${webseedPath} HTTP/1.1\r\nHost: ${HOST}:${webseedPort}\r\n${more}\r\n`
/** A request at a mirror or the metrics port. */
const ask = (door: 'hub' | 'oci' | 'metrics', path: string, more = 'Connection: close\r\n', method = 'GET'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: ${HOST}:${PORTS[door]}\r\n${more}\r\n`
/** The name of the model in `startSeedingProcess`. */
const OCI_NAME = '/v2/me/m0'
const closed = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve))

/** `clients` at a time, each again and again. */
function again(clients: number, one: () => Promise<unknown>): void {
  for (let i = 0; i < clients; i++)
    void (async () => {
      while (!stopped) {
        await one()
        count += 1
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
}

/** Sends, ends its half, reads to the end. */
function exchange(door: Door, bytes: string | Uint8Array): Promise<unknown> {
  const socket = dial(door)
  socket.resume().end(bytes)
  return closed(socket)
}
/** Sends, and neither reads nor leaves until it is cut. */
function hold(door: Door, bytes: string): Promise<unknown> {
  const socket = dial(door).pause()
  if (bytes !== '') socket.write(bytes)
  return closed(socket)
}

const SMUGGLED = [
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: chunked, identity',
  'Content-Length: 5\r\nTransfer-Encoding: chunked',
  'Content-Length: 0\r\nContent-Length: 40',
  'Content-Length: +5',
  'Transfer-Encoding:\r\n chunked',
  'A: b\rTransfer-Encoding: chunked',
  'A: b\0'
]
const smuggle = (door: Door): Promise<unknown> =>
  exchange(
    door,
    `POST /v1/ensure HTTP/1.1\r\nHost: x\r\n${SMUGGLED[random(SMUGGLED.length)]}\r\n\r\n0\r\n\r\n${get(door)}`
  )

const HASH_REQUEST = framed(21, Buffer.from(root), u32(0, 0, 512, 0))
const WIRE = [
  framed(2),
  framed(5, Buffer.alloc(2, 0xff)),
  framed(6, u32(0, 0, 16_384)),
  framed(7, u32(0, 0), Buffer.alloc(1_000)),
  framed(20, Buffer.of(0), Buffer.from('d1:md11:ut_metadatai1e6:ut_pexi2ee13:metadata_sizei500e4:reqqi9ee')),
  HASH_REQUEST
]
/** A peer that has shaken hands, and what it does then. */
async function peer(talk: (socket: Socket) => Promise<void>): Promise<void> {
  const socket = connect(peerPort, HOST).on('error', () => undefined)
  const over = closed(socket)
  socket
    .resume()
    .write(Buffer.concat([Buffer.from(handshake), Buffer.from(`-FL0001-${String(random(1e9)).padStart(12, '0')}`)]))
  await Promise.race([new Promise((resolve) => socket.once('data', resolve)), over])
  await Promise.race([talk(socket), over])
  socket.destroy()
  await over
}
const drained = (socket: Socket): Promise<void> =>
  socket.writableLength < 65_536
    ? new Promise((resolve) => setTimeout(resolve, 1))
    : new Promise((resolve) => socket.once('drain', () => resolve()))

function datagrams(port: number, make: () => Uint8Array): void {
  const udp = createSocket('udp4')
  // 10,000 a second
  setInterval(() => {
    for (let i = 0; i < 20; i++) udp.send(make(), port, HOST, () => undefined)
    count += 20
  }, 2)
}

const FLOODS: Readonly<Record<FloodData['kind'], () => void>> = {
  nothing: () => undefined,
  'smuggling, socket': () => again(20, () => smuggle('api')),
  'smuggling, webseed port': () => again(20, () => smuggle('webseed')),
  'slow readers, socket': () => again(200, () => hold('api', get('api'))),
  'slow readers, webseed port': () => again(200, () => hold('webseed', get('webseed'))),
  'slow writers, socket': () =>
    again(200, () => hold('api', 'POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{')),
  'slow writers, webseed port': () => again(200, () => hold('webseed', 'GET / HTTP/1.1\r\nHo')),
  'requests, socket': () =>
    again(20, () =>
      exchange('api', `GET /v1/resolve?ref=${encodeURIComponent(ref)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    ),
  'requests, webseed port': () =>
    again(20, () => exchange('webseed', get('webseed', 'Range: bytes=0-99\r\nConnection: close\r\n'))),
  'pipelining, socket': () => again(10, () => exchange('api', get('api', 'Range: bytes=0-99\r\n').repeat(100))),
  'pipelining, webseed port': () =>
    again(10, () => exchange('webseed', get('webseed', 'Range: bytes=0-99\r\n').repeat(100))),
  'half-closed, socket': () => again(20, () => exchange('api', 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n')),
  '500 connections, socket': () => again(500, () => hold('api', '')),
  '500 connections, webseed port': () => again(500, () => hold('webseed', '')),
  'requests, hub mirror': () =>
    again(20, () => exchange('hub', ask('hub', `/api/models/me/m${random(1e9)}/tree/main`))),
  'lists of paths, hub mirror': () =>
    again(20, () =>
      exchange(
        'hub',
        ask('hub', '/api/models/me/m0/paths-info/main', 'Connection: close\r\nContent-Length: 262144\r\n', 'POST') +
          'a&'.repeat(131_072)
      )
    ),
  'requests, OCI mirror': () => again(20, () => exchange('oci', ask('oci', `${OCI_NAME}/manifests/q8_0`))),
  'slow readers, OCI mirror': () => again(200, () => hold('oci', ask('oci', `${OCI_NAME}/blobs/${digest}`))),
  'pipelining, OCI mirror': () =>
    again(10, () => exchange('oci', ask('oci', `${OCI_NAME}/blobs/${digest}`, 'Range: bytes=0-99\r\n').repeat(100))),
  'requests, metrics port': () => again(20, () => exchange('metrics', ask('metrics', '/metrics'))),
  '500 connections, mirrors and metrics port': () => {
    for (const door of ['hub', 'oci', 'metrics'] as const) again(500, () => hold(door, ''))
  },
  'uTP datagrams': () =>
    datagrams(peerPort, () =>
      mutateBytes(random, Buffer.concat([Buffer.from([0x41, 0, 1, 2]), u32(1, 2, 65_536), Buffer.from([0, 1, 0, 0])]))
    ),
  'DHT queries': () =>
    datagrams(dhtPort, () =>
      encodeBencode({
        t: 'aa',
        y: 'q',
        q: 'find_node',
        a: { id: Buffer.alloc(20, random(256)), target: Buffer.alloc(20, random(256)) }
      })
    ),
  'hash requests': () =>
    again(20, () =>
      peer(async (socket) => {
        while (!stopped && !socket.destroyed) {
          socket.write(HASH_REQUEST)
          count += 1
          await drained(socket)
        }
      })
    ),
  'wire messages': () =>
    again(20, () =>
      peer(async (socket) => {
        for (let i = 0; i < 50 && !socket.destroyed; i++) {
          socket.write(mutateBytes(random, WIRE[random(WIRE.length)]!))
          count += 1
          await drained(socket)
        }
      })
    )
}
FLOODS[kind]()
