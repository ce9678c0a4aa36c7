import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'

// The only place of the pure modules that reaches for a platform: whoever ports them replaces this file.
// One-shot hashing with a string result: measured 3x faster on 64-byte pairs than a Buffer result (no allocation of a
// backing store per call) and 4x faster on 16 KiB blocks than createHash.

const latin1Write = (
  Buffer.prototype as unknown as {
    latin1Write: (this: Uint8Array, text: string, offset: number, length: number) => number
  }
).latin1Write

/** SHA-256 of `bytes`, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(32)
  sha256Into(bytes, out, 0)
  return out
}

/** Writes the SHA-256 of `bytes` to `out` at `offset`; `out` may overlap `bytes`. */
export function sha256Into(bytes: Uint8Array, out: Uint8Array, offset: number): void {
  latin1Write.call(out, hash('sha256', bytes, 'binary'), offset, 32)
}

/** SHA-1 of `bytes`, 20 bytes: infohashes of BitTorrent v1 only. */
export function sha1(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(20)
  latin1Write.call(out, hash('sha1', bytes, 'binary'), 0, 20)
  return out
}
