import { Buffer } from 'node:buffer'

const HEADER_BYTES = 20
const ST_RESET = 3
const ST_SYN = 4

/**
 * The answer to a uTP connection request (BEP 29): a reset, so that peers that try uTP first fall back to TCP at once
 * rather than after seconds. Undefined for any other packet. Never longer than what it answers.
 */
export function resetFor(packet: Uint8Array, nowMs: number): Uint8Array | undefined {
  if (packet.length < HEADER_BYTES || packet[0] !== ((ST_SYN << 4) | 1)) return undefined
  const source = Buffer.from(packet.buffer, packet.byteOffset, packet.length)
  const out = Buffer.alloc(HEADER_BYTES)
  out[0] = (ST_RESET << 4) | 1
  out.writeUInt16BE(source.readUInt16BE(2), 2)
  out.writeUInt32BE(Math.floor(nowMs * 1000) >>> 0, 4)
  out.writeUInt16BE(source.readUInt16BE(16), 18)
  return out
}
