// Every client of ours asks a server on loopback, which names an address that nobody but the owner may. What is dialled
// all the same, and whether the inner server is asked, is the result. Runs with `resolver.ts`.

import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { mkdtempSync, openSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub, createMemorySink, type HubFile, type HubOptions, type HubSink } from '@svc/hub'
import { Trackers } from '@svc/internal-discovery'
import type { DialPolicy } from '@svc/internal-net'
import { buildInfo, leafLayer, piecesRoot } from '@svc/metainfo'
import { Repository } from '@svc/oci'
import { digestFromHex } from '@svc/ref'
import { createFileStorage, createSwarm } from '@svc/swarm'

const dialled = process.env.SVC_TEST_DIALLED!
const folder = mkdtempSync(join(tmpdir(), 'svc-dialling-'))
const bytes = Buffer.alloc(1 << 18, 7)
const sha256 = createHash('sha256').update(bytes).digest('hex')

let outer: RequestListener = () => undefined
let asked = 0
async function open(listener: RequestListener, onConnection: () => void = () => undefined): Promise<number> {
  const server = createServer((request, response) => {
    response.setHeader('connection', 'close')
    listener(request, response)
  })
  server.on('connection', onConnection)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
const port = await open((request, response) => outer(request, response))
const innerPort = await open(
  (_, response) => void response.end(),
  () => void (asked += 1)
)
const udp = createSocket('udp4', (datagram, { address, port: from }) => {
  asked += 1
  // BEP 15: an error for whatever was asked
  udp.send(Buffer.concat([Buffer.of(0, 0, 0, 3), datagram.subarray(12, 16)]), from, address)
})
await new Promise<void>((resolve) => udp.bind(innerPort, '127.0.0.1', resolve))

const redirectTo =
  (host: string): RequestListener =>
  (_, response) =>
    void response.writeHead(302, { location: `http://${host}:${innerPort}/x` }).end()

let stranger: Exclude<DialPolicy, 'owner'> = 'machine'

type Door = (host: string) => Promise<unknown>
const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code ?? String(error)
const outcome = (work: Promise<unknown>): Promise<unknown> => work.then(() => 'done', codeOf)

const file: HubFile = {
  repoId: 'a/b',
  commit: '0'.repeat(40),
  path: 'm.gguf',
  sizeBytes: bytes.length,
  sha256: digestFromHex(sha256)
}
async function download(sink: HubSink, options: HubOptions): Promise<unknown> {
  const hub = createHub({
    limits: { ranges: 1, rangeBytes: 128 << 10, writeBytes: 16 << 10, smallFileBytes: 64 << 10 },
    retry: { tries: 1, firstDelayMs: 1 },
    ...options
  })
  try {
    return await outcome(hub.download(file, sink))
  } finally {
    await hub.close()
  }
}

const OLDER = 'a'.repeat(64)
const NEWER = 'b'.repeat(64)
/** What the storage of a hub (Xet) answers: a hub that names the service of chunks, and a service that names their storage. */
function xet(cas: string, storage: string): RequestListener {
  const answerTo = (url: string): object => {
    if (url.includes('xet-read-token')) return { accessToken: 't', exp: 2 ** 40, casUrl: cas }
    const [chunks, unpacked_length] = [{ start: 0, end: 1 }, bytes.length / 2]
    return {
      offset_into_first_range: 0,
      // the first half of both versions is the same, so that the second is worth a fetch
      terms: [OLDER, url.includes(OLDER) ? OLDER : NEWER].map((hash) => ({ hash, range: chunks, unpacked_length })),
      xorbs: { [NEWER]: [{ url: `${storage}/xorb`, ranges: [{ chunks, bytes: { start: 0, end: 99 } }] }] }
    }
  }
  return (request, response) => void response.end(JSON.stringify(answerTo(request.url!)))
}

async function reuse(listener: RequestListener): Promise<unknown> {
  outer = listener
  const hub = createHub({
    limits: { smallFileBytes: 64 << 10 },
    retry: { tries: 1, firstDelayMs: 1 },
    endpoint: endpoint()
  })
  const older = { file: { ...file, xetHash: OLDER }, read: async (target: Uint8Array) => target.length }
  try {
    return await outcome(
      hub.reuse({ ...file, xetHash: NEWER }, async () => older, memory()).then(({ failure }) => Promise.reject(failure))
    )
  } finally {
    await hub.close()
  }
}

const memory = (): HubSink => createMemorySink(bytes.length)
const inFile = (): HubSink => ({
  ...createMemorySink(bytes.length),
  direct: { fd: openSync(join(folder, 'bytes'), 'w+'), markWritten: () => undefined }
})

/** Where the server is that names the others. */
let server = '127.0.0.1'

async function withRepository(work: (repository: Repository) => Promise<unknown>): Promise<unknown> {
  const credentials = { username: 'u', password: 'p' }
  const repository = new Repository(
    { registry: `${server}:${port}`, repository: 'a/b' },
    { credentials: async () => credentials, plainHttp: true }
  )
  try {
    return await outcome(work(repository))
  } finally {
    await repository.close()
  }
}

async function announce(url: string, policy: DialPolicy): Promise<unknown> {
  const warned = Promise.withResolvers<string>()
  const trackers = new Trackers({
    urls: [url],
    infohash: Buffer.alloc(20, 1),
    peerId: Buffer.alloc(20, 2),
    port: 9,
    policy,
    stats: () => ({ uploaded: 0, downloaded: 0, left: 1 }),
    found: () => undefined,
    warn: () => warned.resolve('warned')
  })
  try {
    return await warned.promise
  } finally {
    await trackers.close()
  }
}

const info = buildInfo({
  name: 'a',
  pieceLength: 65_536,
  files: [{ path: 'a', length: 100, piecesRoot: piecesRoot(leafLayer(bytes.subarray(0, 100)), 100) }]
})
async function webseed(): Promise<unknown> {
  const swarm = await createSwarm({ peerAddress: false })
  const warned = Promise.withResolvers<string>()
  const torrent = swarm.add({
    info,
    storage: createFileStorage(join(folder, 'swarm')),
    webseeds: [`${endpoint()}/`]
  })
  torrent.on('warning', ({ kind }) => kind === 'webseed' && warned.resolve('warned'))
  torrent.on('failed', (error) => warned.resolve(String(error)))
  try {
    return await warned.promise
  } finally {
    await swarm.close()
  }
}

const endpoint = (): string => `http://${server}:${port}`
const doors: Readonly<Record<string, Door>> = {
  'redirects of a hub': () => download(memory(), { endpoint: endpoint() }),
  'redirects of a hub, followed by threads': () => download(inFile(), { endpoint: endpoint() }),
  'a hub that a stranger named': (host) =>
    download(memory(), { endpoint: `http://${host}:${innerPort}`, policy: stranger }),
  'a service of chunks that a hub named': (host) => reuse(xet(`http://${host}:${innerPort}`, endpoint())),
  "a storage of chunks that a hub's service named": (host) => reuse(xet(endpoint(), `http://${host}:${innerPort}`)),
  'redirects of a registry': () => withRepository((repository) => repository.blob(`sha256:${sha256}` as never)),
  'logins of a registry': (host) => {
    outer = (_, response) =>
      void response.writeHead(401, { 'www-authenticate': `Bearer realm="https://${host}:${innerPort}/t"` }).end()
    return withRepository((repository) => repository.manifest('latest'))
  },
  'uploads of a registry': (host) =>
    withRepository((repository) =>
      repository.call({ method: 'PUT', target: new URL(`http://${host}:${innerPort}/x`), scope: 'push' } as never)
    ),
  'redirects of a webseed': webseed,
  'redirects of a tracker': () => announce(`${endpoint()}/announce`, 'owner'),
  'a tracker that a stranger named': (host) => announce(`http://${host}:${innerPort}/announce`, stranger),
  'a UDP tracker that a stranger named': (host) => announce(`udp://${host}:${innerPort}`, stranger)
}

const HOSTS = ['8.8.8.8', '169.254.7.7', '[::ffff:169.254.7.7]', '0.0.0.0', 'inner.test', 'mixed.test', 'mixed-6.test']
const results: Record<string, Record<string, unknown>> = {}
async function run(name: string, host: string, door: Door): Promise<void> {
  truncateSync(dialled)
  asked = 0
  outer = redirectTo(host)
  const said = await door(host)
  results[name] = { ...results[name], [host]: [said, readFileSync(dialled, 'utf8').split('\n').filter(Boolean), asked] }
}
for (const [name, door] of Object.entries(doors)) for (const host of HOSTS) await run(name, host, door)

// The table of SECURITY.md, at each door: servers at three places, each of which names four
const SERVERS = [
  ['machine', '127.0.0.1'],
  ['network', 'network.test'],
  ['internet', 'internet.test']
] as const
const table: Record<string, Record<string, string[]>> = {}
for (const [policy, host] of SERVERS) {
  server = host
  stranger = policy
  for (const [name, door] of Object.entries(doors)) {
    const reached: string[] = []
    for (const target of ['8.8.8.8', '10.1.1.1', '127.0.0.1', '169.254.7.7']) {
      await run('table', target, door)
      const [, addresses] = results.table![target] as [unknown, string[]]
      if (addresses.includes(target) || asked > 0) reached.push(target)
    }
    table[name] = { ...table[name], [policy]: reached }
  }
}
delete results.table
server = '127.0.0.1'

// That the results can be others: the owner's word is dialled, and seen
await run('the word of the owner', 'inner.test', () => announce(`http://inner.test:${innerPort}/announce`, 'owner'))
await run('the word of the owner', 'mixed.test', () => announce(`udp://mixed.test:${innerPort}`, 'owner'))
await run('a socket', '169.254.7.7', () =>
  outcome(new Promise((_, reject) => connect(9, '169.254.7.7').on('error', reject)))
)
// What is on this machine may name it, unless its name has an address in the open as well
await run('redirects of a hub', 'loopback.test', doors['redirects of a hub']!)
await run('redirects of a hub in the open', 'loopback.test', () =>
  download(memory(), { endpoint: `http://in-the-open.test:${port}` })
)
rmSync(folder, { recursive: true })
process.stdout.write(JSON.stringify({ results, table }))
process.exit()
