import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import type { Clock } from '@svc/internal-clock'
import { DialGuard, type DialPolicy, isPublicAddress, parseCompact } from '@svc/internal-net'
import { type Announce, type Announced, MAX_PEERS, PEERS_WANTED, printableReason } from './announce.ts'
import type { TrackerUrl } from './tracker-url.ts'

const PROTOCOL_ID = 0x41727101980n
const ACTION = { connect: 0, announce: 1, error: 3 } as const
const EVENTS = { completed: 2, started: 1, stopped: 3 } as const
/** Lost datagrams are sent again after this time. */
const RESEND_MS = 3_000

/**
 * Announces over UDP (BEP 15). The socket is connected, so it receives datagrams from the tracker only; those that
 * match no request are dropped.
 *
 * @param policy on whose word the tracker is contacted
 * @throws Error with a message for people.
 */
export async function announceUdp(
  tracker: TrackerUrl,
  announce: Announce,
  policy: DialPolicy,
  signal: AbortSignal,
  clock: Clock
): Promise<Announced> {
  const [target] = await new DialGuard(policy).resolve(tracker.host)
  const { address, family } = target!
  signal.throwIfAborted()
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  try {
    const ask = conversation(socket, signal, clock)
    await new Promise<void>((resolve, reject) => {
      // without a route it gets an error, which the types leave out
      const connected = (error?: Error): void => (error === undefined ? resolve() : reject(error))
      socket.connect(tracker.port, address, connected)
    })
    const connected = await ask(ACTION.connect, 16, (transaction) => {
      const bytes = Buffer.alloc(16)
      bytes.writeBigUInt64BE(PROTOCOL_ID)
      transaction.copy(bytes, 12)
      return bytes
    })
    const answer = await ask(ACTION.announce, 20, (transaction) =>
      announceBytes(announce, connected.subarray(8, 16), transaction)
    )
    return {
      peers: parseCompact(answer.subarray(20), family === 6 ? 16 : 4).slice(0, MAX_PEERS),
      intervalMs: answer.readUInt32BE(8) * 1_000,
      trackerId: undefined,
      warning: undefined,
      byPrivate: !isPublicAddress(address)
    }
  } finally {
    socket.close()
  }
}

type UdpRequest = (action: number, minBytes: number, make: (transaction: Buffer) => Buffer) => Promise<Buffer>

/** Sends one request at a time over a socket, repeatedly until it is answered. */
function conversation(socket: Socket, signal: AbortSignal, clock: Clock): UdpRequest {
  let waiting: PromiseWithResolvers<Buffer> | undefined
  let accept: ((datagram: Buffer) => boolean) | undefined
  socket.on('error', (error) => waiting?.reject(error))
  socket.on('message', (datagram) => {
    if (accept?.(datagram)) waiting?.resolve(datagram)
  })
  return async (action, minBytes, make) => {
    const transaction = randomBytes(4)
    const bytes = make(transaction)
    const answer = Promise.withResolvers<Buffer>()
    waiting = answer
    accept = (datagram) => {
      if (datagram.length < 8 || !datagram.subarray(4, 8).equals(transaction)) return false
      const got = datagram.readUInt32BE(0)
      if (got === ACTION.error)
        answer.reject(new Error(`it refuses: ${printableReason(datagram.subarray(8).toString())}`))
      return got === action && datagram.length >= minBytes
    }
    const send = (): void => socket.send(bytes, (error) => error && answer.reject(error))
    const abort = (): void => answer.reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    const timer = clock.every(RESEND_MS, send)
    try {
      if (signal.aborted) abort()
      else send()
      return await answer.promise
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', abort)
      waiting = undefined
      accept = undefined
    }
  }
}

function announceBytes(announce: Announce, connection: Uint8Array, transaction: Buffer): Buffer {
  const { infohash, peerId, downloaded, left, uploaded, event, port } = announce
  const bytes = Buffer.alloc(98)
  bytes.set(connection, 0)
  bytes.writeUInt32BE(ACTION.announce, 8)
  transaction.copy(bytes, 12)
  bytes.set(infohash, 16)
  bytes.set(peerId, 36)
  bytes.writeBigUInt64BE(BigInt(downloaded), 56)
  bytes.writeBigUInt64BE(BigInt(left), 64)
  bytes.writeBigUInt64BE(BigInt(uploaded), 72)
  bytes.writeUInt32BE(event === undefined ? 0 : EVENTS[event], 80)
  bytes.writeInt32BE(event === 'stopped' ? 0 : PEERS_WANTED, 92)
  bytes.writeUInt16BE(port, 96)
  return bytes
}
