// Ten hosts in one process, each with an address of its own: every two seconds each of them begins the next attack of the list. They are
// bounded in number and by the process's one core. Whatever a daemon answers is searched for bytes that nobody may have.
import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { encodeBencode } from '@svc/metainfo'
import { mutateBytes, randomFrom } from '@svc/testkit/mutate'
import { FORGED, HOSTS, type HostileData, type HostileReport, LONG_LISTINGS, MARKER } from './hostile-hosts.ts'
import { framed, u32 } from './wire-bytes.ts'

const DAEMON = '127.0.0.1'
const ROUND_MS = 2_000
const random = randomFrom(77)
const pick = <T>(all: readonly T[]): T => all[random(all.length)]!
const done: Record<string, number> = {}
/** The first bytes that leaked, by attack. */
const leaks = new Map<string, string>()
const needle = Buffer.from(MARKER)

type Door = 'webseed' | 'hub' | 'oci' | 's3' | 'metrics' | 'ui' | 'peer'

/** One attack of one host, until its round is over. */
class Attack {
  readonly #host: string
  readonly #name: string
  readonly #data: HostileData
  readonly #open = new Set<Socket>()
  isOver = false

  constructor(host: string, name: string, data: HostileData) {
    this.#host = host
    this.#name = name
    this.#data = data
  }

  get ui(): HostileData['ui'] {
    return this.#data.ui
  }

  count(): void {
    done[this.#name] = (done[this.#name] ?? 0) + 1
  }

  end(): void {
    this.isOver = true
    for (const socket of this.#open) socket.destroy()
  }

  #to(door: Door): { readonly host: string; readonly port: number } {
    const { webseedPort: webseed, hubPort: hub, ociPort: oci, s3Port: s3, metricsPort: metrics } = this.#data
    if (door === 'ui') return this.#data.ui
    return { host: DAEMON, port: { webseed, hub, oci, s3, metrics, peer: this.#data.peerPort }[door] }
  }

  dial(door: Door): Socket {
    const socket = connect({ ...this.#to(door), localAddress: this.#host })
    let tail = Buffer.alloc(0)
    socket.on('error', () => undefined).on('close', () => this.#open.delete(socket))
    socket.on('data', (chunk) => {
      const seen = Buffer.concat([tail, chunk])
      if (seen.includes(needle) && !leaks.has(this.#name)) leaks.set(this.#name, seen.toString('latin1', 0, 200))
      tail = seen.subarray(-needle.length)
    })
    this.#open.add(socket)
    return socket
  }

  /** `clients` at a time, again and again. */
  again(clients: number, one: () => Promise<unknown>): void {
    for (let i = 0; i < clients; i++)
      void (async () => {
        while (!this.isOver) {
          await one()
          this.count()
          await delay(10)
        }
      })()
  }

  /** Sends, and reads to the end, or for a while. */
  exchange(door: Door, bytes: string | Uint8Array, forMs = 1_500): Promise<unknown> {
    const socket = this.dial(door)
    const timer = setTimeout(() => socket.destroy(), forMs)
    socket.write(bytes)
    return new Promise((resolve) => socket.once('close', resolve)).finally(() => clearTimeout(timer))
  }

  /** Sends, and neither reads nor leaves. */
  hold(door: Door, bytes: string): Promise<unknown> {
    const socket = this.dial(door).pause()
    if (bytes !== '') socket.write(bytes)
    return new Promise((resolve) => socket.once('close', resolve))
  }

  request(door: Exclude<Door, 'peer'>, path: string, more = '', method = 'GET'): string {
    const { host, port } = this.#to(door)
    return `${method} ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n${more}\r\n`
  }

  ask(door: Exclude<Door, 'peer'>, path: string, more?: string): Promise<unknown> {
    return this.exchange(door, this.request(door, path, more))
  }

  /** A peer that shakes hands for a torrent. */
  async peer(infohash: Uint8Array, talk: (socket: Socket) => Promise<void>): Promise<void> {
    const socket = this.dial('peer')
    const over = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const id = `-FL0001-${String(random(1e9)).padStart(12, '0')}`
    socket.write(Buffer.concat([Buffer.from(this.#data.handshake.subarray(0, 28)), infohash, Buffer.from(id)]))
    await Promise.race([new Promise((resolve) => socket.once('data', resolve)), over, delay(500)])
    await Promise.race([talk(socket), over, delay(1_000)])
    socket.destroy()
  }

  datagrams(port: number, aSecond: number, make: () => Uint8Array): void {
    const udp = createSocket('udp4').on('error', () => undefined)
    udp.bind(0, this.#host)
    const timer = setInterval(() => {
      if (this.isOver) {
        clearInterval(timer)
        udp.close()
        return
      }
      for (let i = 0; i < aSecond / 50; i++) udp.send(make(), port, DAEMON, () => undefined)
      this.count()
    }, 20)
  }
}

type Attacks = Readonly<Record<string, (attack: Attack, data: HostileData) => void>>

const HTTP: Attacks = {
  'webseed: requests': (a, { webseedPath }) =>
    a.again(4, () => a.ask('webseed', webseedPath, 'Range: bytes=0-65535\r\n')),
  'webseed: slow readers': (a, { webseedPath }) =>
    a.again(60, () => a.hold('webseed', a.request('webseed', webseedPath))),
  'webseed: half requests': (a) => a.again(60, () => a.hold('webseed', 'GET / HTTP/1.1\r\nHo')),
  'webseed: what is withheld': (a, { withheld }) =>
    a.again(2, async () => {
      const { torrentName, infohash } = pick(withheld)
      await a.ask('webseed', `/${torrentName}/m-q8_0.gguf`)
      await a.ask('webseed', `/bt/${infohash}.torrent`)
      await a.ask('webseed', `/bt/piece-layers/${infohash}`)
    }),
  'hub: unknown names': (a) => a.again(4, () => a.ask('hub', `/api/models/acme/x${random(1e9)}/revision/main`)),
  'hub: long listings': (a) =>
    a.again(4, () => a.ask('hub', `/api/models/acme/names-${random(LONG_LISTINGS)}/tree/main?recursive=true`)),
  'hub: a commit of a pull request': (a, { prCommit }) =>
    a.again(2, () => a.ask('hub', `/acme/pr/resolve/${prCommit}/m-q8_0.gguf`)),
  'hub: ranges of slow files': (a) =>
    a.again(8, () => a.ask('hub', `/acme/slow-${random(8)}/resolve/main/m-q8_0.gguf`, 'Range: bytes=33554432-\r\n')),
  'hub: names that lead elsewhere': (a) =>
    a.again(2, () => a.ask('hub', pick(['/acme/moved', '/acme/was-m', '/now/m', '/acme/gates']) + pick(FILES))),
  'hub: bytes that the listing claims': (a) => a.again(2, () => a.ask('hub', '/acme/claims/resolve/main/m-q8_0.gguf')),
  'hub: pictures in pages': (a) =>
    a.again(2, () => a.ask('hub', '/acme/pr/resolve/main/m-q8_0.gguf', 'Referer: http://evil.test/\r\n')),
  'hub: forged signatures': (a) =>
    a.again(2, () => a.ask('hub', `/acme/forged-${random(FORGED)}/resolve/main/m-q8_0.gguf`)),
  'hub: lists of paths': (a) =>
    a.again(2, () =>
      a.exchange(
        'hub',
        a.request('hub', '/api/models/acme/honest/paths-info/main', 'Content-Length: 262144\r\n', 'POST') +
          'a&'.repeat(131_072)
      )
    ),
  'oci: manifests': (a) => a.again(4, () => a.ask('oci', '/v2/me/m0/manifests/q8_0')),
  'oci: slow readers': (a, { digest }) =>
    a.again(60, () => a.hold('oci', a.request('oci', `/v2/me/m0/blobs/${digest}`))),
  'oci: what is withheld': (a, { withheld }) =>
    a.again(2, async () => {
      const { ociName, quant, digests } = pick(withheld)
      await a.ask('oci', `/v2/${ociName}/manifests/${quant}`)
      await a.ask('oci', `/v2/${pick([ociName, 'me/m0', 'acme/honest'])}/blobs/${pick(digests)}`)
    }),
  's3: listings': (a) =>
    a.again(4, () => a.ask('s3', `/models?list-type=2&prefix=${pick(['', 'me/', '%00', 'a'.repeat(900)])}`)),
  's3: made-up keys': (a) =>
    a.again(2, () =>
      a.ask('s3', '/models/me/m0/q8_0/m-q8_0.gguf', `Authorization: AWS4-HMAC-SHA256 ${'x=,'.repeat(2_000)}\r\n`)
    ),
  's3: what is withheld': (a, { withheld }) =>
    a.again(2, () => a.ask('s3', `/models/${pick(withheld).ociName}/q8_0/m-q8_0.gguf`)),
  'ui: tokens': (a) =>
    a.again(4, () => {
      const body = JSON.stringify({ token: 'A'.repeat(43) })
      const { host, port } = a.ui
      const more = `Origin: http://${host}:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
      return a.exchange('ui', a.request('ui', '/session', more, 'POST') + body)
    }),
  'ui: requests': (a) =>
    a.again(4, () => a.ask('ui', pick(['/', '/enter.js', '/v1/models', `/${'A'.repeat(22)}/events`]))),
  'metrics: requests': (a) => a.again(2, () => a.ask('metrics', '/metrics')),
  'every port: connections': (a) => {
    for (const door of ['webseed', 'hub', 'oci', 's3', 'metrics', 'ui'] as const) a.again(40, () => a.hold(door, ''))
  }
}

const FILES = ['/resolve/main/m-q8_0.gguf', '/resolve/main/config.json']

const PEERS: Attacks = {
  'peers: hash requests': (a, { root, handshake }) =>
    a.again(4, () =>
      a.peer(handshake.subarray(28), async (socket) => {
        for (let i = 0; i < 500 && !socket.destroyed; i++)
          socket.write(framed(21, Buffer.from(root), u32(0, 0, 512, 0)))
        await delay(500)
      })
    ),
  'peers: broken messages': (a, { handshake }) =>
    a.again(4, () =>
      a.peer(handshake.subarray(28), async (socket) => {
        for (let i = 0; i < 20 && !socket.destroyed; i++) {
          socket.write(
            mutateBytes(random, pick([framed(2), framed(5, Buffer.alloc(2, 255)), framed(6, u32(0, 0, 16_384))]))
          )
          await delay(5)
        }
      })
    ),
  'peers: what is withheld': (a, { withheld }) =>
    a.again(2, () =>
      a.peer(Buffer.from(pick(withheld).infohash.slice(0, 40), 'hex'), async (socket) => {
        socket.write(Buffer.concat([framed(2), framed(6, u32(0, 0, 16_384))]))
        await delay(500)
      })
    ),
  'peers: connections': (a) => a.again(60, () => a.hold('peer', '')),
  'uTP: datagrams': (a, { peerPort }) =>
    a.datagrams(peerPort, 500, () =>
      mutateBytes(random, Buffer.concat([Buffer.from([0x41, 0, 1, 2]), u32(1, 2, 65_536), Buffer.from([0, 1, 0, 0])]))
    ),
  'DHT: get_peers': (a, { dhtPort, handshake }) =>
    a.datagrams(dhtPort, 200, () =>
      encodeBencode({
        t: 'aa',
        y: 'q',
        q: 'get_peers',
        a: { id: Buffer.alloc(20, random(256)), info_hash: Buffer.from(handshake.subarray(28)) }
      })
    )
}

const ALL = { ...HTTP, ...PEERS }
const NAMES = Object.keys(ALL).filter((name) => new RegExp(process.env.SVC_HOSTILE_ATTACKS ?? '').test(name))

async function attack(host: string, offset: number, data: HostileData): Promise<void> {
  for (let round = offset; ; round++) {
    const name = NAMES[round % NAMES.length]!
    const one = new Attack(host, name, data)
    ALL[name]!(one, data)
    await delay(ROUND_MS)
    one.end()
  }
}

process.on('message', (message: HostileData | 'stop') => {
  if (message === 'stop') {
    const report: HostileReport = { done, leaks: [...leaks].map(([name, bytes]) => `${name}: ${bytes}`) }
    process.send!(report, () => process.exit())
    return
  }
  const data = { ...message, root: Buffer.from(message.root), handshake: Buffer.from(message.handshake) }
  for (const [i, host] of HOSTS.entries()) void attack(host, i * 2, data)
})
