import { CodedError } from '@svc/internal-errors'
import { isNoSpace } from '@svc/internal-files'

/** Stable codes of {@link ViewError}; programs should test these, messages are for people. */
export type ViewErrorCode =
  /** A name in the manifest or a tar is not a path below a folder, or two files would have the same path. */
  | 'E_BAD_NAME'
  /** Blobs of the artifact are missing; `details.missing` has their digests. */
  | 'E_MISSING_BLOB'
  /** A blob's size or bytes do not match its digest. */
  | 'E_CORRUPT_BLOB'
  /** A tar contains something other than plain files, or too many of them. */
  | 'E_BAD_TAR'
  /** The place of a view cannot be used: a relative path, or an absent parent folder. */
  | 'E_BAD_TARGET'
  /** The place is taken by something that is not a view, or the view contains files that are not its own. */
  | 'E_NOT_A_VIEW'
  /** The place has a view of another model, which the caller did not allow to be replaced. */
  | 'E_TAKEN'
  /** Hard or symbolic links are impossible there (another file system, protection by the kernel, FAT). */
  | 'E_NOT_LINKABLE'
  /** The view has no such file for a runtime. */
  | 'E_NO_MATCH'
  /** Several files match; `details.candidates` lists them. */
  | 'E_AMBIGUOUS'
  /** The first shard of a split model is missing. */
  | 'E_INCOMPLETE'
  /** The file system or a quota is full (ENOSPC, EDQUOT). */
  | 'E_NO_SPACE'
  /** Any other failure of the file system; the original error is the `cause`. */
  | 'E_IO'
  /** The caller's signal was aborted; its reason is the `cause`. */
  | 'E_ABORTED'

/** Facts beyond the message; which of them are present depends on the code. */
export interface ViewErrorDetails {
  readonly path?: string
  readonly name?: string
  readonly digest?: string
  readonly missing?: readonly string[]
  readonly candidates?: readonly string[]
}

/** The one error class of this package. */
export class ViewError extends CodedError<ViewErrorCode, ViewErrorDetails> {
  override readonly name = 'ViewError'
}

/**
 * Wraps an error of the file system; a ViewError passes unchanged. ENOSPC and EDQUOT become `E_NO_SPACE`, others
 * `E_IO`.
 */
export function ioError(error: unknown, doing: string, path: string): ViewError {
  if (error instanceof ViewError) return error
  if (isNoSpace(error)) {
    const hint = 'free some space, or make the view with symbolic links'
    return new ViewError('E_NO_SPACE', `no space to ${doing} at ${path}: ${hint}`, { path }, error)
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new ViewError('E_IO', `cannot ${doing} at ${path}: ${reason}`, { path }, error)
}

/** @throws ViewError `E_ABORTED` when the signal is aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new ViewError('E_ABORTED', 'the view was cancelled by its caller', {}, signal.reason)
}
