import type { Duplex } from 'node:stream'
import type { Clock } from '@svc/internal-clock'
import { envelope, JSON_TYPE, type RefusalCode } from './envelope.ts'

// As an ES module, node:http evaluates all its lazy exports, among them a WebSocket client with its own fetch.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

/** A peer that continues to send must not keep the socket open. */
const LINGER_MS = 1_000

/** A response from the listener itself, after which the connection ends. */
export interface Refusal {
  readonly status: number
  readonly code: RefusalCode
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Responds on a socket that has no response object, and closes it. */
export function refuseRaw(socket: Duplex, refusal: Refusal, clock: Clock): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const body = JSON.stringify(envelope(refusal.code, refusal.message))
  const lines = Object.entries({
    'Content-Type': JSON_TYPE,
    ...refusal.headers,
    Date: new Date(clock.now()).toUTCString(),
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close'
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  const linger = clock.after(LINGER_MS, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.once('close', () => linger.cancel())
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\n${lines.join('')}\r\n${body}`)
}
