// A keep-alive HTTP client over a Unix socket, in a separate process so that it does not share an event loop with the harness.
// argv[2] is a LoadRequest as JSON; sends the LoadResult as an IPC message. Stops after its time or count, or on any IPC message.
import { connect } from 'node:net'
import { quantile } from './measure.ts'

export interface LoadRequest {
  readonly socketPath: string
  readonly path: string
  readonly connections: number
  readonly seconds: number
  readonly maxRequests: number
  /** Pause of each connection between a response and the next request; 0: none. */
  readonly pauseMs: number
}
export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

const load = JSON.parse(process.argv[2]!) as LoadRequest
const request = Buffer.from(`GET ${load.path} HTTP/1.1\r\nHost: svc\r\n\r\n`)
const latenciesMs = new Float64Array(load.maxRequests)
let sent = 0
let answered = 0
let stopping = false
let open = 0
const begun = performance.now()

function finish(): void {
  const seconds = (performance.now() - begun) / 1000
  const all = latenciesMs.subarray(0, answered)
  const result: LoadResult = {
    requests: answered,
    seconds,
    p50Ms: quantile(all, 0.5),
    p99Ms: quantile(all, 0.99),
    maxMs: quantile(all, 1)
  }
  process.send!(result, () => process.disconnect())
}

function fail(message: string): never {
  process.stderr.write(`load client: ${message}\n`)
  process.exit(1)
}

/** Every response has the same length, so that counting bytes is enough. */
function lengthOf(head: string): number {
  if (!head.startsWith('HTTP/1.1 200')) fail(head)
  const end = head.indexOf('\r\n\r\n')
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1]
  if (end < 0 || length === undefined) fail(`no Content-Length in ${head}`)
  return end + 4 + Number(length)
}

function run(): void {
  let expected = 0
  let received = 0
  let at = 0
  open++
  const socket = connect({
    path: load.socketPath,
    onread: {
      buffer: Buffer.allocUnsafe(65_536),
      callback: (count, buffer) => {
        if (expected === 0) expected = lengthOf(Buffer.from(buffer.buffer, buffer.byteOffset, count).toString('latin1'))
        received += count
        if (received < expected) return true
        if (received > expected) fail('an answer of another length')
        latenciesMs[answered++] = performance.now() - at
        received = 0
        if (load.pauseMs > 0) setTimeout(next, load.pauseMs)
        else next()
        return true
      }
    }
  })
  const next = (): void => {
    if (stopping || sent >= load.maxRequests || performance.now() - begun >= load.seconds * 1000) {
      socket.destroy()
      if (--open === 0) finish()
      return
    }
    sent++
    at = performance.now()
    socket.write(request)
  }
  socket.on('connect', next)
  socket.on('error', (error) => fail(error.message))
  socket.on('end', () => fail('the server closed the connection'))
}

process.on('message', () => {
  stopping = true
})
for (let i = 0; i < load.connections; i++) run()
