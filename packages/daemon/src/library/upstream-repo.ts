// What the hub has and this store has not: its source finds that out, mirrors show it.
import type { OmissionReason } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'

/** A file that could be fetched. */
export interface UpstreamFile {
  readonly name: string
  readonly sizeBytes: number
  /** Of one in large-file storage; others have git's name. */
  readonly sha256: Sha256Digest | undefined
  readonly gitBlobSha1: string | undefined
  /** Imported with its artifact: weights, and files too large for memory. Others are read alone. */
  readonly isLarge: boolean
}

/** What a commit has and a mirror does not. */
export interface LeftOut {
  /** By upstream name, as far as they are listed. */
  readonly reasons: ReadonlyMap<string, OmissionReason>
  /** Files that are too many to be listed. */
  readonly more: number
}

export interface LookOptions {
  /** Refuses a commit that no branch or tag names. */
  readonly isNamedOnly: boolean
  /** What an earlier answer of the hub said of this commit. */
  readonly branch?: { readonly name: string; readonly at: string } | undefined
  /** Told of the bytes that are read for listings and plans. */
  readonly onBytes: (bytes: number) => void
}

/** A repository at a commit: the files that could be fetched. */
export interface UpstreamRepo {
  /** In the hub's spelling: after a redirect another one than was asked for. */
  readonly repo: string
  readonly commit: string
  readonly files: ReadonlyMap<string, UpstreamFile>
  readonly leftOut: LeftOut
}
