import { CasError, type DiskBlobStore, type PartialBlob } from '@svc/cas'
import type { ArtifactFile, ArtifactTorrent } from '@svc/manifest'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import type { FileState, FileWriter, LayoutFile, TorrentLayout, TorrentStorage } from '@svc/swarm'
import { LEAVES, type LeafLayers } from '../leaf-layers.ts'
import type { OpenBlobs } from './open-blobs.ts'

export interface ArtifactStorageOptions {
  readonly store: DiskBlobStore
  readonly leafLayers: LeafLayers
  readonly blobs: OpenBlobs
  readonly torrent: ArtifactTorrent
  readonly signal: AbortSignal
  /** A file became a blob. Not called for those that were there before. */
  readonly onBlob?: (digest: Sha256Digest, sizeBytes: number) => void
  /** A file has the merkle root that the manifest says and another SHA-256: no source can ever give it. */
  readonly onWrong?: (path: string) => void
}

interface Fetched {
  readonly file: ArtifactFile
  readonly partial: PartialBlob
  /** A second file with the same content: its bytes are checked like all others and then dropped. */
  readonly twin: boolean
}

/**
 * The blobs of one artifact as a torrent's storage. Present blobs are read where they lie; missing ones go into partial blobs,
 * which survive restarts, and become addressable only when their flat SHA-256 is right.
 *
 * Invariant: `#fetching` holds exactly the files whose partial this storage has open.
 */
export class ArtifactStorage implements TorrentStorage {
  readonly #options: ArtifactStorageOptions
  readonly #fetching = new Map<number, Fetched>()
  readonly #opening = new Map<number, Promise<Fetched | undefined>>()
  #files: readonly ArtifactFile[] = []
  #closed = false

  constructor(options: ArtifactStorageOptions) {
    this.#options = options
  }

  async open(layout: TorrentLayout): Promise<void> {
    const byPath = new Map(this.#options.torrent.files.map(file => [file.path, file]))
    this.#files = layout.files.map(({ path }) => {
      const file = byPath.get(path)
      if (file === undefined) throw new Error(`the torrent holds ${path}, its manifest does not`)
      return file
    })
  }

  async state({ index }: LayoutFile): Promise<FileState> {
    const fetched = await this.#fetched(index)
    return fetched === undefined ? { kind: 'complete' } : { kind: 'partial', ranges: fetched.partial.ranges() }
  }

  async read(fileIndex: number, offset: number, target: Uint8Array): Promise<number> {
    const fetched = this.#fetching.get(fileIndex)
    if (fetched !== undefined) return fetched.partial.read(target, offset)
    return this.#options.blobs.read(this.#files[fileIndex]!.digest, offset, target)
  }

  async leaves(fileIndex: number): Promise<Uint8Array | undefined> {
    const { torrent, leafLayers, signal } = this.#options
    const file = this.#files[fileIndex]!
    if (this.#fetching.has(fileIndex) || file.piecesRoot === undefined) return undefined
    if (file.digest === torrent.manifestDigest) return torrent.manifestLeaves
    return leafLayers.leaves(file.digest, file.length, digestFromBytes(file.piecesRoot), signal)
  }

  async writer(fileIndex: number): Promise<FileWriter> {
    const fetched = await this.#fetched(fileIndex)
    if (fetched === undefined) throw new Error('a complete file is not written to')
    const { partial } = fetched
    return {
      fd: partial.fd,
      write: (offset, bytes) => partial.write(offset, bytes),
      markWritten: (start, end) => partial.markWritten(start, end),
      unmark: (start, end) => partial.unmark(start, end)
    }
  }

  async fileComplete(fileIndex: number): Promise<'ok' | 'wrong'> {
    const fetched = this.#fetching.get(fileIndex)
    if (fetched === undefined) return 'ok'
    const { file, partial, twin } = fetched
    try {
      if (twin) {
        await partial.verify()
        this.#fetching.delete(fileIndex)
        await partial.discard()
        return 'ok'
      }
      const result = await partial.publish()
      this.#fetching.delete(fileIndex)
      await this.#options.leafLayers.keep(result.digest, result.sizeBytes, result.attachments[LEAVES.name]!)
      if (!result.existed) this.#options.onBlob?.(file.digest, file.length)
      return 'ok'
    } catch (error) {
      if (!(error instanceof CasError) || error.code !== 'E_DIGEST_MISMATCH') throw error
      this.#options.onWrong?.(file.path)
      return 'wrong'
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#opening.values())
    for (const { partial, twin } of this.#fetching.values()) await (twin ? partial.discard() : partial.release())
    this.#fetching.clear()
  }

  #fetched(index: number): Promise<Fetched | undefined> {
    let opening = this.#opening.get(index)
    if (opening === undefined) {
      opening = this.#open(index)
      this.#opening.set(index, opening)
    }
    return opening
  }

  /** undefined for a file whose blob is there. */
  async #open(index: number): Promise<Fetched | undefined> {
    const { store, signal } = this.#options
    const file = this.#files[index]!
    const { digest, length: sizeBytes } = file
    if (await this.#present(digest, sizeBytes)) return undefined
    const twin = this.#files.findIndex(each => each.digest === digest) < index
    const key = twin ? { key: `twin-${index}:${digest}`, sizeBytes, digest } : { key: digest, sizeBytes, digest }
    const partial = await store.partial(key, { attachments: [LEAVES], signal })
    // whoever had the key before may have published it
    if (this.#closed || (await this.#present(digest, sizeBytes))) {
      await (twin ? partial.discard() : partial.release())
      return undefined
    }
    if (sizeBytes === 0) {
      await partial.publish()
      return undefined
    }
    const fetched = { file, partial, twin }
    this.#fetching.set(index, fetched)
    return fetched
  }

  async #present(digest: Sha256Digest, sizeBytes: number): Promise<boolean> {
    return (await this.#options.store.stat(digest))?.sizeBytes === sizeBytes
  }
}
