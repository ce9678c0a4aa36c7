// Files that the hub has and this store lacks: the hub's source finds them, mirrors show them.

import type { OmissionReason } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { LibraryError } from './library-error.ts'

/** A file that could be fetched. */
export interface UpstreamFile {
  readonly name: string
  readonly sizeBytes: number
  /** Of a file in large-file storage; others have a git blob id. */
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
  /** Called with the bytes read for listings and plans. */
  readonly onBytes: (bytes: number) => void
}

/** A repository at a commit: the files that could be fetched. */
export interface UpstreamRepo {
  /** In the hub's spelling, which differs from the requested one after a redirect. */
  readonly repo: string
  readonly commit: string
  readonly files: ReadonlyMap<string, UpstreamFile>
  readonly leftOut: LeftOut
}

/** A listing without a model. Its message names files of the publisher, and nothing of this machine: strangers may hear it. */
export class UnimportableListingError extends LibraryError<'E_NOT_IMPORTABLE'> {
  override readonly name = 'UnimportableListingError'

  constructor(message: string) {
    super('E_NOT_IMPORTABLE', message)
  }
}
