// Runs in a network of its own, in which 8.8.8.8 is this machine and nothing else can be reached. A name resolves to a public address
// the first time, and to loopback from then on. Requests to the inner address are counted.

import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PUBLIC = '8.8.8.8'
const NAME = 'rebind.example'
/** A peer inside of the network. */
const UDP_NAMED = '10.0.0.2'
let lookups = 0
const answers = (): { address: string; family: number }[] => [
  { address: lookups++ === 0 ? PUBLIC : '127.0.0.1', family: 4 }
]
dns.lookup = ((_name: string, options: { all?: boolean }, done: (...given: unknown[]) => void) => {
  const found = answers()
  queueMicrotask(() => (options.all ? done(null, found) : done(null, found[0]!.address, 4)))
}) as typeof dns.lookup
syncBuiltinESMExports()

// Imported once `dns.lookup` is replaced
const { Trackers } = await import('@svc/internal-discovery')
const { createFileStorage, createSwarm } = await import('../src/index.ts')
const { makeTorrent } = await import('./torrent-fixture.ts')

type Handler = (request: IncomingMessage, response: ServerResponse) => void
let outer: Handler = () => undefined
let inner = 0
let outside = 0
const open = (host: string, port: number, handler: Handler): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      response.setHeader('Connection', 'close')
      handler(request, response)
    })
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  })
const port = await open(PUBLIC, 0, (request, response) => {
  outside += 1
  outer(request, response)
})
await open('127.0.0.1', port, (_, response) => {
  inner += 1
  response.end('d8:intervali1e5:peers0:e')
})

const results: Record<string, { outside: number; inner: number; warnings: number }> = {}
/** Runs until there are so many warnings. */
async function scenario(name: string, start: (warn: (text: string) => void) => () => Promise<void>): Promise<void> {
  lookups = 0
  outside = 0
  inner = 0
  let warnings = 0
  const warned = Promise.withResolvers<void>()
  const stop = start(() => {
    warnings += 1
    warned.resolve()
  })
  await warned.promise
  await stop()
  results[name] = { outside, inner, warnings: Math.min(1, warnings) }
}
/** What trackers named, and whether they may name private addresses. */
const named: { readonly host: string; readonly allowPrivate: boolean }[] = []
const tracker =
  (url: string, policy: 'owner' | 'internet' = 'internet') =>
  (warn: (text: string) => void) => {
    const trackers = new Trackers({
      urls: [url],
      infohash: Buffer.alloc(20, 1),
      peerId: Buffer.alloc(20, 2),
      port: 9,
      policy,
      stats: () => ({ uploaded: 0, downloaded: 0, left: 1 }),
      found: ({ host }, mayBePrivate) => {
        named.push({ host, allowPrivate: mayBePrivate })
        if (host === UDP_NAMED) warn('found')
      },
      warn
    })
    return () => trackers.close()
  }

outer = (_, response) => response.end(Buffer.from('d8:intervali1e5:peers6:\x0a\0\0\x01\0\x50e', 'latin1'))
await scenario(
  'a tracker whose name leads elsewhere at the second announce',
  tracker(`http://${NAME}:${port}/announce`)
)
outer = (_, response) => response.writeHead(302, { location: `http://127.0.0.1:${port}/announce` }).end()
await scenario('a tracker that redirects to an inner address', tracker(`http://${PUBLIC}:${port}/announce`))
await scenario(
  'a tracker at a public address that the user named, and that redirects to an inner one',
  tracker(`http://${PUBLIC}:${port}/announce`, 'owner')
)
outer = (_, response) => response.writeHead(302, { location: `http://${NAME}:${port}/announce` }).end()
await scenario('a tracker that redirects to a name', tracker(`http://${PUBLIC}:${port}/announce`))

// BEP 15: connect, then an announce that names one inner peer
const udp = createSocket('udp4', (datagram, { address, port: from }) => {
  outside += 1
  const isConnect = datagram.readUInt32BE(8) === 0
  const answer = Buffer.alloc(isConnect ? 16 : 26)
  answer.writeUInt32BE(isConnect ? 0 : 1, 0)
  datagram.copy(answer, 4, 12, 16)
  if (!isConnect) {
    answer.writeUInt32BE(1_800, 8)
    answer.set([...UDP_NAMED.split('.').map(Number), 0, 80], 20)
  }
  udp.send(answer, from, address)
})
await new Promise<void>((resolve) => udp.bind(0, PUBLIC, resolve))
await scenario(
  'a UDP tracker at a public address that names an inner peer',
  tracker(`udp://${PUBLIC}:${udp.address().port}`, 'owner')
)
udp.close()

const fixture = await makeTorrent({ a: 4_000_000 }, 65_536)
const webseed = (location: string) => (warn: (text: string) => void) => {
  const opened = createSwarm({ peerAddress: false })
  void opened.then((swarm) => {
    const torrent = swarm.add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(mkdtempSync(join(tmpdir(), 'rebind-'))),
      webseeds: [`http://${PUBLIC}:${port}/`]
    })
    torrent.on('warning', ({ kind, message }) => kind === 'webseed' && warn(message))
    torrent.on('failed', (error) => warn(error.message))
  })
  outer = (request, response) => {
    const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '')
    if (!(request.headers.host ?? '').startsWith(NAME)) return void response.writeHead(302, { location }).end()
    const [start, end] = [Number(range![1]), Number(range![2]) + 1]
    const bytes = fixture.files.get('a')!
    response.writeHead(206, {
      'content-range': `bytes ${start}-${end - 1}/${bytes.length}`,
      'content-length': String(end - start)
    })
    response.end(bytes.subarray(start, end))
  }
  return async () => (await opened).close()
}
await scenario('a webseed that redirects to an inner address', webseed(`http://127.0.0.1:${port}/a`))
await scenario(
  'a webseed that redirects to a name that leads elsewhere at the second range',
  webseed(`http://${NAME}:${port}/a`)
)
await fixture.remove()
process.stdout.write(JSON.stringify({ results, named }))
process.exit()
