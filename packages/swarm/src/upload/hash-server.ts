import { loopBudget } from '@svc/internal-concurrency'
import {
  BLOCK_BYTES,
  defectOfHashRequest,
  equalBytes,
  foldLayer,
  HASH_BYTES,
  type LayoutFile,
  leavesForRequest,
  PieceTree,
  pieceLevel,
  rootKey,
  type TorrentLayout,
  type TreeShape,
  treeHeight
} from '@svc/metainfo'
import type { FileProgress } from '../download/file-progress.ts'
import type { PieceHashes } from '../download/piece-hashes.ts'
import type { Verifier } from '../download/verifier.ts'
import { SwarmError } from '../errors.ts'
import { readFully, type TorrentStorage } from '../storage.ts'
import type { HashRange } from '../wire/messages.ts'
import type { HashWork } from './hash-work.ts'

/** Limit of bytes read and hashed for one request of leaves when the storage has no leaf hashes. */
const MAX_HASHED_BYTES = 16 * 1024 * 1024
/** The cost of hashing a block on a verifying thread, in pair hashes. */
const BLOCK_COST = 20

export interface HashServerDeps {
  /** Unique in the engine. */
  readonly id: number
  readonly layout: TorrentLayout
  readonly hashes: PieceHashes
  readonly options: { readonly storage: TorrentStorage }
  readonly progress: FileProgress
  readonly env: { readonly verifier: Verifier; readonly hashWork: HashWork }
}

/**
 * Answers the hash requests of one torrent (BEP 52). The upper levels of a file's tree come from its piece layer.
 * Leaves are read from the storage, only for the pieces that a request touches, and verified against the piece layer;
 * if the storage has none, a verifying thread computes them from the bytes.
 */
export class HashServer {
  readonly #deps: HashServerDeps
  /** Made for the first request: most torrents of a large store are never asked. */
  #files: ReadonlyMap<string, LayoutFile> | undefined

  constructor(deps: HashServerDeps) {
    this.#deps = deps
  }

  /** The hashes of the answer, or undefined to reject. Out-of-range requests cost nothing. */
  async answer(range: HashRange): Promise<Uint8Array | undefined> {
    this.#files ??= this.#deps.layout.byRoot()
    const file = this.#files.get(rootKey(range.root))
    if (file === undefined) return undefined
    const shape = { sizeBytes: file.lengthBytes, pieceLengthBytes: this.#deps.layout.pieceLengthBytes }
    if (defectOfHashRequest(range, shape) !== undefined) return undefined
    const window = leavesForRequest(range, shape)
    const kept = this.#deps.env.hashWork.trees.get(this.#key(file))
    // only copies bytes, so it need not wait for its turn.
    if (window === undefined && kept !== undefined) return kept.answer(range)
    return this.#deps.env.hashWork.inTurn(async () => {
      const tree = await this.#tree(file, shape)
      if (tree === undefined) return undefined
      if (window === undefined) return tree.answer(range)
      const leaves = await this.#leaves(file, tree, window.start, window.end)
      // charged once more for the layers between the leaves and the pieces.
      await this.#deps.env.hashWork.afford(window.end - window.start)
      return leaves === undefined ? undefined : tree.answer(range, leaves)
    })
  }

  #key(file: LayoutFile): string {
    return `${this.#deps.id}/${file.index}`
  }

  /** Undefined when the piece layer is unavailable. */
  async #tree(file: LayoutFile, shape: TreeShape): Promise<PieceTree | undefined> {
    if (file.pieceCount === 1) return new PieceTree(shape, undefined)
    const kept = this.#deps.env.hashWork.trees.get(this.#key(file))
    if (kept !== undefined) return kept
    const layer = this.#deps.hashes.layer(file) ?? (await this.#deps.options.storage.pieceLayer?.(file.index))
    if (layer?.length !== file.pieceCount * HASH_BYTES) return undefined
    const tree = await PieceTree.build(shape, layer, (hashes) => this.#pause(hashes))
    if (!equalBytes(tree.root!, file.piecesRoot!)) return undefined
    this.#deps.env.hashWork.trees.set(this.#key(file), tree)
    return tree
  }

  /** Between two slices of a large tree. */
  async #pause(hashes: number): Promise<void> {
    await this.#deps.env.hashWork.afford(hashes)
    if (loopBudget.isOver('hash-requests')) await loopBudget.next('hash-requests')
  }

  /** The verified leaves of whole pieces. */
  async #leaves(file: LayoutFile, tree: PieceTree, start: number, end: number): Promise<Uint8Array | undefined> {
    await this.#deps.env.hashWork.afford(end - start)
    const stored = await this.#deps.options.storage.leaves?.(file.index, start, end)
    if (stored?.length === (end - start) * HASH_BYTES && this.#proven(file, tree, start, stored)) return stored
    return this.#hashBytes(file, start, end)
  }

  #proven(file: LayoutFile, tree: PieceTree, start: number, leaves: Uint8Array): boolean {
    if (file.pieceCount === 1) return equalBytes(foldLayer(leaves, 0, treeHeight(file.lengthBytes)), file.piecesRoot!)
    const level = pieceLevel(this.#deps.layout.pieceLengthBytes)
    const stepBytes = 2 ** level * HASH_BYTES
    for (let at = 0; at < leaves.length; at += stepBytes) {
      const expected = tree.pieceHash((start + at / HASH_BYTES) / 2 ** level)!
      if (!equalBytes(foldLayer(leaves.subarray(at, at + stepBytes), 0, level), expected)) return false
    }
    return true
  }

  async #hashBytes(file: LayoutFile, start: number, end: number): Promise<Uint8Array | undefined> {
    const from = start * BLOCK_BYTES
    const to = Math.min(end * BLOCK_BYTES, file.lengthBytes)
    if (to - from > Math.max(MAX_HASHED_BYTES, this.#deps.layout.pieceLengthBytes)) return undefined
    const firstPiece = file.firstPiece + Math.floor(from / this.#deps.layout.pieceLengthBytes)
    const lastPiece = file.firstPiece + Math.floor((to - 1) / this.#deps.layout.pieceLengthBytes)
    for (let piece = firstPiece; piece <= lastPiece; piece += 1)
      if (!this.#deps.progress.have.has(piece)) return undefined
    await this.#deps.env.hashWork.afford((end - start) * BLOCK_COST)
    const buffer = new SharedArrayBuffer(to - from)
    const bytes = new Uint8Array(buffer)
    if ((await readFully(this.#deps.options.storage, file.index, from, bytes)) < bytes.length)
      throw new SwarmError('E_STORAGE', 'short', 'the file is shorter than the torrent says')
    return (await this.#deps.env.verifier.submit({ buffer, sizeBytes: bytes.length })).leaves
  }

  /** The torrent was removed. */
  close(): void {
    this.#deps.env.hashWork.forget(`${this.#deps.id}/`)
  }
}
