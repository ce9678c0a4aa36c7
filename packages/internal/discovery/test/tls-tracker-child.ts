import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { CERTIFICATE, KEY } from '../../../hub/test/certificate.ts'
import { Trackers } from '../src/tracker.ts'

// Prints what an announce to trackers that speak TLS comes to, and who was asked. In a process of its own, which trusts the certificate.

const PEER = Buffer.from('d8:intervali1800e5:peers6:\x01\x02\x03\x04\x00\x50e', 'latin1')
const asked: string[] = []
let secure = 0

const plain = createServer((request, response) => {
  asked.push(`http ${request.url!.split('?')[0]}`)
  // from plain to secure is no loss
  if (request.url!.startsWith('/up')) response.writeHead(302, { location: `https://localhost:${secure}/end` }).end()
  else response.end(PEER)
}).listen(0, 'localhost')
await once(plain, 'listening')
const { port } = plain.address() as AddressInfo
const tls = createTlsServer({ key: KEY, cert: CERTIFICATE }, (request, response) => {
  asked.push(`https ${request.url!.split('?')[0]}`)
  const to = { '/down': `http://localhost:${port}/end`, '/over': '/end', '/twice': '/down' }[
    request.url!.split('?')[0]!
  ]
  if (to === undefined) response.end(PEER)
  else response.writeHead(302, { location: to }).end()
}).listen(0, 'localhost')
await once(tls, 'listening')
secure = (tls.address() as AddressInfo).port

async function announced(url: string): Promise<unknown> {
  asked.length = 0
  const { promise, resolve } = Promise.withResolvers<string>()
  const trackers = new Trackers({
    urls: [url],
    infohash: Buffer.alloc(20, 1),
    peerId: Buffer.alloc(20, 2),
    port: 1_000,
    policy: 'owner',
    stats: () => ({ uploaded: 0, downloaded: 0, left: 5 }),
    found: ({ host }) => resolve(host),
    warn: () => resolve('failed')
  })
  const came = await promise
  const before = [...asked]
  await trackers.close()
  return [came, ...before]
}

const said = {
  direct: await announced(`https://localhost:${secure}/end`),
  over: await announced(`https://localhost:${secure}/over`),
  up: await announced(`http://localhost:${port}/up`),
  down: await announced(`https://localhost:${secure}/down`),
  twice: await announced(`https://localhost:${secure}/twice`)
}
process.stdout.write(JSON.stringify(said))
for (const server of [plain, tls]) {
  server.closeAllConnections()
  server.close()
}
