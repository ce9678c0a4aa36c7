// Runs in a network of its own, in which 8.8.8.8 is this machine and nothing else can be reached, with the names of `rebinding-names.ts`.
// A hub in the open redirects to such a name. What asks at the inner address is counted.

import { createHash, randomBytes } from 'node:crypto'
import { openSync, truncateSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { digestFromHex } from '@svc/ref'
import { createHub, createMemorySink, HubError, type HubFile, type HubOptions, type HubSink } from '../src/index.ts'

const PUBLIC = '8.8.8.8'
const bytes = randomBytes(1 << 20)
let outside = 0
let inner = 0

const serve =
  (count: () => void): RequestListener =>
  (request, response) => {
    response.setHeader('Connection', 'close')
    if (request.url!.includes('/resolve/')) {
      response.writeHead(302, { location: `http://rebind.example:${port}/bytes` }).end()
      return
    }
    count()
    const [, start, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? [0, 0, bytes.length - 1]
    const part = bytes.subarray(Number(start), Number(last) + 1)
    const range = `bytes ${start}-${last}/${bytes.length}`
    response.writeHead(206, { 'content-range': range, 'content-length': part.length }).end(part)
  }
const open = (host: string, at: number, listener: RequestListener): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer(listener)
    server.listen(at, host, () => resolve((server.address() as AddressInfo).port))
  })
const port: number = await open(
  PUBLIC,
  0,
  serve(() => (outside += 1))
)
await open(
  '127.0.0.1',
  port,
  serve(() => (inner += 1))
)

const file: HubFile = {
  repoId: 'a/b',
  commit: '0'.repeat(40),
  path: 'm.gguf',
  sizeBytes: bytes.length,
  sha256: digestFromHex(createHash('sha256').update(bytes).digest('hex'))
}
const results: Record<string, unknown> = {}
async function scenario(name: string, sink: HubSink, options: HubOptions = {}): Promise<void> {
  truncateSync(process.env.SVC_TEST_LOOKUPS!)
  outside = 0
  inner = 0
  const hub = createHub({
    endpoint: `http://${PUBLIC}:${port}`,
    limits: { ranges: 1, rangeBytes: 128 << 10, writeBytes: 16 << 10, smallFileBytes: 64 << 10 },
    retry: { tries: 2, firstDelayMs: 1 },
    ...options
  })
  const reason = await hub.download(file, sink).then(
    () => 'done',
    (error) => (error instanceof HubError ? error.reason : String(error))
  )
  await hub.close()
  results[name] = { outside, inner, reason }
}

await scenario('a sink in memory', createMemorySink(bytes.length))
const held = createMemorySink(bytes.length)
await scenario('a sink that threads write to', {
  ...held,
  sizeBytes: bytes.length,
  ranges: held.ranges,
  direct: { fd: openSync(`${process.env.SVC_TEST_LOOKUPS}.bytes`, 'w+'), markWritten: () => undefined }
} as HubSink)
// As for a catalog's webseed: it redirects to itself, and by then its name leads elsewhere
await scenario('an endpoint that a stranger named', createMemorySink(bytes.length), {
  endpoint: `http://rebind.example:${port}`,
  policy: 'internet'
})
process.stdout.write(JSON.stringify(results))
process.exit()
