import type { ByteRanges } from '@svc/internal-byte-ranges'
import type { Sha256Digest } from '@svc/ref'

/** A blob of the store: the SHA-256 of its bytes, and how many they are. */
export interface BlobInfo {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
}

/** An open, validated blob. Reads are bounded to the blob; `close` is idempotent. */
export interface BlobReader extends BlobInfo {
  /** Reads up to `target.length` bytes from `offset`; returns the count, less than asked only at the end of the blob. */
  read(target: Uint8Array, offset: number): Promise<number>
  /** Whole blob or `[start, end)`, in chunks. Closes the reader when it ends or is broken off. */
  stream(range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>
  /** The descriptor on disk stores: may be handed to worker threads of this process while the reader is open. */
  readonly fd: number | undefined
  close(): Promise<void>
}

/**
 * A further hash over the same bytes, computed in the same pass, in the worker thread that hashes.
 * `module` is the URL of an ES module whose default export is a {@link StreamHasherFactory}.
 */
export interface HashAttachment {
  readonly name: string
  readonly module: string
  readonly options?: unknown
  /**
   * Where the result is one hash after another, each of one block and of nothing else: whoever writes a partial blob may then hand over
   * the hashes of what it wrote ({@link PartialBlob.markWritten}), and only what is lacking is hashed here.
   */
  readonly blocks?: BlockShape
}
/** Blocks of `blockBytes` from offset 0 (the last may be short), with a hash of `hashBytes` each. */
export interface BlockShape {
  readonly blockBytes: number
  readonly hashBytes: number
}
/**
 * One hash over one blob: `update` is called with its bytes in order, then `digest` once. It lives in a worker
 * thread.
 */
export interface StreamHasher {
  update(chunk: Uint8Array): void
  digest(): Uint8Array
}
/** `sizeBytes` is the total where it is known before the first byte. */
export type StreamHasherFactory = (options: unknown, sizeBytes: number | undefined) => StreamHasher

/** What a pass over bytes computed: their SHA-256, their count, and one result for each attachment. */
export interface HashResult extends BlobInfo {
  /** One entry per attachment, by its name. */
  readonly attachments: Readonly<Record<string, Uint8Array>>
}
/** What an ingest made, or found to be there already. */
export interface IngestResult extends HashResult {
  /** True when the store held the blob before. */
  readonly existed: boolean
}

/** What an ingest demands of its source, and computes besides. Without options whatever comes is taken in. */
export interface IngestOptions {
  /** Refuse other bytes: `E_DIGEST_MISMATCH`. */
  readonly digest?: Sha256Digest
  /** Refuse another length: `E_SIZE_MISMATCH`, as soon as it is exceeded. */
  readonly sizeBytes?: number
  readonly attachments?: readonly HashAttachment[]
  readonly signal?: AbortSignal
  /** Called with the count of bytes taken so far; at most every few megabytes. */
  readonly onProgress?: (bytesDone: number) => void
  /** Last word before the blob becomes addressable; throwing abandons the ingest and nothing stays behind. */
  readonly accept?: (result: HashResult) => void | Promise<void>
}

/** A descriptor of this process, read from offset 0 by the worker thread; it stays the caller's to close. */
export interface FileSource {
  readonly fd: number
}
/** What a file is known again by; any difference means that it is another one or was written to. As `fstat` gives them. */
export interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
  readonly size: bigint
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
}
/**
 * A file of less than 4 MiB that the worker thread opens (no link is followed), reads and closes: many at a time, where each would cost
 * more to open here than to read there. `E_IO` unless it is the file that `identity` says, before the first byte and after the last.
 */
export interface NamedFileSource {
  readonly path: string
  readonly identity: FileIdentity
}
/** Bytes to be taken in: chunks of any size, an open file, or a small one that is known by its identity. */
export type ByteSource = AsyncIterable<Uint8Array> | FileSource | NamedFileSource

/**
 * What identifies a resumable partial blob: it survives restarts, renames and new URLs.
 * `key` is e.g. the digest, or `git-blob-sha1:<hex>` where the SHA-256 is not known beforehand; at most 200 characters.
 */
export interface PartialKey {
  readonly key: string
  readonly sizeBytes: number
  readonly digest?: Sha256Digest
}
/**
 * How a partial blob is opened. The same attachments must be given each time: their state is part of what is resumed.
 */
export interface PartialOptions {
  readonly attachments?: readonly HashAttachment[]
  /** Aborts the wait for the key and any hashing under way. */
  readonly signal?: AbortSignal
}

export type { ByteRanges }

/**
 * A blob under construction, written in any order. Never addressable. A worker thread hashes the contiguous written
 * prefix behind the writers, so that nothing is left to hash at the end. Exactly one holder per key in this process.
 */
export interface PartialBlob {
  readonly sizeBytes: number
  /** What the journal vouches for as written. After a restart that is what was durable at the last checkpoint. */
  ranges(): ByteRanges
  /** The bytes are on their way to disk when this resolves. Out of bounds: `E_RANGE`. Rewriting a range is allowed until it was hashed past. */
  write(offset: number, bytes: Uint8Array): Promise<void>
  /**
   * For writers that use `fd` themselves (worker threads of a swarm engine): declares `[start, end)` as written. `hashes` are, by the name of
   * an attachment with `blocks`, the hashes of all blocks that lie whole in it, as the writer found them in the very bytes that it wrote: the
   * caller vouches for them, as they are not made again. `E_RANGE` for another number of them.
   */
  markWritten(start: number, end: number, hashes?: Readonly<Record<string, Uint8Array>>): void
  /** Forgets `[start, end)`: those bytes turned out wrong. Restarts the prefix hash where it had passed them. */
  unmark(start: number, end: number): void
  /** Reads written bytes back. */
  read(target: Uint8Array, offset: number): Promise<number>
  /** Writable descriptor on disk stores, undefined in memory. */
  readonly fd: number | undefined
  /** fdatasync, then the journal atomically: what `ranges` gives after a crash. Also done by itself, every 64 MiB and every two seconds. */
  checkpoint(): Promise<void>
  /**
   * Hashes what is left and checks length and digest, publishes nothing; the bytes can be read afterwards (tar members, small texts).
   * `E_INCOMPLETE` while ranges are missing, `E_DIGEST_MISMATCH` (all ranges are then forgotten).
   */
  verify(): Promise<HashResult>
  /** `verify` unless done, then the durable publication; the partial is gone. Same bytes already there: `existed`. */
  publish(options?: Pick<IngestOptions, 'accept'>): Promise<IngestResult>
  /** Closes and keeps what was written, for the next holder of the key. Idempotent. */
  release(): Promise<void>
  /** Closes and deletes. */
  discard(): Promise<void>
}

/** `mismatched`: the bytes on disk have another digest than the name says, and the blob is in quarantine now. */
export type VerifyStatus = 'ok' | 'mismatched' | 'missing'
/** How one blob is hashed anew. `onProgress` gets the bytes hashed so far. */
export interface VerifyOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (bytesDone: number) => void
  readonly attachments?: readonly HashAttachment[]
}
/**
 * What hashing a blob anew found. `sizeBytes` is 0 when the blob is missing or no regular file; `attachments` are empty
 * unless it is `ok`.
 */
export interface VerifyResult {
  readonly status: VerifyStatus
  readonly sizeBytes: number
  readonly attachments: Readonly<Record<string, Uint8Array>>
}
/** What a pass over the whole store found: how many blobs were hashed, and which of them are in quarantine now. */
export interface ScrubReport {
  readonly checked: number
  readonly mismatched: readonly Sha256Digest[]
}

/** A condition on the removal of one blob, decided without a race against those who take it in. */
export interface RemoveOptions {
  /**
   * Asked right before, while nobody else can publish this blob or learn that it is there; false keeps it. `ageMs` is the time since
   * its bytes were written. Whoever wants to keep a blob and says so before asking for it therefore finds it, or finds it absent.
   */
  readonly may?: (blob: BlobInfo & { readonly ageMs: number }) => boolean
}

/** Blobs by their SHA-256. What `open` gives was verified on the way in; nothing half-written is ever reachable. */
export interface BlobStore {
  /** Whether the blob is there to stay: a power loss does not take it away. Waits for a publication of it that is under way. */
  stat(digest: Sha256Digest): Promise<BlobInfo | undefined>
  /** @throws CasError `E_NOT_FOUND`; other I/O errors are never turned into it. */
  open(digest: Sha256Digest): Promise<BlobReader>
  /** Takes a whole source in: hashed, checked, durable when it resolves. */
  ingest(source: ByteSource, options?: IngestOptions): Promise<IngestResult>
  /** Opens or resumes a partial blob; waits while another holder in this process has the key. Check `stat` afterwards. */
  partial(key: PartialKey, options?: PartialOptions): Promise<PartialBlob>
  /**
   * Deletes a blob for good; readers that have it open read on. A crash may bring it back.
   * @returns what was deleted; undefined when it is absent or `may` keeps it
   */
  remove(digest: Sha256Digest, options?: RemoveOptions): Promise<BlobInfo | undefined>
  /** Sorted by digest; sizes from the file system. */
  list(): AsyncIterable<BlobInfo>
  /** Re-hashes one blob; a corrupt one is moved to quarantine first and is then `mismatched`. */
  verify(digest: Sha256Digest, options?: VerifyOptions): Promise<VerifyResult>
  /** Re-hashes everything with all hashing threads. */
  scrub(
    options?: Omit<VerifyOptions, 'attachments' | 'onProgress'> & {
      readonly onProgress?: (done: {
        readonly blobs: number
        readonly bytes: number
        readonly blobsTotal: number
        readonly bytesTotal: number
      }) => void
    }
  ): Promise<ScrubReport>
  /** Aborts what is under way, waits for it, stops the threads. Idempotent. */
  close(): Promise<void>
}

/** A store in a folder (spec disk.1). */
export interface DiskBlobStore extends BlobStore {
  readonly root: string
  /** How the root is guarded against a second owner: `pid-file` is the weaker stand-in where the program `flock` is absent. */
  readonly lockKind: 'flock' | 'pid-file'
  /** Absolute path of the blob's file whether or not it exists: `<root>/blobs/sha256/<2 hex>/<62 hex>`. */
  blobPath(digest: Sha256Digest): string
  /** Free bytes on the store's file system for this user. */
  freeBytes(): Promise<number>
  /**
   * Whether an ingest of the open file would share its blocks (a reflink) and so take no room, whatever its size. Small files may be
   * written all the same. @throws CasError `E_IO`, `E_NO_SPACE`
   */
  sharesBlocks(source: FileSource): Promise<boolean>
  /** How many bytes of the partial blob `key` are on the disk: what is left of it takes the rest. 0 where there is none. */
  partialBytes(key: string): number
}
