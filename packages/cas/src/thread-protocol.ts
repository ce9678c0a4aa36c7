import type { SerializedError } from '@svc/internal-errors'
import type { FilePortModule } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import type { BlockPipe } from './block-pipe.ts'
import type { PassResult, PassSpec } from './pass-hasher.ts'
import type { FileIdentity, HashAttachment } from './store.ts'

export interface ThreadData {
  readonly filePort: FilePortModule | undefined
  /** The thread's niceness: see `hash-threads.ts`. */
  readonly nice: number
}

/**
 * One pass over a blob's bytes in one thread: computes hashes and, if `part` is given, writes the bytes to a new file.
 */
export interface SessionSpec extends PassSpec {
  /** More bytes are refused at once: `E_SIZE_MISMATCH`. */
  readonly maxBytes?: number | undefined
  readonly part?: string | undefined
}

export interface SessionResult extends PassResult {
  /** The part's open descriptor; the receiver of the result closes it. */
  readonly partFd: number | undefined
}

/** A part file to commit as a blob. The thread closes and removes it, unless the outcome is `exists`. */
export interface CommitItem {
  /** The content, if the part file does not exist yet. */
  readonly bytes?: Uint8Array | undefined
  readonly partFd?: number | undefined
  readonly part: string
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  /**
   * What to do with a file that already has the name. `keep`: it stays if it has the right size. `replace`: its bytes are
   * right, but its name may not be durable. `set-aside`: it is corrupt, and goes to quarantine.
   */
  readonly existing: 'keep' | 'replace' | 'set-aside'
}

export type CommitOutcome =
  /** The name is durable and leads to the new bytes. */
  | { readonly state: 'committed' }
  /**
   * A file of that size already has the name. `same`: its bytes were compared and are equal. Otherwise the caller
   * compares: the part is untouched, or `bytes` come back.
   */
  | { readonly state: 'exists'; readonly same: boolean; readonly bytes?: Uint8Array | undefined }
  /** `nameStays`: the name could not be removed again, although its folder may not be durable. */
  | { readonly state: 'failed'; readonly error: SerializedError; readonly nameStays: boolean }

/** Passes over small files that the thread opens, in one message. */
export interface NamedRun {
  readonly files: readonly { readonly path: string; readonly identity: FileIdentity; readonly part: string }[]
  readonly attachments: readonly HashAttachment[]
  /** See `early-write.ts`. */
  readonly writeEarly: boolean
}
export type NamedOutcome = { readonly result: SessionResult } | { readonly error: SerializedError }

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
  /** `begin`, `pump` of a whole file and `finish` in one. */
  run: {
    request: {
      session: number
      spec: SessionSpec
      fd: number
      forward?: BlockPipe | undefined
      progress: boolean
    }
    response: SessionResult
    /** Reports bytes read so far. */
    progress: number
  }
  /** Discards a session: stops its pump, deletes its part. */
  drop: { request: { session: number }; response: void }
  runNamed: { request: NamedRun; response: NamedOutcome[] }
  /** `root` is the store's. */
  commit: { request: { root: string; items: CommitItem[] }; response: CommitOutcome[] }
}
