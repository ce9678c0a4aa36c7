import type { FilePortModule } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import type { BlockPipe } from './block-pipe.ts'
import type { WireError } from './errors.ts'
import type { FileSource, HashAttachment } from './store.ts'

export interface ThreadData {
  readonly filePort: FilePortModule | undefined
  /** The thread's niceness: see `hash-threads.ts`. */
  readonly nice: number
}

/**
 * One pass over a blob's bytes in one thread: computes hashes and, if `part` is given, writes the bytes to a new file.
 */
export interface SessionSpec {
  readonly flat: boolean
  readonly attachments: readonly HashAttachment[]
  readonly sizeBytes?: number | undefined
  /** More bytes are refused at once: `E_SIZE_MISMATCH`. */
  readonly maxBytes?: number | undefined
  readonly part?: string | undefined
  /** The part of the session that the blocks are forwarded to: where that one is behind, this one writes them. */
  readonly helpWrite?: string | undefined
}

export interface SessionResult {
  readonly digest: Sha256Digest | undefined
  readonly sizeBytes: number
  readonly attachments: Record<string, Uint8Array>
  /** The part's open descriptor; the receiver of the result closes it. */
  readonly partFd: number | undefined
  /** Bytes that this session wrote to the part, where two write to it. */
  readonly writtenBytes?: number | undefined
}

/** A part file to publish as a blob. The thread closes and removes it, unless the outcome is `exists`. */
export interface CommitItem {
  /** The content, if the part file does not exist yet. */
  readonly bytes?: Uint8Array | undefined
  readonly partFd?: number | undefined
  readonly part: string
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  /**
   * What becomes of a file that has the name already. `keep`: it stays if it has the right size. `replace`: its bytes are
   * right, but its name may not be durable. `set-aside`: it is corrupt, and goes to quarantine.
   */
  readonly existing: 'keep' | 'replace' | 'set-aside'
}

export type CommitOutcome =
  /** The name is durable and leads to the new bytes. */
  | { readonly state: 'published' }
  /**
   * A file of that size has the name already. `same`: its bytes were compared and are equal. Otherwise the part is
   * untouched, or the bytes come back, and the caller compares.
   */
  | { readonly state: 'exists'; readonly same: boolean; readonly bytes?: Uint8Array | undefined }
  /** `nameStays`: the name could not be removed again, although its folder may not be durable. */
  | { readonly state: 'failed'; readonly error: WireError; readonly nameStays: boolean }

/** A pass over a small file, in one message. */
export interface SmallRun {
  readonly spec: SessionSpec
  readonly source: FileSource
}
/** Passes over small files that the thread opens, in one message that holds no object for each of them. */
export interface NamedRun {
  readonly paths: readonly string[]
  /** As `packIdentities` makes them. */
  readonly identities: BigInt64Array
  /** The part files to write, one for each. */
  readonly parts: readonly string[]
  readonly attachments: readonly HashAttachment[]
  /** See `early-write.ts`. */
  readonly writeEarly: boolean
}
export type SmallRunOutcome = { readonly result: SessionResult } | { readonly error: WireError }

export interface SmallCheck {
  readonly path: string
  readonly digest: Sha256Digest
}

/** The requests and responses of a thread's operations. */
export interface ThreadOperations {
  /** Starts a session; its blocks may also come through `from`. */
  begin: { request: { session: number; spec: SessionSpec; from?: BlockPipe }; response: void }
  /** Sends the next bytes of a session. */
  feed: { request: { session: number; block: SharedArrayBuffer; length: number }; response: void }
  /** Reads `[start, end)` of a descriptor into a session. */
  pump: { request: { session: number; fd: number; start: number; end: number }; response: { bytes: number } }
  /** Ends a session. */
  finish: { request: { session: number }; response: SessionResult }
  /** `begin`, `pump` and `finish` in one. */
  run: {
    request: {
      session: number
      spec: SessionSpec
      fd: number
      /** Default 0. */
      start?: number
      /** Default: the end of the file. */
      end?: number
      forward?: BlockPipe | undefined
      progress: boolean
    }
    response: SessionResult
    /** Reports bytes read so far. */
    progress: number
  }
  /** Discards a session: stops its pump, deletes its part. */
  drop: { request: { session: number }; response: void }
  runSmall: { request: { items: SmallRun[] }; response: SmallRunOutcome[] }
  check: { request: { items: SmallCheck[] }; response: boolean[] }
  runNamed: { request: NamedRun; response: SmallRunOutcome[] }
  /** `root` is the store's. */
  commit: { request: { root: string; items: CommitItem[] }; response: CommitOutcome[] }
}
