// Runs in a network of its own, in which 8.8.8.8 is this machine and nothing else can be reached. A catalog at that address names
// webseeds inside of the network, by address and by a name. What asks there is counted.

import dns from 'node:dns'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { startFakeCatalog } from '@svc/testkit/fake-catalog'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { startInspected } from '../../../src/app/daemon.ts'
import { CatalogJobs } from '../../../src/jobs/catalog-jobs.ts'
import { HubJobs } from '../../../src/jobs/hub-jobs.ts'

const PUBLIC = '8.8.8.8'
const NAME = 'seed.example'
const lookup = dns.lookup
dns.lookup = ((name: string, options: { all?: boolean }, done: (...given: unknown[]) => void) => {
  if (name !== NAME) return lookup(name, options, done as never)
  queueMicrotask(() => (options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)))
}) as typeof dns.lookup
syncBuiltinESMExports()

const hub = await startFakeHub()
const catalog = await startFakeCatalog()
// The catalog, as the internet sees it
const { port: catalogPort } = new URL(catalog.endpoint)
const outside = createTcpServer((socket) => {
  const behind = connect(Number(catalogPort), '127.0.0.1')
  socket.on('error', () => behind.destroy()).pipe(behind)
  behind.on('error', () => socket.destroy()).pipe(socket)
}).listen(0, PUBLIC)
await once(outside, 'listening')
let asked = 0
const inner = createServer((_, response) => {
  asked += 1
  response.writeHead(404).end()
}).listen(0, '127.0.0.1')
await once(inner, 'listening')
const innerPort = (inner.address() as AddressInfo).port

const folder = mkdtempSync(join(tmpdir(), 'svc-inner-'))
const daemon = await startInspected({
  root: join(folder, 'root'),
  socketPath: join(folder, 's.sock'),
  fileConfig: {
    hub: { endpoint: hub.endpoint },
    catalog: { endpoint: `http://${PUBLIC}:${(outside.address() as AddressInfo).port}` },
    swarm: { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 20 }
  },
  networks: {
    hub: (context) => new HubJobs(context),
    catalog: (context) =>
      new CatalogJobs(context, {
        retry: { tries: 2, firstDelayMs: 10 },
        timings: { metadataTimeoutMs: 300, webAfterMs: 0, tickMs: 20 }
      })
  }
})
const client = createClient({ socketPath: daemon.socketPath })
const results: Record<string, unknown> = {}
for (const host of ['127.0.0.1', NAME]) {
  asked = 0
  const repo = host === NAME ? 'Org/Named' : 'Org/Literal'
  const content = Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}${host}`, 'latin1')])
  const commit = hub.commit({ id: repo, files: [{ path: 'm-q8_0.gguf', content, lfs: true }] })
  const webseed = encodeURIComponent(`http://${host}:${innerPort}/${repo}/resolve/${commit}`)
  const infohash = Buffer.alloc(20, repo).toString('hex')
  catalog.list([{ repo, magnet: `magnet:?xt=urn:btih:${infohash}&dn=m-q8_0.gguf&ws=${webseed}` }])
  const job = await client.waitJob(await client.importCatalog({ repo }), { intervalMs: 20 })
  results[host] = { asked, state: job.state, error: job.error }
}
process.stdout.write(JSON.stringify(results))
process.exit()
