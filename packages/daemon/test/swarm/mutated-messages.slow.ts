// Strangers that speak the protocols almost: a daemon process hears mutated DHT, tracker, uTP, wire and hash messages at every
// door of its swarm, while a client asks it things. `SVC_MUTATED_MESSAGES` of each kind a round; of trackers' answers as many as it asks for.

import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { encodeBencode } from '@svc/metainfo'
import { mutateBencode, mutateBytes, type Random, randomFrom } from '@svc/testkit/mutate'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { spawnDaemon } from '../support/process.ts'
import { framed, u32 } from '../support/wire-bytes.ts'
import { eventually } from './nodes.ts'

const COUNT = Number(process.env.SVC_MUTATED_MESSAGES ?? 150)
const ROUNDS = 7
const HOST = '127.0.0.1'
const ID = Buffer.alloc(20, 7)
const TARGET = Buffer.alloc(20, 9)

const ping = encodeBencode({ t: 'aa', y: 'q', q: 'ping', a: { id: ID } })
const COMPACT = Buffer.from([127, 0, 0, 1, 0, 9])

const DHT_QUERIES = [
  ping,
  encodeBencode({ t: 'aa', y: 'q', q: 'find_node', a: { id: ID, target: TARGET } }),
  encodeBencode({ t: 'aa', y: 'q', q: 'get_peers', a: { id: ID, info_hash: TARGET } }),
  encodeBencode({ t: 'aa', y: 'q', q: 'announce_peer', a: { id: ID, info_hash: TARGET, token: 'abcd', port: 9 } }),
  encodeBencode({ t: 'aa', y: 'q', q: 'get', a: { id: ID, target: TARGET } }),
  encodeBencode({ t: 'aa', y: 'q', q: 'put', a: { id: ID, token: 'x', v: 'v', k: Buffer.alloc(32), seq: 1 } }),
  encodeBencode({ t: 'aa', y: 'e', e: [201, 'x'] })
]
const dhtAnswer = (t: Buffer): Uint8Array =>
  encodeBencode({ t, y: 'r', r: { id: ID, nodes: Buffer.alloc(26, 1), token: 'x', values: [COMPACT] } })
const UTP = [0x01, 0x11, 0x21, 0x31, 0x41].flatMap((type) => {
  const header = Buffer.concat([Buffer.from([type, 0, 1, 2]), u32(1, 2, 65_536), Buffer.from([0, 1, 0, 0])])
  return [header, Buffer.concat([header.fill(1, 1, 2), Buffer.from([0, 4, 1, 2, 3, 4])])]
})

/** After a handshake. */
const WIRE_MESSAGES = [
  ...[0, 1, 2, 3, 14, 15].map((id) => framed(id)),
  framed(4, u32(1)),
  framed(5, Buffer.alloc(2, 0xff)),
  ...[6, 8, 16].map((id) => framed(id, u32(0, 0, 16_384))),
  framed(7, u32(0, 0), Buffer.alloc(1_000)),
  framed(9, Buffer.from([0, 9])),
  ...[13, 17].map((id) => framed(id, u32(0))),
  framed(20, Buffer.of(0), Buffer.from('d1:md11:ut_metadatai1e6:ut_pexi2ee13:metadata_sizei500e4:reqqi9ee')),
  framed(20, Buffer.of(1), Buffer.from('d8:msg_typei0e5:piecei0ee')),
  framed(20, Buffer.of(2), encodeBencode({ added: COMPACT, 'added.f': Buffer.of(0) }))
]
/** For a torrent with this file root. */
const hashMessages = (root: Buffer): Buffer[] => [
  ...[21, 23].map((id) => framed(id, root, u32(0, 0, 2, 0))),
  framed(21, root, u32(2, 0, 4, 2)),
  framed(22, root, u32(0, 0, 2, 0), Buffer.alloc(64, 3))
]

/** Sends each to the port, in portions: a full receive buffer would drop most without a word. */
async function sendAll(socket: UdpSocket, port: number, messages: readonly Uint8Array[]): Promise<void> {
  for (const [i, message] of messages.entries()) {
    if (message.length > 0) socket.send(message, port, HOST)
    if (i % 20 === 19) await new Promise((resolve) => setTimeout(resolve, 4))
  }
}

const many = (random: Random, templates: readonly Uint8Array[], mutate: typeof mutateBytes): Buffer[] =>
  Array.from({ length: COUNT }, () => mutate(random, templates[random(templates.length)]!))

test(`${ROUNDS} × ${COUNT} mutated messages of DHT, uTP, wire, hashes and trackers: the daemon answers, and its memory stays flat`, {
  timeout: 120_000 + ROUNDS * COUNT * 10
}, async () => {
  const random = randomFrom(20_240)
  const counts = { dht: 0, dhtAnswers: 0, utp: 0, wire: 0, hash: 0, httpTracker: 0, udpTracker: 0, resolves: 0 }
  const faults: string[] = []

  // a DHT node and two trackers that answer nothing as it should be.
  const udp = (): UdpSocket => {
    const socket = createSocket('udp4')
    socket.on('error', (error) => faults.push(String(error)))
    onTestFinished(() => void socket.close())
    return socket.bind(0, HOST)
  }
  const node = udp()
  node.on('message', (bytes, { port }) => {
    const at = bytes.indexOf('1:t2:')
    if (at < 0 || !bytes.includes('1:y1:q')) return
    for (let i = 0; i < 10; i++) {
      node.send(mutateBencode(random, dhtAnswer(bytes.subarray(at + 5, at + 7))), port, HOST)
      counts.dhtAnswers += 1
    }
  })
  const udpTracker = udp()
  udpTracker.on('message', (bytes, { port }) => {
    if (bytes.length < 16) return
    const transaction = bytes.subarray(12, 16)
    // now and then a right connection, so that announces follow it.
    const right = Buffer.concat([u32(0), transaction, Buffer.alloc(8, 5)])
    const announced = Buffer.concat([u32(1), transaction, u32(60, 1, 1), COMPACT])
    const isConnect = bytes.readUInt32BE(8) === 0
    for (let i = 0; i < 12; i++) {
      const message = mutateBytes(random, isConnect ? right : announced)
      if (message.length > 0) udpTracker.send(message, port, HOST)
      counts.udpTracker += 1
    }
    if (isConnect && random(2) === 0) udpTracker.send(right, port, HOST)
  })
  const answer = encodeBencode({
    interval: 60,
    complete: 1,
    incomplete: 1,
    peers: COMPACT,
    peers6: Buffer.alloc(18, 1)
  })
  const httpTracker = createServer((_, response) => {
    counts.httpTracker += 1
    response.end(mutateBencode(random, answer))
  })
  onTestFinished(() => void httpTracker.close().closeAllConnections())
  httpTracker.listen(0, HOST)
  await Promise.all([once(node, 'listening'), once(udpTracker, 'listening'), once(httpTracker, 'listening')])

  const folder = temporaryFolder()
  const config = join(folder, 'config.toml')
  const trackers = [
    `http://${HOST}:${(httpTracker.address() as AddressInfo).port}/announce`,
    `udp://${HOST}:${udpTracker.address().port}`
  ]
  writeFileSync(
    config,
    `[swarm]\npeer_addr = "${HOST}:0"\nwebseed_addr = "${HOST}:0"\nseed_on_import = true\ntrackers = ${JSON.stringify(trackers)}\ndht_bootstrap = ["${HOST}:${node.address().port}"]\n`
  )
  const daemon = await spawnDaemon({
    folder,
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', config]
  })
  const importOne = async (n: number): Promise<string> => {
    const paths = [writeFiles(join(folder, `m${n}`), { 'm-q8_0.gguf': gguf(1_100_000, n) })]
    const job = await daemon.import(paths, `me/m${n}`)
    expect(job.error).toBeUndefined()
    return job.result!.manifests[0]!
  }
  const manifest = await importOne(0)
  const share = await eventually(async () => {
    const { body } = await daemon.get(`/v1/share?ref=${encodeURIComponent('svc:///me/m0:q8_0')}`)
    return body.announced ? (body as { infohash: string }) : undefined
  })
  const { body: status } = await daemon.get('/v1/status')
  const peerPort = Number((status.swarm.peerAddress as string).split(':')[1])
  const dhtPort = status.swarm.dhtPort as number
  expect(dhtPort).toBeGreaterThan(0)
  const { files } = JSON.parse((await daemon.get(`/v1/blob/${manifest}`)).bytes.toString()) as {
    files: { kind: string; bt: { merkleRoot: string } }[]
  }
  const root = Buffer.from(files.find(({ kind }) => kind === 'weights.gguf')!.bt.merkleRoot.slice(7), 'hex')
  const reserved = Buffer.from([0, 0, 0, 0, 0, 0x10, 0, 0x14])
  const infohash = Buffer.from(share.infohash.slice('btmh:1220'.length).slice(0, 40), 'hex')
  const handshake = Buffer.concat([Buffer.from('\x13BitTorrent protocol', 'latin1'), reserved, infohash])

  /** Conversations of mutated messages after a right handshake, four at a time. */
  const talk = async (templates: readonly Buffer[], counter: 'wire' | 'hash'): Promise<void> => {
    let left = COUNT
    const one = async (): Promise<void> => {
      while (left > 0) {
        const socket = connect(peerPort, HOST)
        socket.on('error', () => undefined).resume()
        const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
        socket.write(Buffer.concat([handshake, Buffer.from(`-MU0001-${String(left).padStart(12, '0')}`)]))
        await Promise.race([new Promise((resolve) => socket.once('data', resolve)), closed])
        for (let i = 0; i < 20 && left > 0 && !socket.destroyed; i++) {
          left -= 1
          counts[counter] += 1
          const message = mutateBytes(random, templates[random(templates.length)]!)
          // most keep a right length, so that what is behind it is read.
          if (message.length > 4 && random(4) > 0) message.writeUInt32BE(message.length - 4)
          if (message.length > 0) socket.write(message)
          await new Promise((resolve) => setImmediate(resolve))
        }
        socket.end()
        const timer = setTimeout(() => socket.destroy(), 200)
        await closed
        clearTimeout(timer)
      }
    }
    await Promise.all([one(), one(), one(), one()])
  }
  const rssMiB = (): number =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${daemon.child.pid}/status`, 'utf8'))![1]) / 1024

  let over = false
  const times: number[] = []
  const asking = async (): Promise<void> => {
    while (!over) {
      const begun = performance.now()
      const { status: code } = await daemon.resolve('svc:///me/m0:q8_0')
      times.push(performance.now() - begun)
      expect(code).toBe(200)
      counts.resolves += 1
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const socket = udp()
  await once(socket, 'listening')
  const rss: number[] = [rssMiB()]
  // each import is announced to both trackers; what is seeded takes memory, so only the first round has any.
  const announcing = async (): Promise<void> => {
    for (let n = 1; n <= 10 + Math.ceil(COUNT / 50); n++) await importOne(n)
  }
  const round = async (also?: () => Promise<void>): Promise<void> => {
    await Promise.all([
      sendAll(socket, dhtPort, many(random, DHT_QUERIES, mutateBencode)).then(() => void (counts.dht += COUNT)),
      sendAll(socket, peerPort, many(random, UTP, mutateBytes)).then(() => void (counts.utp += COUNT)),
      talk(WIRE_MESSAGES, 'wire'),
      talk(hashMessages(root), 'hash'),
      also?.()
    ])
    rss.push(rssMiB())
  }
  const asked = asking()
  asked.catch(() => undefined)
  // the first rounds fill caches and pools: from then on it is a little more, and in the end no more.
  await round(announcing)
  for (let n = 1; n < ROUNDS; n++) await round()
  over = true
  await asked

  times.sort((a, b) => a - b)
  const p99 = times[Math.floor(times.length * 0.99)]!
  console.log(
    `${JSON.stringify(counts)}; RSS ${rss.map(Math.round).join(', ')} MiB; resolve p50 ${times[times.length >> 1]!.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
  )
  expect(rss.at(-1)! - rss.at(-3)!).toBeLessThan(32)
  expect(rss.at(-1)! - rss[1]!).toBeLessThan(64)
  expect(counts.dhtAnswers).toBeGreaterThan(0)
  expect(counts.udpTracker).toBeGreaterThan(0)
  expect(counts.httpTracker).toBeGreaterThan(0)
  // the DHT still answers what is right, and so does the rest.
  const answered = once(socket, 'message')
  const again = setInterval(() => socket.send(ping, dhtPort, HOST), 200)
  await answered
  clearInterval(again)
  expect((await daemon.verify('all')).verify).toEqual({})
  expect(daemon.child.exitCode).toBe(null)
  expect(daemon.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
  expect(daemon.log.filter(({ thread }) => thread !== undefined)).toEqual([])
  expect(faults).toEqual([])
})
