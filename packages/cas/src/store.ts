import type { ByteRanges } from '@svc/internal-byte-ranges'
import type { Sha256Digest } from '@svc/ref'
import type { CasError } from './errors.ts'

/** A blob of the store: the SHA-256 of its bytes and their number. */
export interface BlobInfo {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
}

/** An open, validated blob. Reads are limited to the blob; `close` is idempotent. */
export interface BlobReader extends BlobInfo {
  /** Reads up to `target.length` bytes from `offset`; returns the count, which is short only at the end of the blob. */
  read(target: Uint8Array, offset: number): Promise<number>
  /** The whole blob or `[start, end)`, in chunks. Closes the reader at its end or when the consumer stops. */
  stream(range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>
  /** The descriptor on disk stores. Worker threads of this process may use it while the reader is open. */
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
}
/**
 * One hash over one blob: `update` is called with its bytes in order, then `digest` once. It lives in a worker thread.
 */
export interface StreamHasher {
  update(chunk: Uint8Array): void
  digest(): Uint8Array
  /** Called once after `digest`: further results of the same work. Result `x` of the hash `name` becomes `attachments['name.x']`. */
  further?(): Readonly<Record<string, Uint8Array>>
}
/** `sizeBytes` is the total size, if known before the first byte. */
export type StreamHasherFactory = (options: unknown, sizeBytes: number | undefined) => StreamHasher

/** The results of a pass over bytes: their SHA-256, their number, and one result per attachment. */
export interface HashResult extends BlobInfo {
  /** One entry per attachment, by its name, and one per result of its `further`. */
  readonly attachments: Readonly<Record<string, Uint8Array>>
}
/** The result of an ingest: a new blob, or one that existed already. */
export interface IngestResult extends HashResult {
  /** True when the store already held the blob. */
  readonly existed: boolean
}

/** Expectations of an ingest, and further hashes to compute. Without options it accepts any bytes. */
export interface IngestOptions {
  /** Required digest; otherwise `E_DIGEST_MISMATCH`. */
  readonly digest?: Sha256Digest
  /** Required size; otherwise `E_SIZE_MISMATCH`, as soon as it is exceeded. */
  readonly sizeBytes?: number
  readonly attachments?: readonly HashAttachment[]
  readonly signal?: AbortSignal
  /** Called with the number of bytes taken so far, at most every few megabytes. */
  readonly onProgress?: (bytesDone: number) => void
  /** Called before the blob becomes addressable; if it throws, the ingest is abandoned and leaves nothing behind. */
  readonly accept?: (result: HashResult) => void | Promise<void>
}

/** A descriptor of this process, which a worker thread reads from offset 0. The caller closes it. */
export interface FileSource {
  readonly fd: number
}
/** What identifies a version of a file, from `fstat`. Any difference means another file or a modified one. */
export interface FileIdentity {
  readonly dev: bigint
  readonly ino: bigint
  readonly size: bigint
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
}
/**
 * A file of less than 4 MiB that the worker thread opens (without following a link), reads and closes. For many small
 * files this saves an open on the main thread, which would cost more than reading them there. `E_IO` unless the file
 * matches `identity` both before the first byte and after the last.
 */
export interface NamedFileSource {
  readonly path: string
  readonly identity: FileIdentity
}
/** Options for many small files at once: those that concern a single file are left out. */
export type IngestNamedOptions = Pick<IngestOptions, 'accept' | 'attachments' | 'signal'>
/** Bytes to ingest: chunks of any size, or an open file. */
export type ByteSource = AsyncIterable<Uint8Array> | FileSource

/**
 * Names a resumable partial blob across restarts, renames and new URLs. `key` is e.g. the digest, or
 * `git-blob-sha1:<hex>` if the SHA-256 is not known beforehand; at most 200 characters.
 */
export interface PartialKey {
  readonly key: string
  readonly sizeBytes: number
  readonly digest?: Sha256Digest
}
/** How to open a partial blob. */
export interface PartialOptions {
  readonly attachments?: readonly HashAttachment[]
  /** Aborts the wait for the key and any hashing. */
  readonly signal?: AbortSignal
}

export type { ByteRanges }

/**
 * A blob under construction, written in any order and not addressable. A worker thread hashes the contiguous prefix
 * while later bytes are written, so that little is left to hash at the end. At most one holder per key in this process.
 */
export interface PartialBlob {
  readonly sizeBytes: number
  /** The ranges that count as written. After a restart: those that were durable at the last checkpoint. */
  ranges(): ByteRanges
  /**
   * Resolves when the bytes are handed to the operating system, and fewer than 128 MiB of the store's partial blobs wait for a
   * checkpoint. Out of bounds: `E_RANGE`. A range may be rewritten until the prefix hash has passed it.
   */
  write(offset: number, bytes: Uint8Array): Promise<void>
  /**
   * For writers that use `fd` themselves, such as the worker threads of a swarm engine: declares `[start, end)` as written. Returns a
   * promise where `write` would wait: the writer should not go on before it resolves. It never rejects.
   */
  markWritten(start: number, end: number): Promise<void> | undefined
  /** Forgets `[start, end)` because those bytes turned out wrong. Restarts the prefix hash if it had passed them. */
  unmark(start: number, end: number): void
  /** Reads bytes that were written. */
  read(target: Uint8Array, offset: number): Promise<number>
  /** Writable descriptor on disk stores, undefined in memory. */
  readonly fd: number | undefined
  /**
   * For threads that write through `fd`: shared memory of one element. While it is not 0, `write` would wait, and they should
   * (`Atomics.wait`) before they write more.
   */
  readonly writeGate?: Int32Array | undefined
  /**
   * fdatasync, then an atomic update of the journal: `ranges` after a crash. Also happens on its own: at 8 MiB, at each doubling,
   * then every 64 MiB, and every two seconds.
   */
  checkpoint(): Promise<void>
  /**
   * Hashes the rest and checks length and digest, without committing it; the bytes can be read afterwards (tar members,
   * small texts). `E_INCOMPLETE` while ranges are missing, `E_DIGEST_MISMATCH` (all ranges are then forgotten).
   */
  verify(): Promise<HashResult>
  /**
   * Verifies, unless that was done, and commits durably; the partial ends. `existed` says that the store already held
   * the blob.
   */
  commit(options?: Pick<IngestOptions, 'accept'>): Promise<IngestResult>
  /** Closes, and keeps what was written for the next holder of the key. Idempotent. */
  release(): Promise<void>
  /** Closes and deletes. */
  discard(): Promise<void>
}

/** `mismatched`: the bytes on disk did not match the blob's digest, and it was moved to quarantine. */
export type VerifyStatus = 'ok' | 'mismatched' | 'missing'
/** How to re-hash one blob. */
export interface VerifyOptions {
  readonly signal?: AbortSignal
  /** Called with the number of bytes hashed so far. */
  readonly onProgress?: (bytesDone: number) => void
  readonly attachments?: readonly HashAttachment[]
}
/**
 * The result of re-hashing a blob. `sizeBytes` is 0 when the blob is missing or not a regular file; `attachments` is
 * empty unless the status is `ok`.
 */
export interface VerifyResult {
  readonly status: VerifyStatus
  readonly sizeBytes: number
  readonly attachments: Readonly<Record<string, Uint8Array>>
}
/** The result of a pass over the whole store: how many blobs were hashed, and which were moved to quarantine. */
export interface ScrubReport {
  readonly checked: number
  readonly mismatched: readonly Sha256Digest[]
}

/** A condition for removing a blob, checked without a race against concurrent ingests. */
export interface RemoveOptions {
  /**
   * Called right before the removal of a blob that nobody leases, while nobody else can commit it or look it up; false
   * keeps it. `ageMs` is the time since its bytes were written.
   */
  readonly may?: (blob: BlobInfo & { readonly ageMs: number }) => boolean
}

/**
 * Keeps blobs from {@link Manager.remove} until it is released. So work can rely on blobs that nothing names yet: whatever it looks up or
 * brings in stays until the work has recorded that it needs them.
 */
export interface Lease {
  /** Keeps this blob too, whether it is there or not. */
  keep(digest: Sha256Digest): void
  /** Idempotent. */
  release(): void
}

/** The state of a partial blob, held or not. */
export interface PartialStatus {
  readonly key: string
  readonly sizeBytes: number
  readonly writtenBytes: number
  /** Somebody holds it now. */
  readonly isHeld: boolean
}

/** Reads blobs. */
export interface Provider {
  /** @throws CasError `E_NOT_FOUND`; other I/O errors are never reported as that. */
  open(digest: Sha256Digest): Promise<BlobReader>
}

/** Takes bytes in. */
export interface Ingester {
  /** Ingests a whole source: hashed, checked, and durable when it resolves. */
  ingest(source: ByteSource, options?: IngestOptions): Promise<IngestResult>
  /**
   * Opens or resumes a partial blob; waits while another holder in this process has the key. Check `stat` afterwards.
   */
  partial(key: PartialKey, options?: PartialOptions): Promise<PartialBlob>
}

/** Looks after partial blobs: those under way, and those that can be resumed. */
export interface IngestManager {
  partialStatus(key: string): PartialStatus | undefined
  /** Sorted by key. */
  listPartials(): readonly PartialStatus[]
  /** Deletes it. From then on its holder, if any, gets `E_CLOSED`. */
  abortPartial(key: string): Promise<void>
}

/** Looks after blobs. */
export interface Manager {
  /**
   * Whether the blob exists durably, so that a power loss cannot take it away. Waits for a running commit of it.
   */
  stat(digest: Sha256Digest): Promise<BlobInfo | undefined>
  /** Sorted by digest; sizes from the file system. */
  list(): AsyncIterable<BlobInfo>
  /**
   * Deletes a blob permanently, unless a lease keeps it or a reader has it open. After a crash it may be there again.
   * @returns the deleted blob; undefined when it is absent or kept
   */
  remove(digest: Sha256Digest, options?: RemoveOptions): Promise<BlobInfo | undefined>
  /**
   * Keeps exactly these blobs. Without `digests` it keeps every blob that anybody looks up, opens, verifies or brings in while the lease is
   * open.
   */
  lease(digests?: Iterable<Sha256Digest>): Lease
  /** Whether a lease keeps the blob, or a reader has it open. */
  isLeased(digest: Sha256Digest): boolean
  /** Re-hashes one blob. A corrupt one is moved to quarantine and reported as `mismatched`. */
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
}

/** Blobs by their SHA-256. Every blob was verified when it was ingested; nothing half-written is ever reachable. */
export interface BlobStore extends Provider, Ingester, IngestManager, Manager {
  /** Aborts running operations, waits for them, stops the threads. Idempotent. */
  close(): Promise<void>
}

/** A store in a folder (spec disk.1). */
export interface DiskBlobStore extends BlobStore {
  readonly root: string
  /** The store's own UUID, which stays the same wherever its folder is (spec disk.21). */
  readonly id: string
  /** The root held no store: opening created it. */
  readonly isNew: boolean
  /**
   * Checks that the root is still the folder that was opened; one `lstat`. Every other call does so itself.
   * @throws CasError `E_STORE_GONE` saying what is there instead, `E_IO`
   */
  requireRoot(): void
  /**
   * Like {@link requireRoot}, and reads who owns the store (spec disk.27): for changes that would destroy another owner's work, on a file
   * system that grants a lock twice. Removals do so themselves. @throws CasError `E_STORE_GONE`, `E_IO`
   */
  requireOwner(): Promise<void>
  /** Like {@link requireRoot}, and checks the folders that every store has. @throws CasError `E_STORE_GONE`, `E_IO` */
  check(): void
  /** What keeps out a second owner: `pid-file` is weaker, for machines without a `flock` program. */
  readonly lockKind: 'flock' | 'pid-file'
  /** Absolute path of the blob's file, whether it exists or not: `<root>/blobs/sha256/<2 hex>/<62 hex>`. */
  blobPath(digest: Sha256Digest): string
  /**
   * Ingests small files, each as {@link BlobStore.ingest} would, but much cheaper for many of them. The outcomes are in
   * the order of the files; a file that fails does not affect the others.
   * @throws CasError `E_ABORTED` or `E_CLOSED`, and `E_RANGE` for a file of 4 MiB or more; what `accept` throws
   */
  ingestNamed(
    files: readonly NamedFileSource[],
    options?: IngestNamedOptions
  ): Promise<readonly (IngestResult | CasError)[]>
  /** Free bytes on the store's file system for this user. */
  freeBytes(): Promise<number>
  /**
   * Whether an ingest of the open file would share its blocks (a reflink) and so need no space, whatever its size.
   * Small files may be written nevertheless. @throws CasError `E_IO`, `E_NO_SPACE`
   */
  sharesBlocks(source: FileSource): Promise<boolean>
}
