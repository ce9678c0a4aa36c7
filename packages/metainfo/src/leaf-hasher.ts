import { ancestorLayer, BLOCK_BYTES, blockCount, foldLayer, HASH_BYTES, heightOf, SUBTREE_LEVEL } from './merkle.ts'
import { sha256Into } from './sha256.ts'

// Loaded by URL into the thread that hashes a file: see leaf-hasher-url.ts.

const MAX_FIRST_ALLOCATION = 16 * 1024 * 1024
/** Bytes of the leaves below a node of `SUBTREE_LEVEL`. */
const SUBTREE_LEAVES = HASH_BYTES << SUBTREE_LEVEL

/** Computes the leaf layer of a stream (BEP 52), 32 bytes per 16 KiB block, whatever the sizes of its chunks. */
export interface LeafHasher {
  update(chunk: Uint8Array): void
  /** The leaf layer of all bytes so far, empty for none. Ends the hasher. */
  digest(): Uint8Array
  /**
   * To be called after `digest`: for more than one block the pieces `root`, for more than 1 MiB also the nodes of `SUBTREE_LEVEL`
   * (`subtrees`). These were folded as their leaves came, so that nobody waits for a hundred thousand hashes after the last byte.
   */
  further(): { root?: Uint8Array; subtrees?: Uint8Array }
}

/**
 * Blocks are hashed straight out of the chunk; only a block that spans chunks is copied. `sizeBytes`, if known, sizes
 * the result buffer (at first up to 16 MiB, which covers 8 GiB of data); it is a hint and is not checked.
 */
export default function createLeafHasher(_options?: unknown, sizeBytes?: number): LeafHasher {
  const leaves = new LeafLayer(sizeBytes === undefined ? 64 : Math.max(1, blockCount(sizeBytes)))
  /** For a block that spans chunks or is the last, and no larger than the file: a thousand small files need a thousand of them. */
  let block = new Uint8Array(0)
  let held = 0
  const hold = (bytes: Uint8Array): void => {
    const most = Math.min(BLOCK_BYTES, Math.max(sizeBytes ?? BLOCK_BYTES, held + bytes.length))
    if (block.length < held + bytes.length) block = grown(block, held, most)
    block.set(bytes, held)
    held += bytes.length
  }
  return {
    update(chunk) {
      let at = 0
      if (held > 0) {
        at = Math.min(BLOCK_BYTES - held, chunk.length)
        hold(at === chunk.length ? chunk : chunk.subarray(0, at))
        if (held < BLOCK_BYTES) return
        leaves.put(block)
        held = 0
      }
      for (; at + BLOCK_BYTES <= chunk.length; at += BLOCK_BYTES) leaves.put(chunk.subarray(at, at + BLOCK_BYTES))
      if (at < chunk.length) hold(chunk.subarray(at))
    },
    digest() {
      if (held > 0) leaves.put(block.subarray(0, held))
      held = 0
      return leaves.layer()
    },
    further: () => leaves.further()
  }
}

/** The leaves so far, and the nodes above them of `SUBTREE_LEVEL`. */
class LeafLayer {
  #leaves: Uint8Array
  #length = 0
  #subtrees = new Uint8Array(0)
  #folded = 0

  constructor(expected: number) {
    this.#leaves = new Uint8Array(Math.min(expected * HASH_BYTES, MAX_FIRST_ALLOCATION))
  }

  put(block: Uint8Array): void {
    if (this.#length === this.#leaves.length) this.#leaves = grown(this.#leaves, this.#length, this.#length * 2)
    sha256Into(block, this.#leaves, this.#length)
    this.#length += HASH_BYTES
    if (this.#length % SUBTREE_LEAVES === 0) this.#foldSubtree(this.#length - SUBTREE_LEAVES)
  }

  layer(): Uint8Array {
    return this.#length === this.#leaves.length ? this.#leaves : this.#leaves.slice(0, this.#length)
  }

  further(): ReturnType<LeafHasher['further']> {
    const count = this.#length / HASH_BYTES
    if (count < 2) return {}
    if (this.#length < SUBTREE_LEAVES)
      return { root: ancestorLayer(this.#leaves.subarray(0, this.#length), 0, heightOf(count)) }
    const rest = this.#length % SUBTREE_LEAVES
    if (rest !== 0) this.#foldSubtree(this.#length - rest)
    const layer = this.#subtrees.slice(0, this.#folded)
    if (this.#folded === HASH_BYTES) return { root: layer }
    return { root: ancestorLayer(layer, SUBTREE_LEVEL, heightOf(count) - SUBTREE_LEVEL), subtrees: layer }
  }

  #foldSubtree(start: number): void {
    const wanted = Math.max(64 * HASH_BYTES, this.#folded * 2)
    if (this.#folded === this.#subtrees.length) this.#subtrees = grown(this.#subtrees, this.#folded, wanted)
    this.#subtrees.set(foldLayer(this.#leaves.subarray(start, this.#length), 0, SUBTREE_LEVEL), this.#folded)
    this.#folded += HASH_BYTES
  }
}

function grown(bytes: Uint8Array, used: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(sizeBytes)
  larger.set(bytes.subarray(0, used))
  return larger
}
