/** Bytes that look random and are the same on every run (xorshift32). */
export function seededBytes(sizeBytes: number, seed = 1): Uint8Array {
  const words = new Uint32Array(Math.ceil(sizeBytes / 4))
  let state = (seed * 2_654_435_761) >>> 0 || 1
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[i] = state
  }
  return new Uint8Array(words.buffer, 0, sizeBytes)
}
