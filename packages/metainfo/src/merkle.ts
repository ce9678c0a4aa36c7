import { MetainfoError } from './errors.ts'
import { sha256, sha256Into } from './sha256.ts'

// BEP 52 trees. A layer is the concatenation of the 32-byte hashes of one level, without padding. Level 0 holds the
// leaves, one per 16 KiB block. Positions past the end of a level hold that level's pad hash.

/** Bytes under one leaf (BEP 52). */
export const BLOCK_BYTES = 16_384
/** Bytes of one hash. */
export const HASH_BYTES = 32
/** Level of the nodes that each cover 1 MiB: pieces of that length or more are folded from them, without the leaves. */
export const SUBTREE_LEVEL = 6
/** Limit of hashes in one request. Clients usually ask for 512. */
export const MAX_REQUEST_HASHES = 8_192

/** Why an `E_MERKLE` error was thrown. */
export type MerkleReason = 'layer-length' | 'piece-length' | 'size' | 'request' | 'reply-length'

const fail = (reason: MerkleReason, message: string): MetainfoError => new MetainfoError('E_MERKLE', reason, message)

const padHashes: Uint8Array[] = [new Uint8Array(HASH_BYTES)]

export function hashPair(left: Uint8Array, right: Uint8Array): Uint8Array {
  const pair = new Uint8Array(2 * HASH_BYTES)
  pair.set(left)
  pair.set(right, HASH_BYTES)
  return sha256(pair)
}

/** The hash of missing nodes at `level`: 32 zero bytes at level 0, else the hash of two pads of the level below. */
export function padHash(level: number): Uint8Array {
  for (let i = padHashes.length; i <= level; i++) padHashes.push(hashPair(padHashes[i - 1]!, padHashes[i - 1]!))
  return padHashes[level]!
}

function requireSize(sizeBytes: number): void {
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw fail('size', `${sizeBytes} is not a size in bytes`)
}

/** True for the piece lengths of BEP 52: powers of two, at least 16 KiB. */
export const isPieceLength = (pieceLengthBytes: number): boolean =>
  Number.isSafeInteger(pieceLengthBytes) &&
  pieceLengthBytes >= BLOCK_BYTES &&
  Number.isInteger(Math.log2(pieceLengthBytes))

function requirePieceLength(pieceLengthBytes: number): void {
  if (!isPieceLength(pieceLengthBytes)) {
    throw fail(
      'piece-length',
      `a piece length must be a power of two of at least ${BLOCK_BYTES}, not ${pieceLengthBytes}`
    )
  }
}

/** Number of 16 KiB blocks (= leaves) of a file. */
export const blockCount = (sizeBytes: number): number => Math.ceil(sizeBytes / BLOCK_BYTES)

/** Number of pieces of a file. Files start at piece boundaries; an empty file has none. */
export const pieceCount = (sizeBytes: number, pieceLengthBytes: number): number =>
  Math.ceil(sizeBytes / pieceLengthBytes)

/** Level of the nodes that each cover a whole piece: log2(pieceLength / 16 KiB). */
export function pieceLevel(pieceLengthBytes: number): number {
  requirePieceLength(pieceLengthBytes)
  return Math.log2(pieceLengthBytes / BLOCK_BYTES)
}

/** Level of the root above `count` nodes of level 0: ceil(log2(count)). */
export function heightOf(count: number): number {
  let height = 0
  for (let width = 1; width < count; width *= 2) height++
  return height
}

/** The leaf layer of a whole file in memory: 32 bytes per 16 KiB block; a short last block is hashed unpadded. */
export function leafLayer(bytes: Uint8Array): Uint8Array {
  const count = blockCount(bytes.length)
  const leaves = new Uint8Array(count * HASH_BYTES)
  for (let i = 0; i < count; i++) {
    sha256Into(bytes.subarray(i * BLOCK_BYTES, (i + 1) * BLOCK_BYTES), leaves, i * HASH_BYTES)
  }
  return leaves
}

/** The layer above `layer`, which is at `level`. A missing last sibling counts as that level's pad hash. */
function parentLayer(layer: Uint8Array, level: number): Uint8Array {
  const count = layer.length / HASH_BYTES
  const parents = new Uint8Array(Math.ceil(count / 2) * HASH_BYTES)
  const whole = Math.floor(count / 2)
  for (let i = 0; i < whole; i++) {
    sha256Into(layer.subarray(i * 2 * HASH_BYTES, (i + 1) * 2 * HASH_BYTES), parents, i * HASH_BYTES)
  }
  if (count % 2 === 1) parents.set(hashPair(layer.subarray(whole * 2 * HASH_BYTES), padHash(level)), whole * HASH_BYTES)
  return parents
}

/** The ancestor layer `levels` above a layer of `level`. @throws MetainfoError `E_MERKLE` `layer-length`. */
export function ancestorLayer(layer: Uint8Array, level: number, levels: number): Uint8Array {
  if (layer.length % HASH_BYTES !== 0) throw fail('layer-length', 'a layer must be a whole number of 32-byte hashes')
  let current = layer
  for (let i = 0; i < levels; i++) current = parentLayer(current, level + i)
  return current
}

/**
 * The node `levels` above the first hash of `layer`, with padding. `layer` holds at most 2^levels hashes of level
 * `level`. Given the leaves of one piece and the piece's level, this is the piece's hash.
 */
export function foldLayer(layer: Uint8Array, level: number, levels: number): Uint8Array {
  if (layer.length === 0 || layer.length / HASH_BYTES > 2 ** levels)
    throw fail('layer-length', `between 1 and ${2 ** levels} hashes can be folded ${levels} levels`)
  return ancestorLayer(layer, level, levels)
}

function requireLeaves(leaves: Uint8Array, sizeBytes: number): void {
  requireSize(sizeBytes)
  if (leaves.length !== blockCount(sizeBytes) * HASH_BYTES)
    throw fail('layer-length', `the leaf layer of ${sizeBytes} bytes has ${blockCount(sizeBytes)} hashes of 32 bytes`)
}

/**
 * The pieces root of a file from its leaf layer (BEP 52). The piece length does not matter.
 * @throws MetainfoError `E_MERKLE`: `size` for an empty file, which has no root; `layer-length`.
 */
export function piecesRoot(leaves: Uint8Array, sizeBytes: number): Uint8Array {
  requireLeaves(leaves, sizeBytes)
  if (sizeBytes === 0) throw fail('size', 'an empty file must not have a pieces root')
  return ancestorLayer(leaves, 0, heightOf(blockCount(sizeBytes)))
}

/**
 * Like {@link piecesRoot}, from the nodes of level {@link SUBTREE_LEVEL} of a file of more than 1 MiB: a missing part of the last one
 * is folded with pads.
 * @throws MetainfoError `E_MERKLE`: `layer-length`, `size`.
 */
export const rootOfSubtrees = (subtrees: Uint8Array, sizeBytes: number): Uint8Array =>
  rootOfPieceLayer(subtrees, sizeBytes, BLOCK_BYTES << SUBTREE_LEVEL)

/**
 * Like {@link pieceLayer}, from the nodes of level {@link SUBTREE_LEVEL}. @throws MetainfoError `E_MERKLE`: `layer-length`;
 * `piece-length`, also for pieces shorter than 1 MiB.
 */
export function pieceLayerOfSubtrees(subtrees: Uint8Array, pieceLengthBytes: number): Uint8Array {
  const levels = pieceLevel(pieceLengthBytes) - SUBTREE_LEVEL
  if (levels < 0)
    throw fail('piece-length', 'pieces shorter than 1 MiB are not folded from nodes that cover 1 MiB each')
  return ancestorLayer(subtrees, SUBTREE_LEVEL, levels)
}

/**
 * The layer of piece hashes, as in `piece layers`. Meant for files larger than a piece; a smaller non-empty file gives
 * the hash of its padded piece, which is not its root.
 * @throws MetainfoError `E_MERKLE`: `layer-length`, `piece-length`.
 */
export function pieceLayer(leaves: Uint8Array, sizeBytes: number, pieceLengthBytes: number): Uint8Array {
  requireLeaves(leaves, sizeBytes)
  return ancestorLayer(leaves, 0, pieceLevel(pieceLengthBytes))
}

/** The pieces root that a piece layer folds to. Files larger than one piece only. @throws MetainfoError `E_MERKLE`. */
export function rootOfPieceLayer(layer: Uint8Array, sizeBytes: number, pieceLengthBytes: number): Uint8Array {
  requireSize(sizeBytes)
  const level = pieceLevel(pieceLengthBytes)
  const count = pieceCount(sizeBytes, pieceLengthBytes)
  if (count < 2) throw fail('size', 'only files larger than a piece have a piece layer')
  if (layer.length !== count * HASH_BYTES)
    throw fail('layer-length', `the piece layer of ${sizeBytes} bytes has ${count} hashes of 32 bytes`)
  return ancestorLayer(layer, level, heightOf(count))
}

/** True when the layer has the right length and folds to `root`. */
export function verifyPieceLayer(
  layer: Uint8Array,
  root: Uint8Array,
  sizeBytes: number,
  pieceLengthBytes: number
): boolean {
  const count = pieceCount(sizeBytes, pieceLengthBytes)
  if (count < 2 || layer.length !== count * HASH_BYTES) return false
  return equalBytes(rootOfPieceLayer(layer, sizeBytes, pieceLengthBytes), root)
}

/**
 * The hash that a piece must have, from `leaves`, the hashes of its blocks. In a file larger than a piece this is the
 * piece-layer entry; a file no larger than a piece folds to its pieces root, at its own height.
 */
export function pieceHash(leaves: Uint8Array, sizeBytes: number, pieceLengthBytes: number): Uint8Array {
  const levels = sizeBytes > pieceLengthBytes ? pieceLevel(pieceLengthBytes) : heightOf(blockCount(sizeBytes))
  return foldLayer(leaves, 0, levels)
}

/** Not constant-time: hashes are public. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
