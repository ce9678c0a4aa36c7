import {
  BLOCK_BYTES,
  defectOfHashRequest,
  equalBytes,
  HASH_BYTES,
  type LayoutFile,
  leavesForRequest,
  MetainfoError,
  PieceTree,
  pieceLayer,
  piecesRoot,
  rootKey,
  type TorrentLayout,
  type TreeShape,
  toHex
} from '@svc/metainfo'
import type { Bitfield } from '../bitfield.ts'
import type { PieceHashes } from '../download/piece-hashes.ts'
import type { Verifier } from '../download/verifier.ts'
import { SwarmError } from '../errors.ts'
import type { TorrentStorage } from '../storage.ts'
import type { HashRange } from '../wire/messages.ts'

/** Trees kept in memory per torrent: 64 bytes for each piece of the file. */
const MAX_TREES = 32
/** Bytes that are read and hashed for one request of leaves where the storage has no leaf layer. */
const MAX_HASHED_BYTES = 16 * 1024 * 1024

/**
 * Answers hash requests (BEP 52) from the piece layers; leaves from the storage's leaf layer, else from the bytes, hashed
 * by a worker. Never hashes file bytes on this thread.
 */
export class HashServer {
  readonly #layout: TorrentLayout
  readonly #files: ReadonlyMap<string, LayoutFile>
  readonly #hashes: PieceHashes
  readonly #storage: TorrentStorage
  readonly #have: Bitfield
  readonly #verifier: Verifier
  readonly #trees = new Map<number, Promise<PieceTree | undefined>>()
  /** The last leaf layer used, checked against its root. */
  #leaves: { readonly file: number; readonly bytes: Promise<Uint8Array | undefined> } | undefined
  #hashing: Promise<unknown> = Promise.resolve()

  constructor(parts: {
    readonly layout: TorrentLayout
    readonly hashes: PieceHashes
    readonly storage: TorrentStorage
    readonly have: Bitfield
    readonly verifier: Verifier
  }) {
    this.#layout = parts.layout
    this.#files = parts.layout.byRoot()
    this.#hashes = parts.hashes
    this.#storage = parts.storage
    this.#have = parts.have
    this.#verifier = parts.verifier
  }

  #shape(file: LayoutFile): TreeShape {
    return { sizeBytes: file.lengthBytes, pieceLengthBytes: this.#layout.pieceLengthBytes }
  }

  /** The hashes of the answer, or undefined: reject. Rejections by bounds cost nothing. */
  async answer(range: HashRange): Promise<Uint8Array | undefined> {
    const file = this.#files.get(rootKey(range.root))
    if (file === undefined) return undefined
    const shape = this.#shape(file)
    if (defectOfHashRequest(range, shape) !== undefined) return undefined
    const window = leavesForRequest(range, shape)
    const tree = await this.#tree(file)
    if (tree === undefined) return undefined
    if (window === undefined) return tree.answer(range)
    const leaves = await this.#leavesOf(file, window.start, window.end)
    return leaves === undefined ? undefined : tree.answer(range, leaves)
  }

  /** The piece layer of a file, from memory or the storage's leaf layer; undefined when it is not to be had here. */
  async layer(file: LayoutFile): Promise<Uint8Array | undefined> {
    const known = this.#hashes.layer(file)
    if (known !== undefined) return known
    const leaves = await this.#leafLayer(file)
    if (leaves === undefined) return undefined
    const layer = pieceLayer(leaves, file.lengthBytes, this.#layout.pieceLengthBytes)
    this.#hashes.set(toHex(file.piecesRoot!), layer)
    return layer
  }

  #tree(file: LayoutFile): Promise<PieceTree | undefined> {
    const known = this.#trees.get(file.index)
    if (known !== undefined) return known
    const tree = this.#build(file)
    this.#trees.set(file.index, tree)
    // Not there yet is no answer for ever.
    void tree.then(
      (built) => built === undefined && this.#trees.delete(file.index),
      () => this.#trees.delete(file.index)
    )
    if (this.#trees.size > MAX_TREES) this.#trees.delete(this.#trees.keys().next().value!)
    return tree
  }

  async #build(file: LayoutFile): Promise<PieceTree | undefined> {
    if (file.pieceCount === 1) return new PieceTree(this.#shape(file), undefined)
    const layer = await this.layer(file)
    return layer === undefined ? undefined : new PieceTree(this.#shape(file), layer)
  }

  #leafLayer(file: LayoutFile): Promise<Uint8Array | undefined> {
    if (this.#leaves?.file === file.index) return this.#leaves.bytes
    const bytes = this.#loadLeaves(file)
    this.#leaves = { file: file.index, bytes }
    return bytes
  }

  async #loadLeaves(file: LayoutFile): Promise<Uint8Array | undefined> {
    const leaves = await this.#storage.leaves?.(file.index)
    if (leaves === undefined) return undefined
    try {
      return equalBytes(piecesRoot(leaves, file.lengthBytes), file.piecesRoot!) ? leaves : undefined
    } catch (error) {
      if (error instanceof MetainfoError) return undefined
      throw error
    }
  }

  async #leavesOf(file: LayoutFile, start: number, end: number): Promise<Uint8Array | undefined> {
    const layer = await this.#leafLayer(file)
    if (layer !== undefined) return layer.subarray(start * HASH_BYTES, end * HASH_BYTES)
    const from = start * BLOCK_BYTES
    const to = Math.min(end * BLOCK_BYTES, file.lengthBytes)
    if (to - from > Math.max(MAX_HASHED_BYTES, this.#layout.pieceLengthBytes)) return undefined
    const firstPiece = file.firstPiece + Math.floor(from / this.#layout.pieceLengthBytes)
    const lastPiece = file.firstPiece + Math.floor((to - 1) / this.#layout.pieceLengthBytes)
    for (let piece = firstPiece; piece <= lastPiece; piece += 1) if (!this.#have.has(piece)) return undefined
    // One at a time: each holds its bytes in memory.
    const job = this.#hashing.then(() => this.#hash(file, from, to))
    this.#hashing = job.catch(() => undefined)
    return job
  }

  async #hash(file: LayoutFile, from: number, to: number): Promise<Uint8Array> {
    const buffer = new SharedArrayBuffer(to - from)
    const bytes = new Uint8Array(buffer)
    for (let at = 0; at < bytes.length; ) {
      const count = await this.#storage.read(file.index, from + at, bytes.subarray(at))
      if (count === 0) throw new SwarmError('E_STORAGE', 'short', 'the file is shorter than the torrent says')
      at += count
    }
    const reply = await this.#verifier.submit({
      buffer,
      sizeBytes: bytes.length,
      expected: undefined,
      levels: 0,
      fd: undefined,
      position: 0
    })
    return reply.leaves
  }
}
