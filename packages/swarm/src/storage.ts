import type { LayoutFile, TorrentLayout } from '@svc/metainfo'

/** `[start, end)` pairs in bytes of one file, sorted, disjoint. */
export type ByteRanges = readonly (readonly [start: number, end: number])[]

/**
 * What a storage has of a file when a torrent starts.
 * - `complete`: the storage vouches for every byte; the engine does not hash it again.
 * - `partial`: the ranges are candidates, re-hashed piece by piece before they count.
 */
export type FileState = { readonly kind: 'complete' } | { readonly kind: 'partial'; readonly ranges: ByteRanges }

/** A file that is being fetched. The engine writes only verified pieces into it, in any order, one write at a time. */
export interface FileWriter {
  /**
   * A descriptor that worker threads of this process write to with positions; undefined where there is none
   * (memory): then `write` is called.
   */
  readonly fd: number | undefined
  /** Only called without `fd`. */
  write(offset: number, bytes: Uint8Array): Promise<void>
  /**
   * `[start, end)`, a piece, was written through `fd` or `write` and is verified. `leaves` are the hashes of its blocks (32 bytes for each
   * 16 KiB), proven by the piece's hash: a storage that keeps them need not hash the bytes again.
   */
  markWritten(start: number, end: number, leaves: Uint8Array): void
  /** `[start, end)` is not to be trusted after all. */
  unmark(start: number, end: number): void
}

/**
 * Where the bytes of one torrent live. Declared by the engine, implemented by its user: a folder of files
 * ({@link createFileStorage}), or a content-addressed store. Methods get file indexes of the layout that `open` received.
 */
export interface TorrentStorage {
  /** Called once when the layout is known, before anything else. */
  open(layout: TorrentLayout): Promise<void>
  state(file: LayoutFile): Promise<FileState>
  /**
   * Reads up to `target.length` bytes of verified data. Rejecting means that the bytes are lost: the engine stops offering
   * the file. Called for complete files, and for verified ranges of partial ones.
   */
  read(fileIndex: number, offset: number, target: Uint8Array): Promise<number>
  /**
   * The leaf hashes `[start, end)` of a file (32 bytes for each 16 KiB block), where they are at hand: only these are read, as
   * any peer may ask. The engine proves them before use; undefined makes it fall back on hashing the bytes.
   */
  leaves?(fileIndex: number, start: number, end: number): Promise<Uint8Array | undefined>
  /**
   * The piece layer of a complete file, for a torrent that was added without it; made away from the event loop. The engine
   * proves it; without it peers get no hashes of this file.
   */
  pieceLayer?(fileIndex: number): Promise<Uint8Array | undefined>
  /** Opens a file for fetching; called at most once per incomplete file. */
  writer(fileIndex: number): Promise<FileWriter>
  /**
   * Every piece of the file is verified and written. The storage makes it durable and answers `ok`, or `wrong` when a
   * check of its own (a flat digest) failed: the engine then forgets all pieces of the file.
   */
  fileComplete(fileIndex: number): Promise<'ok' | 'wrong'>
  /** Nothing is called afterwards. Idempotent. */
  close(): Promise<void>
}
