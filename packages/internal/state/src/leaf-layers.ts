import { join } from 'node:path'
import { CasError, type DiskBlobStore, type HashAttachment, type HashResult } from '@svc/cas'
import { DurableFolders, type FilePort, nodeFilePort, readWindow, replaceFile } from '@svc/internal-files'
import type { ArtifactTorrent } from '@svc/manifest'
import {
  BLOCK_BYTES,
  blockCount,
  equalBytes,
  HASH_BYTES,
  leafHasherUrl,
  type PieceLayers,
  pieceLayer,
  piecesRoot,
  SUBTREE_LEVEL,
  toHex
} from '@svc/metainfo'
import { digestBytes, digestFromBytes, digestHex, type Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { LibraryError } from './library-error.ts'
import type { Offload } from './offload/pool.ts'

/** The further hash of every ingest: `attachments.leaves` is the leaf layer, 32 bytes per 16 KiB block (BEP 52). */
export const LEAVES = { name: 'leaves', module: leafHasherUrl } as const satisfies HashAttachment
/** Further outputs of the leaf hasher. */
const [ROOT, SUBTREES] = [`${LEAVES.name}.root`, `${LEAVES.name}.subtrees`] as const

/**
 * Layers of blobs up to this size are not cached, and are folded synchronously: computing them again takes 1 ms,
 * caching takes four system calls, and folding elsewhere costs more than the folding itself (at most 63 hashes). Such a
 * blob has no piece layer, as it is no larger than the smallest piece.
 */
const UNCACHED_BYTES = 1 << 20
/** Covered by one node of the layer that piece layers are folded from. */
const SUBTREE_BYTES = BLOCK_BYTES << SUBTREE_LEVEL

/** The nodes that cover 1 MiB each take 32 bytes: these are those of 256 GiB in few files, or of 8,000 small ones. */
const MAX_SUBTREE_BYTES = 8 << 20
/** The memory of a map's entry beside its bytes, rounded up. */
const ENTRY_BYTES = 1 << 10

interface FoldedLeaves {
  readonly root: Uint8Array
  /** The nodes that cover 1 MiB each, of more than that. */
  readonly subtrees?: Uint8Array | undefined
}

export interface BlobTree {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  /** `sha256:` + the BEP 52 pieces root; undefined for an empty blob. */
  readonly merkleRoot: Sha256Digest | undefined
}

/**
 * `cache/leaves/<hex>`: the leaf layer of each blob of more than 1 MiB, computed while its ingest reads it. This is a
 * cache: a lost or damaged layer is computed again from the blob, and results are compared with a root before use.
 */
export class LeafLayers {
  readonly #port: FilePort
  readonly #root: string
  readonly #temp: string
  readonly #store: DiskBlobStore
  readonly #offload: Offload
  /** Of the newest blobs, so that the first {@link pieceLayer} need not hash the upper layers again. */
  readonly #subtrees = new LRUCache<Sha256Digest, Uint8Array>({
    maxSize: MAX_SUBTREE_BYTES,
    sizeCalculation: ({ length }) => length + ENTRY_BYTES
  })

  private constructor(store: DiskBlobStore, offload: Offload, port: FilePort) {
    this.#port = port
    this.#root = join(store.root, 'cache', 'leaves')
    this.#temp = join(store.root, 'cache', 'tmp')
    this.#store = store
    this.#offload = offload
  }

  /** Creates its folders in that of the store, and removes temporary files after a crash. */
  static async open(store: DiskBlobStore, offload: Offload, port: FilePort = nodeFilePort): Promise<LeafLayers> {
    const layers = new LeafLayers(store, offload, port)
    const folders = new DurableFolders(port, store.root)
    for (const folder of [layers.#root, layers.#temp]) await folders.make(folder)
    for (const name of await port.readdir(layers.#temp)) await port.unlink(join(layers.#temp, name))
    return layers
  }

  /** Caches a leaf layer from an ingest, whose buffer is transferred, and returns the tree's root. */
  async keep(result: HashResult): Promise<BlobTree> {
    const { digest, sizeBytes } = result
    if (sizeBytes === 0) return { digest, sizeBytes, merkleRoot: undefined }
    const { root, subtrees } = await this.#folded(result)
    if (subtrees !== undefined) this.#subtrees.set(digest, subtrees)
    return { digest, sizeBytes, merkleRoot: digestFromBytes(root) }
  }

  /** Caches a leaf layer of a blob whose root is known, or not needed. */
  async keepLeaves(digest: Sha256Digest, sizeBytes: number, leaves: Uint8Array): Promise<void> {
    if (sizeBytes <= UNCACHED_BYTES) return
    this.#store.requireRoot()
    await replaceFile(this.#port, this.#path(digest), leaves, { temporaryFolder: this.#temp, durable: false })
  }

  /**
   * The tree of a blob that is here. Reads it again: a cached layer has no root to be checked against.
   * @throws LibraryError `E_CORRUPTION` when the blob is damaged
   */
  async treeOf(digest: Sha256Digest, signal?: AbortSignal): Promise<BlobTree> {
    return this.keep(await this.#rebuilt(digest, signal))
  }

  /**
   * Whether a blob that is here has this merkle root. Read again only where the cached layer does not show it.
   * @throws as {@link treeOf}
   */
  async hasRoot(
    { digest, sizeBytes }: Pick<BlobTree, 'digest' | 'sizeBytes'>,
    root: Uint8Array,
    signal?: AbortSignal
  ): Promise<boolean> {
    const leaves = await this.window(digest, sizeBytes, 0, blockCount(sizeBytes))
    if (leaves !== undefined && equalBytes((await this.#fold(leaves, sizeBytes)).root, root)) return true
    return (await this.treeOf(digest, signal)).merkleRoot === digestFromBytes(root)
  }

  /** Removes the layer of a deleted blob, if there is one. */
  async forget(digest: Sha256Digest): Promise<void> {
    this.#subtrees.delete(digest)
    await this.#port.unlink(this.#path(digest)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  }

  /**
   * The hashes `[start, end)` of a cached leaf layer, unverified: the caller verifies them. Reads only these; undefined
   * if the cache has no layer of this length. Nothing is recomputed, as any stranger may cause the call.
   */
  async window(digest: Sha256Digest, sizeBytes: number, start: number, end: number): Promise<Uint8Array | undefined> {
    if (sizeBytes <= UNCACHED_BYTES) return undefined
    return readWindow(this.#port, this.#path(digest), {
      sizeBytes: blockCount(sizeBytes) * HASH_BYTES,
      start: start * HASH_BYTES,
      end: end * HASH_BYTES
    })
  }

  /**
   * The piece layer of a blob larger than a piece, verified against its root; computed again from the blob where the
   * cache has none, or a wrong one.
   * @throws LibraryError `E_CORRUPTION` when the blob itself is damaged or has another root
   */
  async pieceLayer(
    digest: Sha256Digest,
    sizeBytes: number,
    merkleRoot: Sha256Digest,
    pieceLengthBytes: number,
    signal?: AbortSignal
  ): Promise<Uint8Array> {
    const layerOf = async (subtrees: Uint8Array | undefined): Promise<Uint8Array | undefined> => {
      if (subtrees?.length !== Math.ceil(sizeBytes / SUBTREE_BYTES) * HASH_BYTES) return undefined
      const { root, layer } = await this.#offload.call('fold', { subtrees, sizeBytes, pieceLengthBytes })
      return equalBytes(root, digestBytes(merkleRoot)) ? layer : undefined
    }
    const kept = this.#subtrees.get(digest)
    this.#subtrees.delete(digest)
    const layer =
      (await layerOf(kept)) ??
      (await layerOf(await this.#cachedSubtrees(digest, sizeBytes))) ??
      (await layerOf((await this.#folded(await this.#rebuilt(digest, signal))).subtrees))
    if (layer !== undefined) return layer
    throw new LibraryError('E_CORRUPTION', `the merkle root of ${digest} is not the one in its manifest`)
  }

  /**
   * The piece layers of a torrent's files, verified against their roots, by root in hex. Those in `known` are reused;
   * the manifest's own is computed from its bytes, since it need not be in the store yet. @throws as {@link pieceLayer}
   */
  async pieceLayers(
    torrent: ArtifactTorrent,
    { known = new Map(), signal }: { readonly known?: PieceLayers | undefined; readonly signal?: AbortSignal } = {}
  ): Promise<PieceLayers> {
    const { pieceLength, manifestDigest, manifestLeaves } = torrent
    const layers = new Map(known)
    for (const { digest, length, piecesRoot } of torrent.files) {
      if (piecesRoot === undefined || length <= pieceLength) continue
      const root = toHex(piecesRoot)
      if (layers.has(root)) continue
      const layer =
        digest === manifestDigest
          ? pieceLayer(manifestLeaves, length, pieceLength)
          : await this.pieceLayer(digest, length, digestFromBytes(piecesRoot), pieceLength, signal)
      layers.set(root, layer)
    }
    return layers
  }

  /** Caches a leaf layer, and folds it unless its hasher did. */
  async #folded({ digest, sizeBytes, attachments }: HashResult): Promise<FoldedLeaves> {
    const leaves = attachments[LEAVES.name]!
    await this.keepLeaves(digest, sizeBytes, leaves)
    const root = attachments[ROOT]
    if (root !== undefined) return { root, subtrees: attachments[SUBTREES] }
    return sizeBytes > UNCACHED_BYTES ? this.#fold(leaves, sizeBytes) : { root: piecesRoot(leaves, sizeBytes) }
  }

  async #cachedSubtrees(digest: Sha256Digest, sizeBytes: number): Promise<Uint8Array | undefined> {
    const leaves = await this.window(digest, sizeBytes, 0, blockCount(sizeBytes))
    return leaves && (await this.#fold(leaves, sizeBytes)).subtrees
  }

  /** Transfers the leaves where they have a buffer of their own. */
  #fold(leaves: Uint8Array, sizeBytes: number): Promise<FoldedLeaves> {
    const { buffer } = leaves
    const whole = buffer instanceof ArrayBuffer && buffer.byteLength === leaves.byteLength ? [buffer] : []
    return this.#offload.call('root', { leaves, sizeBytes }, { transfer: whole })
  }

  async #rebuilt(digest: Sha256Digest, signal?: AbortSignal): Promise<HashResult> {
    const { status, attachments, sizeBytes } = await this.#store.verify(digest, {
      attachments: [LEAVES],
      ...(signal !== undefined && { signal })
    })
    if (status === 'missing') throw new CasError('E_NOT_FOUND', `there is no blob ${digest}`, { digest })
    if (status === 'mismatched')
      throw new LibraryError('E_CORRUPTION', `the blob ${digest} is corrupt; it was moved to quarantine`)
    return { digest, sizeBytes, attachments }
  }

  #path(digest: Sha256Digest): string {
    return join(this.#root, digestHex(digest))
  }
}
