import { CasError, type DiskBlobStore, type PartialBlob } from '@svc/cas'
import {
  type Arrivals,
  LEAVES,
  type LeafLayers,
  LibraryError,
  noSpace,
  type OpenBlobs,
  pinKey
} from '@svc/library/parts'
import type { ArtifactFile, ArtifactTorrent } from '@svc/manifest'
import { BLOCK_BYTES, blockCount, HASH_BYTES, type LayoutFile, type TorrentLayout } from '@svc/metainfo'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import type { FileState, FileWriter, TorrentStorage } from '@svc/swarm'

export interface ArtifactStorageOptions {
  readonly store: DiskBlobStore
  readonly leafLayers: LeafLayers
  readonly blobs: OpenBlobs
  readonly torrent: ArtifactTorrent
  readonly signal: AbortSignal
  /** The manifest's bytes, if they must stay out of the store. Nothing may be uploaded then. */
  readonly heldManifest?: Uint8Array | undefined
  /** Notes that the artifact's swarm brings a blob. */
  readonly arrivals: Pick<Arrivals, 'begin' | 'commit'>
  /** What is here is used only if it has the torrent's merkle root. */
  readonly checksRoots?: boolean | undefined
  /** Called when a file became a blob, but not for existing ones. */
  readonly onBlob?: ((digest: Sha256Digest) => void) | undefined
  /** A file has the manifest's merkle root but another SHA-256: no source can ever provide it. */
  readonly onWrong?: ((path: string) => void) | undefined
}

interface Fetched {
  readonly file: ArtifactFile
  readonly partial: PartialBlob
  /** A second file with the same content: its bytes are verified and then discarded. */
  readonly twin: boolean
  /** Its leaf layer, from the pieces that were verified; undefined where an earlier attempt wrote some of the file. */
  readonly leaves: Uint8Array | undefined
}

/**
 * The blobs of one artifact as a torrent's storage. Present blobs are read in place; missing ones go into partial
 * blobs, which survive restarts and crashes, and become addressable only when their flat SHA-256 is right.
 *
 * Invariant: `#fetching` holds exactly the files whose partial this storage has open.
 */
export class ArtifactStorage implements TorrentStorage {
  readonly #options: ArtifactStorageOptions
  readonly #fetching = new Map<number, Fetched>()
  /** Files whose partial is becoming a blob, or is discarded: until that is over it cannot be read. */
  readonly #ending = new Map<number, Promise<unknown>>()
  /** Twins that are verified, and wait for the blob. */
  readonly #verifiedTwins = new Set<number>()
  #files: readonly ArtifactFile[] = []
  #opening: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: ArtifactStorageOptions) {
    this.#options = options
  }

  /** Opens partial blobs for the missing files; waits while another user in this process holds one of them. */
  open(layout: TorrentLayout): Promise<void> {
    const byPath = new Map(this.#options.torrent.files.map((file) => [file.path, file]))
    this.#files = layout.files.map(({ path }) => {
      const file = byPath.get(path)
      if (file === undefined) throw new Error(`the torrent contains ${path}, which is not in its manifest`)
      return file
    })
    this.#opening = this.#openMissing()
    return this.#opening
  }

  async state({ index }: LayoutFile): Promise<FileState> {
    const fetched = this.#fetching.get(index)
    return fetched === undefined ? { kind: 'complete' } : { kind: 'partial', ranges: fetched.partial.ranges() }
  }

  async read(fileIndex: number, offset: number, target: Uint8Array): Promise<number> {
    const fetched = this.#fetching.get(fileIndex)
    if (fetched !== undefined) {
      try {
        return await fetched.partial.read(target, offset)
      } catch (error) {
        if (!(error instanceof CasError) || error.code !== 'E_CLOSED') throw error
        // peers ask for a file until and while it is committed: the engine must not take its bytes for lost.
        await this.#ending.get(fileIndex)
      }
    }
    return this.#options.blobs.read(this.#files[fileIndex]!.digest, offset, target)
  }

  /** The file that is being fetched into the partial blob of that digest, by this writer alone. */
  fetching(digest: Sha256Digest): number | undefined {
    for (const [index, { file, twin }] of this.#fetching) if (file.digest === digest && !twin) return index
    return undefined
  }

  /** Reads verified bytes of a file that is being fetched; 0 if that is over, or they were taken back. */
  async readFetched(fileIndex: number, offset: number, target: Uint8Array): Promise<number> {
    try {
      return (await this.#fetching.get(fileIndex)?.partial.read(target, offset)) ?? 0
    } catch (error) {
      if (error instanceof CasError && (error.code === 'E_CLOSED' || error.code === 'E_INCOMPLETE')) return 0
      throw error
    }
  }

  readNow(fileIndex: number, offset: number, targets: readonly Uint8Array[]): number | undefined {
    if (this.#fetching.has(fileIndex)) return undefined
    return this.#options.blobs.readNow(this.#files[fileIndex]!.digest, offset, targets)
  }

  async leaves(fileIndex: number, start: number, end: number): Promise<Uint8Array | undefined> {
    const { torrent, leafLayers } = this.#options
    const file = this.#files[fileIndex]!
    if (this.#fetching.has(fileIndex)) return undefined
    if (file.digest === torrent.manifestDigest)
      return torrent.manifestLeaves.subarray(start * HASH_BYTES, end * HASH_BYTES)
    return leafLayers.window(file.digest, file.length, start, end)
  }

  async pieceLayer(fileIndex: number): Promise<Uint8Array | undefined> {
    const { torrent, leafLayers, signal } = this.#options
    const file = this.#files[fileIndex]!
    if (this.#fetching.has(fileIndex) || file.piecesRoot === undefined) return undefined
    const root = digestFromBytes(file.piecesRoot)
    return leafLayers.pieceLayer(file.digest, file.length, root, torrent.pieceLength, signal)
  }

  async writer(fileIndex: number): Promise<FileWriter> {
    const fetched = this.#fetching.get(fileIndex)
    if (fetched === undefined) throw new Error('a complete file cannot be written to')
    const { partial, leaves: layer } = fetched
    return {
      fd: partial.fd,
      write: (offset, bytes) => partial.write(offset, bytes),
      markWritten: (start, end, leaves) => {
        layer?.set(leaves, (start / BLOCK_BYTES) * HASH_BYTES)
        return partial.markWritten(start, end)
      },
      unmark: (start, end) => partial.unmark(start, end)
    }
  }

  async fileComplete(fileIndex: number): Promise<'ok' | 'wrong'> {
    const fetched = this.#fetching.get(fileIndex)
    if (fetched === undefined) return 'ok'
    const { file, partial, twin, leaves } = fetched
    try {
      if (twin) {
        await partial.verify()
        this.#verifiedTwins.add(fileIndex)
        await this.#discardTwins(file.digest)
        return 'ok'
      }
      const committed = this.#options.arrivals.commit(file.digest, () => partial.commit())
      const result = await this.#end(fileIndex, committed)
      await this.#discardTwins(file.digest)
      const layer = leaves ?? result.attachments[LEAVES.name]!
      await this.#options.leafLayers.keepLeaves(result.digest, result.sizeBytes, layer)
      if (result.existed) return 'ok'
      this.#options.onBlob?.(file.digest)
      return 'ok'
    } catch (error) {
      if (!(error instanceof CasError) || error.code !== 'E_DIGEST_MISMATCH') throw error
      this.#options.onWrong?.(file.path)
      return 'wrong'
    }
  }

  /** Its reads wait for the end of `work`, and go to the blob from then on. */
  async #end<T>(fileIndex: number, work: Promise<T>): Promise<T> {
    this.#ending.set(
      fileIndex,
      work.catch(() => undefined)
    )
    try {
      const result = await work
      this.#fetching.delete(fileIndex)
      return result
    } finally {
      this.#ending.delete(fileIndex)
    }
  }

  /** Twins are read until there is a blob in their place. */
  async #discardTwins(digest: Sha256Digest): Promise<void> {
    if (this.fetching(digest) !== undefined) return
    for (const [index, { file, partial }] of this.#fetching) {
      if (file.digest !== digest || !this.#verifiedTwins.delete(index)) continue
      await this.#end(index, partial.discard())
    }
  }

  /**
   * Lets every partial go, whichever fails: an open one would hold its key against each later fetch. @throws CasError
   * the first
   */
  async close(): Promise<void> {
    this.#closed = true
    await this.#opening.catch(() => undefined)
    const partials = [...this.#fetching.values()]
    this.#fetching.clear()
    const failures: unknown[] = []
    // one after the other: each opens a journal, and there may be thousands.
    for (const { partial, twin } of partials)
      await (twin ? partial.discard() : partial.release()).catch((error: unknown) => failures.push(error))
    if (failures.length > 0) throw failures[0]
  }

  /** In the order of digests, so that two artifacts that share blobs never wait for each other. */
  async #openMissing(): Promise<void> {
    const files = [...this.#files.entries()].sort(([, a], [, b]) =>
      a.digest < b.digest ? -1 : a.digest > b.digest ? 1 : 0
    )
    let before: Sha256Digest | undefined
    for (const [index, file] of files) {
      if (this.#closed) return
      await this.#openFile(index, file, file.digest === before)
      before = file.digest
    }
    await this.#requireSpace()
  }

  /** @throws LibraryError `E_NO_SPACE`: before the first byte, as the sizes are known. */
  async #requireSpace(): Promise<void> {
    let needed = 0
    for (const { file, partial } of this.#fetching.values()) {
      needed += partial.ranges().reduce((left, [start, end]) => left - (end - start), file.length)
    }
    if (needed === 0) return
    const free = await this.#options.store.freeBytes()
    if (needed > free) throw noSpace(needed, free)
  }

  async #openFile(index: number, file: ArtifactFile, twin: boolean): Promise<void> {
    const { store, signal, arrivals, torrent } = this.#options
    const { digest, length: sizeBytes } = file
    const isHeld = this.#options.heldManifest !== undefined && digest === torrent.manifestDigest
    if (isHeld || (await this.#present(file))) return
    const key = { key: twin ? `twin-${index}:${digest}` : digest, sizeBytes, digest }
    let partial = await store.partial(key, { signal })
    const isResumed = partial.ranges().length > 0
    if (isResumed) {
      await partial.release()
      partial = await store.partial(key, { attachments: [LEAVES], signal })
    }
    // the previous holder of the key may have committed it
    if (this.#closed || (await this.#present(file))) await (twin ? partial.discard() : partial.release())
    else if (sizeBytes === 0) await partial.commit()
    else {
      const leaves = isResumed ? undefined : new Uint8Array(blockCount(sizeBytes) * HASH_BYTES)
      this.#fetching.set(index, { file, partial, twin, leaves })
      if (!twin) await arrivals.begin(digest, pinKey(torrent.manifestDigest), { isEmpty: !isResumed })
    }
  }

  async #present(file: ArtifactFile): Promise<boolean> {
    const { store, checksRoots = false, leafLayers, signal } = this.#options
    if ((await store.stat(file.digest))?.sizeBytes !== file.length) return false
    if (checksRoots) await requireRoot(file, leafLayers, signal)
    return true
  }
}

/**
 * A stranger's manifest may name the digest of bytes that are here, and the merkle root of others: nobody can give that
 * file. @throws LibraryError `E_NOT_IMPORTABLE`
 */
export async function requireRoot(
  { path, digest, length: sizeBytes, piecesRoot }: ArtifactFile,
  leafLayers: Pick<LeafLayers, 'hasRoot'>,
  signal: AbortSignal
): Promise<void> {
  if (piecesRoot === undefined || (await leafLayers.hasRoot({ digest, sizeBytes }, piecesRoot, signal))) return
  throw new LibraryError(
    'E_NOT_IMPORTABLE',
    `"${path}" has the SHA-256 of the manifest but another merkle root: no source can have these bytes`
  )
}
