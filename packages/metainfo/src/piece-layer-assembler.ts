import { MetainfoError } from './errors.ts'
import { defectOfHashRequest, type HashRequest, nodeOfReply, type TreeShape, treeHeight } from './hash-request.ts'
import { equalBytes, HASH_BYTES, heightOf, pieceCount, pieceLevel, rootOfPieceLayer } from './merkle.ts'

const CHUNK_HASHES = 512

/**
 * The outcome of {@link PieceLayerAssembler.accept}. `refused`: the reply contradicts the root, so its sender sent bad
 * data. `conflict`: the chunks collected without proofs do not fold to the root. All of them are missing again, and any
 * of their senders may have sent bad data.
 */
export type ReplyVerdict = 'proven' | 'held' | 'refused' | 'conflict'

/**
 * Collects one file's piece layer from replies to hash requests. Chunks with a proof are verified on arrival. Some
 * clients reject every request for a proof; chunks from those are held and verified against the root once all have
 * arrived.
 *
 * Invariant: `missing()` lists exactly the chunks that are neither proven nor held; `layer()` is defined only when the
 * whole layer folds to the root.
 */
export class PieceLayerAssembler {
  readonly root: Uint8Array
  readonly shape: TreeShape
  readonly #layer: Uint8Array
  readonly #chunks: ('missing' | 'held' | 'proven')[]
  #proofs = true
  #complete = false

  /** For a file larger than one piece. @throws MetainfoError `E_MERKLE` `size`. */
  constructor(root: Uint8Array, shape: TreeShape) {
    const count = pieceCount(shape.sizeBytes, shape.pieceLengthBytes)
    if (count < 2) throw new MetainfoError('E_MERKLE', 'size', 'only files larger than a piece have a piece layer')
    this.root = root
    this.shape = shape
    this.#layer = new Uint8Array(count * HASH_BYTES)
    this.#chunks = new Array(Math.ceil(count / CHUNK_HASHES)).fill('missing')
  }

  /** Stops asking for proofs, for peers that reject such requests. Chunks proven so far are kept. */
  dropProofs(): void {
    this.#proofs = false
  }

  /** The requests to make now, 2 to 512 hashes each. A length of 1 is never used, since some peers cannot answer it. */
  missing(): readonly HashRequest[] {
    return this.#chunks.flatMap((state, chunk) => (state === 'missing' ? [this.#request(chunk)] : []))
  }

  #request(chunk: number): HashRequest {
    const count = this.#layer.length / HASH_BYTES
    const index = chunk * CHUNK_HASHES
    const length = Math.max(2, 2 ** heightOf(Math.min(CHUNK_HASHES, count - index)))
    const baseLayer = pieceLevel(this.shape.pieceLengthBytes)
    const levels = treeHeight(this.shape.sizeBytes) - baseLayer
    const proofLayers = this.#proofs && 2 ** levels > length ? levels - 1 : 0
    return { baseLayer, index, length, proofLayers }
  }

  /**
   * Takes the hashes of a reply.
   * @throws MetainfoError `E_MERKLE` `request` for a reply to a request of another shape, `reply-length`.
   */
  accept(request: HashRequest, hashes: Uint8Array): ReplyVerdict {
    const chunk = request.index / CHUNK_HASHES
    const expected = this.#chunks[chunk] === undefined ? undefined : this.#request(chunk)
    if (
      expected === undefined ||
      expected.baseLayer !== request.baseLayer ||
      expected.length !== request.length ||
      defectOfHashRequest(request, this.shape) !== undefined
    ) {
      throw new MetainfoError('E_MERKLE', 'request', 'this reply does not belong to any of our requests')
    }
    const node = nodeOfReply(request, this.shape, hashes)
    if (this.#chunks[chunk] === 'proven') return 'proven'
    const reachesRoot = node.level === treeHeight(this.shape.sizeBytes)
    if (reachesRoot && !equalBytes(node.hash, this.root)) return 'refused'
    const start = request.index * HASH_BYTES
    const length = Math.min(request.length * HASH_BYTES, this.#layer.length - start)
    this.#layer.set(hashes.subarray(0, length), start)
    this.#chunks[chunk] = reachesRoot ? 'proven' : 'held'
    if (this.#chunks.includes('missing')) return reachesRoot ? 'proven' : 'held'
    return this.#settle()
  }

  /** Every chunk is there: those that came without a proof are all right, or nobody knows which is wrong. */
  #settle(): ReplyVerdict {
    if (this.#chunks.includes('held')) {
      const found = rootOfPieceLayer(this.#layer, this.shape.sizeBytes, this.shape.pieceLengthBytes)
      for (const [i, state] of this.#chunks.entries()) {
        if (state === 'held') this.#chunks[i] = equalBytes(found, this.root) ? 'proven' : 'missing'
      }
      if (!equalBytes(found, this.root)) return 'conflict'
    }
    this.#complete = true
    return 'proven'
  }

  /** The whole layer, once it is proven. */
  layer(): Uint8Array | undefined {
    return this.#complete ? this.#layer : undefined
  }
}
