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
  const expected = sizeBytes === undefined ? 64 : Math.max(1, blockCount(sizeBytes))
  let leaves = new Uint8Array(Math.min(expected * HASH_BYTES, MAX_FIRST_ALLOCATION))
  let length = 0
  /** The nodes above the leaves so far, of `SUBTREE_LEVEL`. */
  let subtrees = new Uint8Array(0)
  let folded = 0
  /** For a block that spans chunks or is the last, and no larger than the file: a thousand small files need a thousand of them. */
  let block = new Uint8Array(0)
  let held = 0
  const hold = (bytes: Uint8Array): void => {
    if (block.length < held + bytes.length) {
      const larger = new Uint8Array(Math.min(BLOCK_BYTES, Math.max(sizeBytes ?? BLOCK_BYTES, held + bytes.length)))
      larger.set(block.subarray(0, held))
      block = larger
    }
    block.set(bytes, held)
    held += bytes.length
  }
  const put = (bytes: Uint8Array): void => {
    if (length === leaves.length) {
      const larger = new Uint8Array(leaves.length * 2)
      larger.set(leaves)
      leaves = larger
    }
    sha256Into(bytes, leaves, length)
    length += HASH_BYTES
    if (length % SUBTREE_LEAVES === 0) foldSubtree(length - SUBTREE_LEAVES)
  }
  const foldSubtree = (start: number): void => {
    if (folded === subtrees.length) {
      const larger = new Uint8Array(Math.max(64 * HASH_BYTES, folded * 2))
      larger.set(subtrees)
      subtrees = larger
    }
    subtrees.set(foldLayer(leaves.subarray(start, length), 0, SUBTREE_LEVEL), folded)
    folded += HASH_BYTES
  }
  return {
    update(chunk) {
      let at = 0
      if (held > 0) {
        at = Math.min(BLOCK_BYTES - held, chunk.length)
        hold(at === chunk.length ? chunk : chunk.subarray(0, at))
        if (held < BLOCK_BYTES) return
        put(block)
        held = 0
      }
      for (; at + BLOCK_BYTES <= chunk.length; at += BLOCK_BYTES) put(chunk.subarray(at, at + BLOCK_BYTES))
      if (at < chunk.length) hold(chunk.subarray(at))
    },
    digest() {
      if (held > 0) put(block.subarray(0, held))
      held = 0
      return length === leaves.length ? leaves : leaves.slice(0, length)
    },
    further() {
      const count = length / HASH_BYTES
      if (count < 2) return {}
      if (length < SUBTREE_LEAVES) return { root: ancestorLayer(leaves.subarray(0, length), 0, heightOf(count)) }
      if (length % SUBTREE_LEAVES !== 0) foldSubtree(length - (length % SUBTREE_LEAVES))
      const layer = subtrees.slice(0, folded)
      if (folded === HASH_BYTES) return { root: layer }
      return { root: ancestorLayer(layer, SUBTREE_LEVEL, heightOf(count) - SUBTREE_LEVEL), subtrees: layer }
    }
  }
}
