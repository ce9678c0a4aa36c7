import { MetainfoError } from './errors.ts'
import {
  ancestorLayer,
  BLOCK_BYTES,
  blockCount,
  equalBytes,
  foldLayer,
  HASH_BYTES,
  hashPair,
  heightOf,
  MAX_REQUEST_HASHES,
  type MerkleReason,
  padHash,
  pieceCount,
  pieceLevel
} from './merkle.ts'

// Messages 21 to 23 of BEP 52. A reply is `length` hashes of the base layer, then the uncle hashes from the node above
// them upwards: max(0, proofLayers − log2(length) + 1) hashes (none for proofLayers 0), lowest first.

/** The body of `hash request`, without the pieces root. */
export interface HashRequest {
  /** Level of the hashes asked for; 0 = leaves. */
  readonly baseLayer: number
  /** First position in that layer, a multiple of `length`. */
  readonly index: number
  readonly length: number
  /** How many layers above the base layer the proof reaches. */
  readonly proofLayers: number
}

/** Size and piece length of the file whose tree a request is about. */
export interface TreeShape {
  readonly sizeBytes: number
  readonly pieceLengthBytes: number
}

const fail = (reason: MerkleReason, message: string): MetainfoError => new MetainfoError('E_MERKLE', reason, message)

/** Level of the root: 0 for a file of one block. */
export const treeHeight = (sizeBytes: number): number => heightOf(blockCount(sizeBytes))

/**
 * Tree levels between the requested hashes and the node above them all. A short request at the end of its layer counts
 * as padded.
 */
const rangeLevels = (request: HashRequest): number => heightOf(request.length)

/**
 * Uncle hashes in the reply to `request` (BEP 52). None without a proof, even for a single hash, whose first uncle is
 * its own sibling.
 */
const uncleCount = (request: HashRequest): number =>
  request.proofLayers === 0 ? 0 : Math.max(0, request.proofLayers - rangeLevels(request) + 1)

/** Exact number of hash bytes in a reply to `request`, without the message's header. */
export const replyLength = (request: HashRequest): number => (request.length + uncleCount(request)) * HASH_BYTES

/**
 * What is wrong with a request for a file of this shape, or undefined. Limits: 1 to 8,192 hashes, a power of two (or
 * fewer at the end of the layer); index a multiple of that and inside the layer; the proof below the root; and, when
 * the answer has to be computed from leaves, at most 8,192 blocks (or one piece) below the range.
 */
export function defectOfHashRequest(request: HashRequest, shape: TreeShape): string | undefined {
  const { baseLayer, index, length, proofLayers } = request
  if (shape.sizeBytes <= 0) return 'an empty file has no hashes'
  const height = treeHeight(shape.sizeBytes)
  if ([baseLayer, index, length, proofLayers].some((value) => !Number.isSafeInteger(value) || value < 0))
    return 'a field is not an unsigned integer'
  // whoever asks knows the root already, and a file of one block has only its root.
  if (baseLayer > Math.max(0, height - 1)) return 'no such layer below the root'
  if (length < 1 || length > MAX_REQUEST_HASHES) return `a request must be for 1 to ${MAX_REQUEST_HASHES} hashes`
  const levels = rangeLevels(request)
  const real = Math.ceil(blockCount(shape.sizeBytes) / 2 ** baseLayer)
  if (2 ** levels !== length && index + length !== real) return 'the length is not a power of two'
  if (index % 2 ** levels !== 0) return 'the index is not a multiple of the length'
  if (index >= real || index + length > 2 ** (height - baseLayer)) return 'the range lies outside the layer'
  const maxBlocks = Math.max(MAX_REQUEST_HASHES, shape.pieceLengthBytes / BLOCK_BYTES)
  if (needsLeaves(request, shape) && length * 2 ** baseLayer > maxBlocks) return 'the range covers too many blocks'
  if (proofLayers > 0 && proofLayers >= height - baseLayer) return 'the proof reaches beyond the root'
  return undefined
}

/** Layers below the pieces, and files of a single piece, are computed from leaves; the piece layer answers the rest. */
const needsLeaves = (request: HashRequest, shape: TreeShape): boolean =>
  shape.sizeBytes <= shape.pieceLengthBytes || request.baseLayer < pieceLevel(shape.pieceLengthBytes)

/**
 * The range of leaves `[start, end)` needed to answer a valid request: whole pieces, or undefined when the piece layer
 * suffices.
 */
export function leavesForRequest(
  request: HashRequest,
  shape: TreeShape
): { readonly start: number; readonly end: number } | undefined {
  if (!needsLeaves(request, shape)) return undefined
  const blocks = blockCount(shape.sizeBytes)
  const perPiece = shape.pieceLengthBytes / BLOCK_BYTES
  const first = request.index * 2 ** request.baseLayer
  const last = Math.min(blocks, (request.index + request.length) * 2 ** request.baseLayer)
  return {
    start: Math.floor(first / perPiece) * perPiece,
    end: Math.min(blocks, Math.ceil(last / perPiece) * perPiece)
  }
}

/** The number of pieces. @throws MetainfoError `E_MERKLE` `layer-length`, `size`. */
function requireLayerOf(shape: TreeShape, layer: Uint8Array | undefined): number {
  const count = pieceCount(shape.sizeBytes, shape.pieceLengthBytes)
  if (count === 0) throw fail('size', 'an empty file has no hash tree')
  if (count > 1 ? layer?.length !== count * HASH_BYTES : layer !== undefined)
    throw fail('layer-length', 'the piece layer does not belong to a file of this size')
  return count
}

/** Hashes that {@link PieceTree.build} computes between two pauses: about a millisecond's worth. */
const SLICE_HASHES = 2_048

/** The tree of one file above its piece layer, for answering hash requests. Keeps two hashes per piece in memory. */
export class PieceTree {
  /** Size and piece length of the file. */
  readonly shape: TreeShape
  readonly #baseLevel: number
  /** From the piece layer upwards; empty for a file no larger than a piece. */
  readonly #levels: readonly Uint8Array[]

  /**
   * `layer` is the verified piece layer, or undefined for a file no larger than a piece. Hashes it synchronously, about
   * 0.4 µs per piece; use {@link PieceTree.build} for large files.
   * @throws MetainfoError `E_MERKLE` `layer-length`, `size`.
   */
  constructor(shape: TreeShape, layer: Uint8Array | undefined, upper?: readonly Uint8Array[]) {
    this.shape = shape
    this.#baseLevel = pieceLevel(shape.pieceLengthBytes)
    const count = requireLayerOf(shape, layer)
    const levels: Uint8Array[] = []
    if (layer !== undefined) {
      levels.push(layer)
      for (let level = 0; level < heightOf(count); level++) {
        levels.push(upper?.[level] ?? ancestorLayer(levels[level]!, this.#baseLevel + level, 1))
      }
    }
    this.#levels = levels
  }

  /**
   * Like the constructor, but awaits `pause` before each slice of at most 2,048 hashes, passing the slice's size, so
   * that the event loop can serve others.
   * @throws MetainfoError `E_MERKLE` `layer-length`, `size`, and whatever `pause` throws.
   */
  static async build(
    shape: TreeShape,
    layer: Uint8Array | undefined,
    pause: (hashes: number) => Promise<void>
  ): Promise<PieceTree> {
    const count = requireLayerOf(shape, layer)
    const upper: Uint8Array[] = []
    if (layer !== undefined) {
      const baseLevel = pieceLevel(shape.pieceLengthBytes)
      let below = layer
      for (let level = 0; level < heightOf(count); level++) {
        const parents = new Uint8Array(Math.ceil(below.length / HASH_BYTES / 2) * HASH_BYTES)
        for (let at = 0; at < parents.length; at += SLICE_HASHES * HASH_BYTES) {
          const slice = below.subarray(2 * at, 2 * (at + SLICE_HASHES * HASH_BYTES))
          await pause(Math.ceil(slice.length / HASH_BYTES / 2))
          parents.set(ancestorLayer(slice, baseLevel + level, 1), at)
        }
        upper.push(parents)
        below = parents
      }
    }
    return new PieceTree(shape, layer, upper)
  }

  /** The pieces root; undefined for a file no larger than a piece, whose root needs its leaves. */
  get root(): Uint8Array | undefined {
    return this.#levels.at(-1)
  }

  /** The hash of a piece; undefined for a file no larger than a piece. */
  pieceHash(index: number): Uint8Array | undefined {
    return this.#levels[0]?.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES)
  }

  /** Memory held by the tree, including the piece layer. */
  get memoryBytes(): number {
    return this.#levels.reduce((sum, level) => sum + level.length, 0)
  }

  /**
   * The hashes of a reply. `leaves` are those of the range that {@link leavesForRequest} returned, in order.
   * @throws MetainfoError `E_MERKLE`: `request` (answer it with `hash reject`), `layer-length` for the wrong number of
   *   leaves.
   */
  answer(request: HashRequest, leaves?: Uint8Array): Uint8Array {
    const defect = defectOfHashRequest(request, this.shape)
    if (defect !== undefined) throw fail('request', `hash request refused: ${defect}`)
    const window = leavesForRequest(request, this.shape)
    const lower: Uint8Array[] = []
    if (window !== undefined) {
      if (leaves?.length !== (window.end - window.start) * HASH_BYTES)
        throw fail('layer-length', `the answer needs the leaves ${window.start} to ${window.end}`)
      lower.push(leaves)
    }
    const hashAt = (level: number, index: number): Uint8Array => {
      let layer: Uint8Array | undefined
      let position = index
      if (this.#levels.length > 0 && level >= this.#baseLevel) layer = this.#levels[level - this.#baseLevel]
      else {
        while (lower.length <= level) lower.push(ancestorLayer(lower.at(-1)!, lower.length - 1, 1))
        layer = lower[level]
        position -= window!.start / 2 ** level
      }
      const offset = position * HASH_BYTES
      return layer !== undefined && offset < layer.length ? layer.subarray(offset, offset + HASH_BYTES) : padHash(level)
    }
    const out = new Uint8Array(replyLength(request))
    let offset = 0
    const put = (hash: Uint8Array): void => {
      out.set(hash, offset)
      offset += HASH_BYTES
    }
    for (let i = 0; i < request.length; i++) put(hashAt(request.baseLayer, request.index + i))
    let level = request.baseLayer + rangeLevels(request)
    let position = Math.floor(request.index / 2 ** rangeLevels(request))
    for (let i = uncleCount(request); i > 0; i--, level++, position = Math.floor(position / 2)) {
      put(hashAt(level, position % 2 === 0 ? position + 1 : position - 1))
    }
    return out
  }
}

/** The node that a reply proves; the caller compares it with a hash it already trusts. */
export interface ProvenNode {
  readonly level: number
  readonly index: number
  readonly hash: Uint8Array
}

/**
 * Folds a reply: the base hashes to their common node, then with each uncle. With `proofLayers` 0 the result is the
 * node above the range itself. @throws MetainfoError `E_MERKLE`: `request`, `reply-length`.
 */
export function nodeOfReply(request: HashRequest, shape: TreeShape, reply: Uint8Array): ProvenNode {
  const defect = defectOfHashRequest(request, shape)
  if (defect !== undefined) throw fail('request', `not a request that can be answered: ${defect}`)
  if (reply.length !== replyLength(request)) {
    throw fail(
      'reply-length',
      `a reply to this request has ${replyLength(request)} bytes of hashes, not ${reply.length}`
    )
  }
  const levels = rangeLevels(request)
  let level = request.baseLayer + levels
  let index = Math.floor(request.index / 2 ** levels)
  let hash = foldLayer(reply.subarray(0, request.length * HASH_BYTES), request.baseLayer, levels)
  for (let at = request.length * HASH_BYTES; at < reply.length; at += HASH_BYTES) {
    const uncle = reply.subarray(at, at + HASH_BYTES)
    hash = index % 2 === 0 ? hashPair(hash, uncle) : hashPair(uncle, hash)
    index = Math.floor(index / 2)
    level++
  }
  return { level, index, hash }
}

/** True when a reply folds to the pieces root `root`. @throws MetainfoError `E_MERKLE`: `request`, `reply-length`. */
export function verifyReply(request: HashRequest, shape: TreeShape, reply: Uint8Array, root: Uint8Array): boolean {
  const node = nodeOfReply(request, shape, reply)
  return node.level === treeHeight(shape.sizeBytes) && equalBytes(node.hash, root)
}
