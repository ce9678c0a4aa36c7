import type { FilePortModule } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import type { BlockPipe } from './block-pipe.ts'
import type { WireError } from './errors.ts'
import type { FileSource, HashAttachment, NamedFileSource } from './store.ts'

export interface ThreadData {
  readonly filePort: FilePortModule | undefined
  /** Takes what the event loop leaves: see `hash-worker.ts`. */
  readonly lowPriority: boolean
}

/** One pass over the bytes of one blob, kept in one thread: hashes and, where `part` is given, a new file that takes the bytes. */
export interface SessionSpec {
  readonly flat: boolean
  readonly attachments: readonly HashAttachment[]
  readonly sizeBytes?: number | undefined
  /** More bytes than that are refused at once: `E_SIZE_MISMATCH`. */
  readonly maxBytes?: number | undefined
  readonly part?: string | undefined
}

export interface SessionResult {
  readonly digest: Sha256Digest | undefined
  readonly sizeBytes: number
  readonly attachments: Record<string, Uint8Array>
  /** The part's open descriptor; whoever gets the result closes it. */
  readonly partFd: number | undefined
}

/** A part that becomes a blob. The thread closes and removes the part, unless the outcome is `exists`. */
export interface CommitItem {
  /** The bytes, when the part does not exist yet. */
  readonly bytes?: Uint8Array | undefined
  readonly partFd?: number | undefined
  readonly part: string
  readonly blob: string
  readonly shard: string
  readonly sizeBytes: number
  /** Replace a file that already has the name, even one of the right size. */
  readonly replace: boolean
  /** Where a corrupt file at the blob's path goes. */
  readonly aside: string
  readonly asideFolder: string
}

export type CommitOutcome =
  /** The name is durable and leads to the part's bytes. */
  | { readonly state: 'published' }
  /**
   * A file of that size already has the name. `same`: its bytes were compared and are equal. Otherwise the part is untouched, and the
   * caller compares.
   */
  | { readonly state: 'exists'; readonly same: boolean }
  /** `nameStays`: the name could not be removed again, although its folder may not be durable. */
  | { readonly state: 'failed'; readonly error: WireError; readonly nameStays: boolean }

/** A file of a few megabytes, taken in one go. */
export interface SmallRun {
  readonly spec: SessionSpec
  /** An open file, or one to open. */
  readonly source: FileSource | NamedFileSource
}
export type SmallRunOutcome = { readonly result: SessionResult } | { readonly error: WireError }

export interface SmallCheck {
  readonly path: string
  readonly digest: Sha256Digest
}

/** What each operation of a thread takes and gives. */
export interface ThreadOperations {
  /** Starts a session; blocks may also arrive through `from`. */
  begin: { request: { session: number; spec: SessionSpec; from?: BlockPipe }; response: void }
  /** The next bytes of a session. */
  feed: { request: { session: number; block: SharedArrayBuffer; length: number }; response: void }
  /** Reads `[start, end)` of a descriptor into a session. */
  pump: { request: { session: number; fd: number; start: number; end: number }; response: { bytes: number } }
  /** Ends a session. */
  finish: { request: { session: number }; response: SessionResult }
  /** `begin`, `pump`, `finish` in one. */
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
    /** Bytes read so far. */
    progress: number
  }
  /** Forgets a session, stops its pump, deletes its part. */
  drop: { request: { session: number }; response: void }
  runSmall: { request: { items: SmallRun[] }; response: SmallRunOutcome[] }
  check: { request: { items: SmallCheck[] }; response: boolean[] }
  commit: { request: { items: CommitItem[] }; response: CommitOutcome[] }
  datasync: { request: { fd: number }; response: void }
}
