import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext, TLSSocket } from 'node:tls'
import { createHub, createMemorySink, type HubFile, type HubSink } from '../src/index.ts'
import { RangeThreads } from '../src/range-threads.ts'
import { CERTIFICATE, KEY } from './certificate.ts'

// Prints what comes of servers that end their connections without TLS's own end (close_notify), as anybody on the way can: with a TCP
// FIN, or a reset. In a process of its own, for the certificate.

const SIZE = 600_001
const CONTENT = Buffer.from(Array.from({ length: SIZE }, (_, at) => (at * 7 + (at >> 8)) & 0xff))
const BLOCK = 100_000

/** What is said to a request, how much of it, and whether TLS is ended; undefined: the connection stays open. */
interface Said {
  readonly head: string
  readonly body: Uint8Array
  readonly end: 'fin' | 'reset' | 'close_notify' | undefined
}

let answer: (start: number, end: number, isRange: boolean) => Said
const sockets = new Set<TLSSocket>()
const secureContext = createSecureContext({ key: KEY, cert: CERTIFICATE })
const server = createServer((raw) => {
  const tls = new TLSSocket(raw, { isServer: true, secureContext })
  sockets.add(tls)
  raw.on('error', () => undefined)
  tls.on('error', () => undefined).on('close', () => sockets.delete(tls))
  tls.on('data', (request) => {
    const range = /range: bytes=(\d+)-(\d+)/i.exec(request.toString('latin1'))
    const { head, body, end } = answer(Number(range?.[1] ?? 0), Number(range?.[2] ?? SIZE - 1) + 1, range !== null)
    tls.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]), () => {
      if (end === 'fin') raw.end()
      else if (end === 'reset') raw.resetAndDestroy()
      else if (end === 'close_notify') tls.end()
    })
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
const endpoint = `https://localhost:${port}`

const partial = (start: number, end: number): string =>
  `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes ${start}-${end - 1}/${SIZE}\r\nContent-Length: ${end - start}`
/** The bytes of a range, less so many, and then an end. */
const lacking =
  (missing: number, end: Said['end']): typeof answer =>
  (from, to) => ({ head: partial(from, to), body: CONTENT.subarray(from, to - missing), end })
const whole =
  (headers: string, body: Uint8Array, end: Said['end']): typeof answer =>
  () => ({ head: `HTTP/1.1 200 OK${headers}`, body, end })

const folder = mkdtempSync(join(tmpdir(), 'svc-hub-cut-'))
const path = join(folder, 'file')
const threads = new RangeThreads(0, undefined, 1)

/** One range by a thread: its reply or the code of its error, how many bytes it reported, and whether they are right. */
async function range(given: typeof answer): Promise<readonly [reply: string, bytes: number, isRight: boolean]> {
  answer = given
  const fd = openSync(path, 'w')
  let bytes = 0
  const place = { start: 0, end: SIZE, sizeBytes: SIZE, fd, policy: 'owner' as const }
  const times = { connectMs: 30_000, stallMs: 30_000, slowMs: 60_000 }
  const reply = await threads
    .fetch({ url: `${endpoint}/file`, headers: {}, ...place, ...times }, new AbortController().signal, (progress) => {
      if ('start' in progress) bytes = progress.end
    })
    .catch(({ code }: { readonly code: string }) => code)
  closeSync(fd)
  return [reply, bytes, readFileSync(path).equals(CONTENT.subarray(0, bytes))]
}

/** A download by the hub's client: its reason, how many bytes the sink holds, and whether they are right. */
async function download(
  given: typeof answer,
  { tries = 1, isDirect = false } = {}
): Promise<readonly [reply: string, bytes: number, isRight: boolean]> {
  answer = given
  const limits = { rangeBytes: BLOCK, rangesPerFile: 1, smallFileBytes: 1, writeBytes: 16_384 }
  const hub = createHub({
    endpoint,
    limits: isDirect ? limits : {},
    retry: { tries, sleep: async () => undefined }
  })
  const file: HubFile = {
    repoId: 'a/b',
    commit: 'a'.repeat(40),
    path: 'm',
    sizeBytes: SIZE,
    gitBlobSha1: '0'.repeat(40)
  }
  const memory = createMemorySink(SIZE)
  const fd = openSync(path, 'w')
  let byThreads = 0
  const sink: HubSink = {
    ...memory,
    direct: isDirect
      ? {
          fd,
          markWritten: (start, end) => {
            byThreads += end - start
            void memory.write(start, readFileSync(path).subarray(start, end))
          }
        }
      : undefined
  }
  const reply = await hub.download(file, sink).then(
    () => 'done',
    ({ reason }: { readonly reason: string }) => reason
  )
  closeSync(fd)
  await hub.close()
  const held = memory.ranges().reduce((sum, [start, end]) => sum + end - start, 0)
  const isRight = memory.ranges().every(([s, e]) => CONTENT.subarray(s, e).equals(memory.bytes.subarray(s, e)))
  return [isDirect ? `${reply}, ${byThreads > 0 ? 'by threads' : 'by the client'}` : reply, held, isRight]
}

let cuts = 0
const length = `\r\nContent-Length: ${SIZE}`
const half = CONTENT.subarray(0, 300_000)
const chunk = Buffer.concat([Buffer.from(`${SIZE.toString(16)}\r\n`), half])
const said = {
  rangeWhole: await range(lacking(0, undefined)),
  rangeAtItsEnd: await range(lacking(0, 'fin')),
  rangeResetAtItsEnd: (await range(lacking(0, 'reset'))).slice(2),
  rangeLastByte: await range(lacking(1, 'fin')),
  rangeMiddle: await range(lacking(300_001, 'fin')),
  rangeEndedInTheMiddle: await range(lacking(300_001, 'close_notify')),
  rangeReset: (await range(lacking(300_001, 'reset'))).slice(2),
  clientAtItsEnd: await download(whole(length, CONTENT, 'fin')),
  clientLastByte: await download(whole(length, CONTENT.subarray(0, -1), 'fin')),
  clientMiddle: await download(whole(length, half, 'fin')),
  clientWithoutLength: await download(whole('\r\nConnection: close', half, 'fin')),
  clientChunk: await download(whole('\r\nTransfer-Encoding: chunked', chunk, 'fin')),
  // each range is cut once, in the middle, and then goes on there
  goesOn: await download(
    (start, end) => lacking(++cuts % 2 === 0 ? 0 : Math.floor((end - start) / 2), 'fin')(start, end, true),
    { tries: 6, isDirect: true }
  )
}
await threads.close()
for (const socket of sockets) socket.destroy()
server.close()
rmSync(folder, { recursive: true })
process.stdout.write(JSON.stringify(said))
