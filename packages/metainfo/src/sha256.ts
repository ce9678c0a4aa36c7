import * as platform from '#sha256'

// `#sha256` is chosen by the `imports` of this package's manifest: node:crypto in Node, plain JavaScript elsewhere.

/** SHA-256 of `bytes`, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(32)
  platform.sha256Into(bytes, out, 0)
  return out
}

/** Writes the SHA-256 of `bytes` to `out` at `offset`; `out` may overlap `bytes`. */
export const sha256Into: (bytes: Uint8Array, out: Uint8Array, offset: number) => void = platform.sha256Into

/** SHA-1 of `bytes`, 20 bytes: infohashes of BitTorrent v1 only. */
export function sha1(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(20)
  platform.sha1Into(bytes, out, 0)
  return out
}
