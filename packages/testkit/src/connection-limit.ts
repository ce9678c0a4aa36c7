import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface ConnectionLimitOptions {
  /** How many it bears from one address. Default: any number. */
  readonly bears?: number
  /**
   * What more of them lead to. `slow`: all of that address share a quarter of what the borne ones would get · `429`, `503`: those beyond get
   * that answer · `reset`: their connections are reset.
   */
  readonly beyond?: 'slow' | '429' | '503' | 'reset'
  /** Of each connection. */
  readonly bytesPerSecond: number
  /** Sent with a refusal, in seconds. */
  readonly retryAfter?: number
  /** By path; undefined is a 404. */
  readonly contentOf: (path: string) => Uint8Array | undefined
}

/** A server of bytes that counts who asks. */
export interface ConnectionLimit {
  /** `http://127.0.0.1:port` */
  readonly origin: string
  /** The most that it served at once. */
  readonly mostAtOnce: number
  readonly refusals: number
  close(): Promise<void>
}

interface Sending {
  readonly response: ServerResponse
  readonly bytes: Uint8Array
  readonly address: string
  at: number
}

const TICK_MS = 20

/** Starts a server that sends at a fixed rate to each connection, and bears only some of one address. */
export async function startConnectionLimit(options: ConnectionLimitOptions): Promise<ConnectionLimit> {
  const { bears = Number.POSITIVE_INFINITY, beyond = 'slow', bytesPerSecond, retryAfter, contentOf } = options
  const sendings = new Set<Sending>()
  const sockets = new Set<Socket>()
  let [mostAtOnce, refusals] = [0, 0]
  const countOf = (address: string): number => [...sendings].filter((each) => each.address === address).length

  const server = createServer((request, response) => {
    const address = request.socket.remoteAddress!
    if ((beyond === '429' || beyond === '503') && countOf(address) >= bears) {
      refusals++
      const headers = { 'content-length': '0', ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }) }
      return void response.writeHead(Number(beyond), headers).end()
    }
    const content = contentOf(new URL(request.url!, 'http://source').pathname)
    if (content === undefined) return void response.writeHead(404, { 'content-length': '0' }).end()
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    const [start, end] = from === undefined ? [0, content.length] : [Number(from), Number(to) + 1]
    response.writeHead(from === undefined ? 200 : 206, {
      'content-length': String(end - start),
      etag: '"same"',
      ...(from !== undefined && { 'content-range': `bytes ${start}-${end - 1}/${content.length}` })
    })
    response.flushHeaders()
    const sending = { response, bytes: content.subarray(start, end), address, at: 0 }
    sendings.add(sending)
    response.on('close', () => sendings.delete(sending))
    mostAtOnce = Math.max(mostAtOnce, countOf(address))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    const same = [...sockets].filter(({ remoteAddress }) => remoteAddress === socket.remoteAddress)
    if (beyond !== 'reset' || same.length <= bears) return
    refusals++
    socket.resetAndDestroy()
  })

  let lastMs = performance.now()
  const tick = setInterval(() => {
    const nowMs = performance.now()
    const each = (bytesPerSecond * (nowMs - lastMs)) / 1_000
    lastMs = nowMs
    for (const sending of [...sendings]) {
      const { response, bytes, address, at } = sending
      const count = countOf(address)
      const share = beyond === 'slow' && count > bears ? (bears * each) / 4 / count : each
      sending.at = Math.min(bytes.length, at + share)
      const chunk = bytes.subarray(Math.floor(at), Math.floor(sending.at))
      if (chunk.length > 0) response.write(chunk)
      if (sending.at < bytes.length) continue
      sendings.delete(sending)
      response.end()
    }
  }, TICK_MS)

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get mostAtOnce() {
      return mostAtOnce
    },
    get refusals() {
      return refusals
    },
    close: () =>
      new Promise((resolve) => {
        clearInterval(tick)
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}
