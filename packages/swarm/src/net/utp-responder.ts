import { Buffer } from 'node:buffer'
import type { RemoteInfo, Socket } from 'node:dgram'
import type { Clock } from '@svc/internal-clock'
import { isPort, PerSecond } from '@svc/internal-net'
import { guarded } from './guarded.ts'

/** Resets per second, a limit against floods of unsolicited datagrams. */
const MAX_RESETS_PER_SECOND = 200

/** Answers uTP connection requests to a socket with resets, up to a rate limit, and ignores all other datagrams. */
export function refuseUtp(socket: Socket, clock: Clock): void {
  const resets = new PerSecond({ total: MAX_RESETS_PER_SECOND })
  const answer = guarded((packet: Uint8Array, { address, port }: RemoteInfo) => {
    // the source is not trusted; it may even be port 0, to which nothing can be sent.
    if (!isPort(port)) return
    const nowMs = clock.monotonic()
    const reset = resetFor(packet, nowMs)
    // without a callback, the error of a single send (an unreachable network) would be thrown later.
    if (reset !== undefined && resets.take('', nowMs)) socket.send(reset, port, address, () => undefined)
  })
  socket.on('message', answer)
}

const HEADER_BYTES = 20
const ST_RESET = 3
const ST_SYN = 4

/** The reset for a uTP connection request (BEP 29), never longer than that; undefined for any other packet. */
function resetFor(packet: Uint8Array, nowMs: number): Uint8Array | undefined {
  if (packet.length < HEADER_BYTES || packet[0] !== ((ST_SYN << 4) | 1)) return undefined
  const source = Buffer.from(packet.buffer, packet.byteOffset, packet.length)
  const out = Buffer.alloc(HEADER_BYTES)
  out[0] = (ST_RESET << 4) | 1
  out.writeUInt16BE(source.readUInt16BE(2), 2)
  out.writeUInt32BE(Math.floor(nowMs * 1000) >>> 0, 4)
  out.writeUInt16BE(source.readUInt16BE(16), 18)
  return out
}
