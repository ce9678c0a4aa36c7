/** A set of pieces as bits in wire order (BEP 3: the high bit of the first byte is piece 0), with a running count. */
export class Bitfield {
  readonly size: number
  readonly bytes: Uint8Array
  #count = 0

  constructor(size: number) {
    this.size = size
    this.bytes = new Uint8Array((size + 7) >> 3)
  }

  get count(): number {
    return this.#count
  }

  get complete(): boolean {
    return this.#count === this.size
  }

  has(index: number): boolean {
    return (this.bytes[index >> 3]! & (0x80 >> (index & 7))) !== 0
  }

  /** Sets a bit; returns whether it was clear. The index must be in bounds. */
  set(index: number): boolean {
    const mask = 0x80 >> (index & 7)
    const at = index >> 3
    if ((this.bytes[at]! & mask) !== 0) return false
    this.bytes[at]! |= mask
    this.#count += 1
    return true
  }

  clear(index: number): boolean {
    const mask = 0x80 >> (index & 7)
    const at = index >> 3
    if ((this.bytes[at]! & mask) === 0) return false
    this.bytes[at]! &= ~mask
    this.#count -= 1
    return true
  }

  setAll(): void {
    for (let index = 0; index < this.size; index += 1) this.set(index)
  }

  /** Replaces all bits from wire bytes; false when the length is wrong or a spare bit is set. */
  load(bytes: Uint8Array): boolean {
    if (bytes.length !== this.bytes.length) return false
    const spare = bytes.length * 8 - this.size
    if (spare > 0 && (bytes[bytes.length - 1]! & ((1 << spare) - 1)) !== 0) return false
    this.bytes.set(bytes)
    let count = 0
    for (const byte of bytes) count += POPCOUNT[byte]!
    this.#count = count
    return true
  }
}

const POPCOUNT = new Uint8Array(256)
for (let byte = 1; byte < 256; byte += 1) POPCOUNT[byte] = (byte & 1) + POPCOUNT[byte >> 1]!
