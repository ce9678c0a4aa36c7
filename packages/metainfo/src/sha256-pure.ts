import { sha1 } from '@noble/hashes/legacy.js'
import { sha256 } from '@noble/hashes/sha2.js'

// The implementation of `#sha256` without node:crypto. The Web Crypto API is asynchronous only, and would make every
// function of this package asynchronous.

/** Writes the SHA-256 of `bytes` to `out` at `offset`; `out` may overlap `bytes`. */
export function sha256Into(bytes: Uint8Array, out: Uint8Array, offset: number): void {
  out.set(sha256(bytes), offset)
}

export function sha1Into(bytes: Uint8Array, out: Uint8Array, offset: number): void {
  out.set(sha1(bytes), offset)
}
