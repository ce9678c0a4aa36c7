/** RC4 without the first 1,024 bytes of its key stream, as message stream encryption has it: obfuscation, not secrecy. */
export class Rc4 {
  readonly #state = new Uint8Array(256)
  #i = 0
  #j = 0

  constructor(key: Uint8Array) {
    const state = this.#state
    for (let at = 0; at < 256; at += 1) state[at] = at
    for (let at = 0, j = 0; at < 256; at += 1) {
      j = (j + state[at]! + key[at % key.length]!) & 255
      const held = state[at]!
      state[at] = state[j]!
      state[j] = held
    }
    this.apply(new Uint8Array(1024))
  }

  /** Encrypts or decrypts in place and returns the same array. */
  apply(bytes: Uint8Array): Uint8Array {
    const state = this.#state
    let i = this.#i
    let j = this.#j
    for (let at = 0; at < bytes.length; at += 1) {
      i = (i + 1) & 255
      const a = state[i]!
      j = (j + a) & 255
      const b = state[j]!
      state[i] = b
      state[j] = a
      bytes[at]! ^= state[(a + b) & 255]!
    }
    this.#i = i
    this.#j = j
    return bytes
  }
}
