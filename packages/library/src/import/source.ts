import type { HashAttachment, HashResult, NamedFileSource, PartialBlob } from '@svc/cas'
import type { ReadAt } from '@svc/classify'
import type { ArtifactSource, BlobTree, Provenance, SourceKind } from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'

/**
 * A file on this machine, opened without following a link. A worker thread reads `fd` from offset 0, at most `sizeBytes`; the
 * source closes it.
 */
export interface OpenedFile {
  readonly fd: number
  /** Called after the last read, before anything is addressable. Throws if the file changed since it was opened. */
  unchanged(): Promise<void>
  close(): Promise<void>
}

/** The name of a local file, for the store to open. The file's folder is held open until `release`, which is called once. */
export interface HeldName {
  readonly source: NamedFileSource
  release(): Promise<void>
}

/** What a source reports about bytes that it takes from another blob of the store. */
export interface Reuse {
  /** Called before the first of them. @param source whether access to the source is restricted now */
  begin(of: Sha256Digest, source: { readonly isRestricted: boolean }): Promise<void>
  took(bytes: number): void
}

/** Where a remote file is fetched into: its partial blob, or a range of one. */
export interface FetchTarget
  extends Pick<PartialBlob, 'sizeBytes' | 'ranges' | 'write' | 'unmark' | 'read' | 'markWritten'> {
  /** Threads may write through it, if there is one. */
  readonly fd?: number | undefined
  readonly writeGate?: Int32Array | undefined
}

export interface FetchContext {
  readonly signal: AbortSignal
  /** Called with the number of bytes of this file that are there, whenever it changes noticeably. */
  readonly onProgress: (bytesDone: number) => void
  /** For a source that can take some bytes from another blob of the store; absent if it must give all of them itself. */
  readonly reuse?: Reuse | undefined
  /** Called with why nothing is transferred (a rate limit, a pause before a retry), for people; with `undefined` when it continues. */
  readonly onWaiting: (message: string | undefined) => void
  /** Whether readers wait for this file: the lowest number comes first. Asked before each request. */
  readonly rank: () => number | undefined
}

/** What a source says about one of its files. */
interface SourceFileFacts {
  /** Artifact-relative path separated by `/`; the plan refuses the paths that spec rec.22 refuses. */
  readonly name: string
  readonly sizeBytes: number
  /** The SHA-256 that the source promises: a blob that is here is not fetched, and other bytes are refused. */
  readonly digest?: Sha256Digest
  /** The same for a file that is fetched even if the store has it. */
  readonly readAs?: Sha256Digest
  /** Set if the source has just brought the file into the store and hashed it: the file is not read again. */
  readonly tree?: BlobTree
  /** Set if the source has brought the file into the store. `isSeen`: it gave all bytes just now. */
  readonly stored?: { readonly isSeen: boolean }
  /** The partial blob's key if no SHA-256 is known, as `git-blob-sha1:<hex>`. A remote file has one or the other. */
  readonly partialKey?: string
  /** Further hashes for `accept`, computed in the same pass. The name `leaves` is reserved. */
  readonly attachments?: readonly HashAttachment[]
  /** Random access before the import, for the few bytes that tell a role or a quant. Unverified: the bytes must say the same later. */
  readonly peek?: (signal: AbortSignal) => ReadAt
  /** The files of the source that it is joined of, in their order (spec rec.31). */
  readonly joinedOf?: readonly string[]
  /** The final check of the bytes; throwing refuses them (wrong bytes, fetched once more if remote). */
  readonly accept?: (result: HashResult) => void | Promise<void>
}

/** A file that is on this machine. Nothing is read before `open`. */
export interface FileHere extends SourceFileFacts {
  open(signal: AbortSignal): Promise<OpenedFile>
  /**
   * A shortcut for small files, many at a time: the store opens them where it reads them. If that fails, `open`
   * reports the error. A file with it has no `digest`, `accept` or `attachments`.
   */
  readonly holdName?: () => Promise<HeldName>
}

/** A file that is fetched into a partial blob, which may hold verified ranges from an earlier attempt. */
export interface RemoteFile extends SourceFileFacts {
  /**
   * Fetches what `into.ranges()` lacks, and returns when nothing is missing. The source handles retries of the
   * transport; the pipeline verifies the bytes, and calls `fetch` once more with an empty partial if they were wrong.
   */
  fetch(into: FetchTarget, context: FetchContext): Promise<void>
}

export type SourceFile = FileHere | RemoteFile

/** The digest under which readers ask for a file, if it has one before it is here. */
export const readAs = ({ digest, readAs = digest }: SourceFile): SourceFile['digest'] => readAs

export const isRemote = (file: SourceFile): file is RemoteFile => 'fetch' in file

/** Where files come from, by the word of whoever wrote their cache: nothing follows from it but a question. */
export interface ClaimedOrigin {
  readonly repo: string
  /** Default: the latest commit. */
  readonly revision?: string | undefined
}

/** What is known of the bytes of a file that is here. */
export interface ClaimedFile {
  /** The name that it must have there; any, where absent. */
  readonly name?: string
  readonly sha256?: string | undefined
  /** Git's name of the blob, 40 hexadecimal digits. */
  readonly gitSha1?: string | undefined
}

/** `public`: it gives these files to everybody, by its current statement. */
export type PublicAnswer = 'public' | 'not-public' | 'other-files' | 'no-answer'

/**
 * Asks a source without a credential whether everybody may have files. `files` is awaited after the source has answered.
 * @throws only for an abort, or the error of `files`
 */
export type ConfirmPublic = (
  origin: ClaimedOrigin,
  files: Promise<readonly ClaimedFile[]>,
  signal: AbortSignal
) => Promise<PublicAnswer>

/**
 * The input of one import: a flat listing and a way to open each file. Everything else (plan, ingest, classify, seal,
 * commit) is the same for every source (spec rec.1 to rec.4).
 */
export interface ImportSource {
  readonly kind: SourceKind
  readonly files: readonly SourceFile[]
  /** How many files the place that it is fetched from says that it lacks. Default none. */
  readonly leftOut?: number | undefined
  /** The owner said that every companion may leave with the model (spec rec.24). Default false. */
  readonly givesAll?: boolean
  /** Annotations for the sealed manifests, e.g. `svc.hf.repo` and `svc.hf.revision`. Empty for local imports. */
  readonly annotations: Readonly<Record<string, string>>
  /** The whole listing is fetched (spec hub.5); unrecognized files are dropped after the check. */
  readonly fetchUnrecognized: boolean
  /** Number of files processed concurrently. Local imports are bounded by the hashing threads. */
  readonly concurrency: number
  /** Who may have bytes from this source (spec add.37). Called after the last file, since some sources find out late. */
  readonly provenance: () => Provenance | Promise<Provenance>
  readonly origin: ArtifactSource
  /** The branch or tag that the owner follows under the name of the import; empty for a commit. Default: unchanged. */
  readonly follows?: string | undefined
  /** The manifest that it says it was packed from. */
  readonly packedFrom?: string | undefined
  /** For `result.warnings`, before those of the pipeline. May grow while files are fetched. */
  readonly warnings: readonly string[]
  /** Called once, after the last file, even if the import failed. */
  close(): Promise<void>
}
