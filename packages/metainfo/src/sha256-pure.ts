// The implementation of `#sha256` without node:crypto: FIPS 180-4 on 32-bit integers. The Web Crypto API is
// asynchronous only, and would make every function of this package asynchronous.

const BLOCK = 64

/** The first 32 bits of the fractional parts of the square (roots) or cube roots of the first primes (FIPS 180-4 §4.2.2, §5.3.3). */
function fractions(count: number, root: 2 | 3): Uint32Array {
  const out = new Uint32Array(count)
  for (let prime = 2, at = 0; at < count; prime += 1) {
    let divisor = 2
    while (divisor * divisor <= prime && prime % divisor !== 0) divisor += 1
    if (divisor * divisor <= prime) continue
    // Exact: the integer root of prime · 2^(32·root), by Newton's method on big integers.
    const target = BigInt(prime) << BigInt(32 * root)
    let guess = BigInt(Math.floor((root === 2 ? Math.sqrt(prime) : Math.cbrt(prime)) * 2 ** 32))
    const power = (value: bigint): bigint => (root === 2 ? value * value : value * value * value)
    while (power(guess) > target) guess -= 1n
    while (power(guess + 1n) <= target) guess += 1n
    out[at] = Number(guess & 0xffff_ffffn)
    at += 1
  }
  return out
}

const K = fractions(64, 3)
const H256 = fractions(8, 2)
const H1 = new Uint32Array([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0])
const words = new Uint32Array(80)

function loadWords(block: Uint8Array, at: number): void {
  for (let word = 0; word < 16; word += 1) {
    const byte = at + word * 4
    words[word] = (block[byte]! << 24) | (block[byte + 1]! << 16) | (block[byte + 2]! << 8) | block[byte + 3]!
  }
}

const rotateRight = (value: number, bits: number): number => (value >>> bits) | (value << (32 - bits))

function compress256(state: Uint32Array, block: Uint8Array, at: number): void {
  loadWords(block, at)
  for (let word = 16; word < 64; word += 1) {
    const early = words[word - 15]!
    const late = words[word - 2]!
    const s0 = rotateRight(early, 7) ^ rotateRight(early, 18) ^ (early >>> 3)
    const s1 = rotateRight(late, 17) ^ rotateRight(late, 19) ^ (late >>> 10)
    words[word] = (words[word - 16]! + s0 + words[word - 7]! + s1) | 0
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let round = 0; round < 64; round += 1) {
    const s1 = rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[round]! + words[round]!) | 0
    const s0 = rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  const changed = [a, b, c, d, e, f, g, h]
  for (let at = 0; at < 8; at += 1) state[at]! += changed[at]!
}

function compress1(state: Uint32Array, block: Uint8Array, at: number): void {
  loadWords(block, at)
  for (let word = 16; word < 80; word += 1) {
    const mixed = words[word - 3]! ^ words[word - 8]! ^ words[word - 14]! ^ words[word - 16]!
    words[word] = (mixed << 1) | (mixed >>> 31)
  }
  let [a, b, c, d, e] = state as unknown as [number, number, number, number, number]
  for (let round = 0; round < 80; round += 1) {
    let f: number
    let k: number
    if (round < 20) {
      f = (b & c) | (~b & d)
      k = 0x5a827999
    } else if (round < 40) {
      f = b ^ c ^ d
      k = 0x6ed9eba1
    } else if (round < 60) {
      f = (b & c) | (b & d) | (c & d)
      k = 0x8f1bbcdc
    } else {
      f = b ^ c ^ d
      k = 0xca62c1d6
    }
    const next = (((a << 5) | (a >>> 27)) + f + e + k + words[round]!) | 0
    e = d
    d = c
    c = (b << 30) | (b >>> 2)
    b = a
    a = next
  }
  const changed = [a, b, c, d, e]
  for (let at = 0; at < 5; at += 1) state[at]! += changed[at]!
}

function hashInto(
  bytes: Uint8Array,
  initial: Uint32Array,
  compress: (state: Uint32Array, block: Uint8Array, at: number) => void,
  out: Uint8Array,
  offset: number
): void {
  const state = new Uint32Array(initial)
  let at = 0
  for (; at + BLOCK <= bytes.length; at += BLOCK) compress(state, bytes, at)
  // The remaining bytes, a one bit, zeros, and the length in bits as a 64-bit number (FIPS 180-4 §5.1.1).
  const left = bytes.length - at
  const tail = new Uint8Array(left + 9 <= BLOCK ? BLOCK : 2 * BLOCK)
  tail.set(bytes.subarray(at))
  tail[left] = 0x80
  const view = new DataView(tail.buffer)
  view.setUint32(tail.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(tail.length - 4, (bytes.length << 3) >>> 0)
  for (let from = 0; from < tail.length; from += BLOCK) compress(state, tail, from)
  for (let word = 0; word < state.length; word += 1) {
    const value = state[word]!
    out[offset + word * 4] = value >>> 24
    out[offset + word * 4 + 1] = value >>> 16
    out[offset + word * 4 + 2] = value >>> 8
    out[offset + word * 4 + 3] = value
  }
}

/** Writes the SHA-256 of `bytes` to `out` at `offset`; `out` may overlap `bytes`. */
export function sha256Into(bytes: Uint8Array, out: Uint8Array, offset: number): void {
  hashInto(bytes, H256, compress256, out, offset)
}

/** Writes the SHA-1 of `bytes` to `out` at `offset`. */
export function sha1Into(bytes: Uint8Array, out: Uint8Array, offset: number): void {
  hashInto(bytes, H1, compress1, out, offset)
}
