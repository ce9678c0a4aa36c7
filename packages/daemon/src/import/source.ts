import type { BlockShape, HashAttachment, HashResult, NamedFileSource, PartialBlob } from '@svc/cas'
import type { ReadAt } from '@svc/classify'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactSource, SourceKind, SwarmHints } from '../library/origin.ts'

/**
 * A local file that was opened without following a link. The pipeline reads `fd` from offset 0, at most `sizeBytes`,
 * in a worker thread; it stays the source's to close.
 */
export interface OpenedLocalFile {
  readonly kind: 'file'
  readonly fd: number
  /** Called after the last read and before anything becomes addressable. Throws when the file is not the one that was opened. */
  unchanged(): Promise<void>
  close(): Promise<void>
}

/** A file somewhere else. It is fetched into a partial blob, which may hold verified ranges of an earlier try. */
export interface OpenedRemoteFile {
  readonly kind: 'remote'
  /**
   * Fills what `into.ranges()` lacks and returns when nothing is missing. Retries of the transport are the source's own
   * affair; the pipeline verifies afterwards, and calls `fetch` once more with an empty partial when the bytes were wrong.
   */
  fetch(into: PartialBlob, context: FetchContext): Promise<void>
  close(): Promise<void>
}
export type OpenedFile = OpenedLocalFile | OpenedRemoteFile

/** The name of a local file, for the store to open, while the folder that it is looked up in is held. */
type WithNamed = <T>(use: (source: NamedFileSource) => Promise<T>) => Promise<T>

export interface FetchContext {
  readonly signal: AbortSignal
  /** What of `into`'s further hashes is made of blocks that stand alone: who writes through `into.fd` may hand their hashes over. */
  readonly byBlock?: BlockAttachment | undefined
  /** Bytes of this file that are there by now (not a delta), whenever it changes noticeably. */
  readonly onProgress: (bytesDone: number) => void
  /**
   * Why nothing is transferred (a rate limit, a pause before the next try), for people; `undefined` when it goes on.
   */
  readonly onWaiting?: (message: string | undefined) => void
}

/** A further hash of blocks that stand alone. */
export type BlockAttachment = HashAttachment & { readonly blocks: BlockShape }

/** One upstream file. Nothing is read or fetched before `open`. */
export interface SourceFile {
  /** Artifact-relative path with `/`; checked by the plan stage (spec rec.22: no `..`, backslash, control character, …). */
  readonly name: string
  readonly sizeBytes: number
  /** The SHA-256 that the source promises: such a blob is not fetched again when the store has it, and other bytes are refused. */
  readonly digest?: Sha256Digest
  /** Names the partial blob where no SHA-256 is known beforehand, e.g. `git-blob-sha1:<hex>`. Remote files have one of the two. */
  readonly partialKey?: string
  /** Further hashes that `accept` wants to see, computed in the same pass. The name `leaves` is taken. */
  readonly attachments?: readonly HashAttachment[]
  /** Last check of the bytes before they count; throwing refuses them (wrong bytes, retried once when remote). */
  readonly accept?: (result: HashResult) => void | Promise<void>
  open(signal: AbortSignal): Promise<OpenedFile>
  /**
   * A short cut past `open` for small local files: the store opens it where it reads it. Where that fails, whatever the reason, `open` tells
   * what is wrong.
   */
  readonly named?: WithNamed
  /** Random access before the import, for the few bytes that tell a quant. Unverified: nothing of it is kept. Of remote files only. */
  readonly peek?: (signal: AbortSignal) => ReadAt
}

/**
 * What one import takes in: a flat listing and a way to open each file. Everything after that (plan, ingest, classify,
 * seal, commit) is the same for every source (spec rec.1 to rec.4).
 */
export interface ImportSource {
  readonly kind: SourceKind
  readonly files: readonly SourceFile[]
  /** Annotations of the sealed manifests, e.g. `svc.hf.repo` and `svc.hf.revision`. Empty for local imports. */
  readonly annotations: Readonly<Record<string, string>>
  /** True where the whole listing is fetched, recognised or not (spec hub.5); the rest is dropped after the check. */
  readonly fetchUnrecognised: boolean
  /** Files in flight at once. Local imports are bound by the hashing threads. */
  readonly concurrency: number
  /** Whether the source needed a token: not announced to the swarm (spec swarm.5). Asked after the last file, as some ask for it late. */
  readonly isRestricted: () => boolean
  readonly origin: ArtifactSource
  readonly hints: SwarmHints
  /** Shown in `result.warnings`, before those of the pipeline. May grow while files are fetched. */
  readonly warnings: readonly string[]
  /** Called once, after the last file, also when the import failed. */
  close(): Promise<void>
}
