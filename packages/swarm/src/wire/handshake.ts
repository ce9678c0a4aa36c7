import { Buffer } from 'node:buffer'

export const HANDSHAKE_BYTES = 68
const PROTOCOL = Buffer.from('\x13BitTorrent protocol', 'latin1')

/**
 * The 68 bytes that open a connection (BEP 3), with the reserved bits that this engine reads. Ours say that BEP 52 is
 * supported; a peer that connects with a v2 infohash supports it, whatever its bit says.
 */
export interface Handshake {
  /** 20 bytes: the truncated v2 infohash (BEP 52). */
  readonly infohash: Uint8Array
  /** 20 bytes. */
  readonly peerId: Uint8Array
  readonly extended: boolean
  readonly fast: boolean
}

export function formatHandshake(handshake: Handshake): Uint8Array {
  const out = Buffer.alloc(HANDSHAKE_BYTES)
  out.set(PROTOCOL, 0)
  if (handshake.extended) out[25] = 0x10
  out[27] = (handshake.fast ? 0x04 : 0) | 0x10
  out.set(handshake.infohash, 28)
  out.set(handshake.peerId, 48)
  return out
}

/** True if `bytes` (of any length) can be the start of a plain handshake. */
export function startsHandshake(bytes: Uint8Array): boolean {
  const length = Math.min(bytes.length, PROTOCOL.length)
  for (let at = 0; at < length; at += 1) if (bytes[at] !== PROTOCOL[at]) return false
  return true
}

/** Parses exactly 68 bytes; undefined if they are not a handshake. */
export function tryParseHandshake(bytes: Uint8Array): Handshake | undefined {
  if (bytes.length !== HANDSHAKE_BYTES || !startsHandshake(bytes)) return undefined
  return {
    infohash: new Uint8Array(bytes.subarray(28, 48)),
    peerId: new Uint8Array(bytes.subarray(48, 68)),
    extended: (bytes[25]! & 0x10) !== 0,
    fast: (bytes[27]! & 0x04) !== 0
  }
}
