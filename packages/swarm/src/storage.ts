import type { ByteRanges } from '@svc/internal-byte-ranges'
import type { LayoutFile, TorrentLayout } from '@svc/metainfo'

/**
 * The initial state of a file in the storage.
 * - `complete`: the storage vouches for every byte; the engine does not hash it again.
 * - `partial`: the ranges are candidates that are re-hashed piece by piece before they count.
 */
export type FileState = { readonly kind: 'complete' } | { readonly kind: 'partial'; readonly ranges: ByteRanges }

/** A file that is being downloaded. The engine writes only verified pieces, in any order, one write at a time. */
export interface FileWriter {
  /** Threads write to this descriptor at explicit positions; undefined: `write` is called. */
  readonly fd: number | undefined
  /** Called only if there is no `fd`. */
  write(offset: number, bytes: Uint8Array): Promise<void>
  /**
   * `[start, end)`, a piece, was written through `fd` or `write` and is verified. `leaves` are the hashes of its blocks
   * (32 bytes per 16 KiB), proven by the piece's hash: a storage that keeps them need not hash the bytes again.
   * Until the returned promise settles the engine keeps the piece's memory: it fetches no faster than the storage takes.
   */
  markWritten(start: number, end: number, leaves: Uint8Array): Promise<void> | undefined | void
  /** `[start, end)` is not valid after all. */
  unmark(start: number, end: number): void
}

/**
 * Where the bytes of one torrent are stored. The engine declares it and its user implements it: as a folder of files
 * ({@link createFileStorage}), or on top of a content-addressed store. File indexes are those of the layout that `open`
 * received.
 */
export interface TorrentStorage {
  /** Called once, before anything else, when the layout is known. */
  open(layout: TorrentLayout): Promise<void>
  state(file: LayoutFile): Promise<FileState>
  /**
   * Reads up to `target.length` bytes of verified data. A rejection means that the bytes are lost: the engine stops
   * offering the file. Called for complete files, and for verified ranges of incomplete ones.
   */
  read(fileIndex: number, offset: number, target: Uint8Array): Promise<number>
  /**
   * Reads for several targets at once, one after the other in the file, if the bytes are in memory, and returns how many
   * it read. 0: not in this turn of the event loop, which has read much already; undefined: `read` is called. An error
   * means that the bytes are lost.
   */
  readNow?(fileIndex: number, offset: number, targets: readonly Uint8Array[]): number | undefined
  /**
   * The leaf hashes `[start, end)` of a file (32 bytes per 16 KiB block), if the storage has them; it should read no
   * more than these, as any peer can ask for them. The engine verifies them before use. Without them it hashes the
   * bytes.
   */
  leaves?(fileIndex: number, start: number, end: number): Promise<Uint8Array | undefined>
  /**
   * The piece layer of a complete file, for a torrent that was added without it; compute it off the event loop. The
   * engine verifies it. Without it peers get no hashes of this file.
   */
  pieceLayer?(fileIndex: number): Promise<Uint8Array | undefined>
  /** Opens a file for downloading; called at most once per incomplete file. */
  writer(fileIndex: number): Promise<FileWriter>
  /**
   * Every piece of the file is verified and written. The storage makes it durable and returns `ok`, or `wrong` if its
   * own check (a flat digest) failed: the engine then discards all pieces of the file.
   */
  fileComplete(fileIndex: number): Promise<'ok' | 'wrong'>
  /** Nothing is called afterwards. Idempotent. */
  close(): Promise<void>
}

/** Fills `target` from a file of the storage; returns fewer bytes than that if the file ends before. @throws the storage's error */
export async function readFully(
  storage: Pick<TorrentStorage, 'read'>,
  fileIndex: number,
  offset: number,
  target: Uint8Array
): Promise<number> {
  for (let done = 0; done < target.length; ) {
    const count = await storage.read(fileIndex, offset + done, target.subarray(done))
    if (count === 0) return done
    done += count
  }
  return target.length
}
