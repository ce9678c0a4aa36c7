import { closeSync, openSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { RangeThreads } from '../src/range-threads.ts'
import { CERTIFICATE, KEY } from './certificate.ts'

// Prints what one range thread says of servers that speak TLS. In a process of its own: a thread that hangs holds up its end.

const SIZE = 3_000_001
const STALL_MS = 500
const head = `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-${SIZE - 1}/${SIZE}\r\nContent-Length: ${SIZE}\r\n\r\n`
const file = Buffer.concat([Buffer.from(head), Buffer.alloc(SIZE, 1)])

const ANSWERS: Readonly<Record<string, (socket: TLSSocket) => void>> = {
  '/file': (socket) => void socket.write(file),
  '/long-head': (socket) => void socket.write(`HTTP/1.1 206 Partial Content\r\nx: ${'x'.repeat(60_000)}`),
  '/slow-head': (socket) => {
    let at = 0
    const drip = setInterval(() => socket.write(head.slice(at, ++at)), STALL_MS / 10)
    socket.on('close', () => clearInterval(drip))
  }
}
const server = createServer({ key: KEY, cert: CERTIFICATE }, (socket) => {
  socket.on('error', () => undefined)
  socket.on('data', (request) => ANSWERS[request.toString('latin1').split(' ')[1]!]!(socket))
})
server.on('tlsClientError', () => undefined)
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo

const threads = new RangeThreads(0, undefined, 1)
const never = new AbortController().signal
const [writable, unwritable] = [openSync('/dev/null', 'w'), openSync('/dev/null', 'r')]
async function say(host: string, path: string, fd = writable): Promise<unknown> {
  const range = { start: 0, end: SIZE, sizeBytes: SIZE, policy: 'owner' as const }
  const stallMs = path === '/slow-head' ? STALL_MS : 30_000
  const job = {
    ...range,
    url: `https://${host}:${port}${path}`,
    headers: {},
    fd,
    connectMs: 30_000,
    stallMs,
    slowMs: 60_000
  }
  return threads.fetch(job, never, () => undefined).catch(({ code }: { code: unknown }) => code)
}
const said = {
  file: await say('localhost', '/file'),
  longHead: await say('localhost', '/long-head'),
  slowHead: await say('localhost', '/slow-head'),
  unwritable: await say('localhost', '/file', unwritable),
  otherName: await say('127.0.0.1', '/file'),
  fileAgain: await say('localhost', '/file')
}
await threads.close()
server.close()
for (const fd of [writable, unwritable]) closeSync(fd)
process.stdout.write(JSON.stringify(said))
