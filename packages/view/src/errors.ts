/** Stable codes of {@link ViewError}; programs decide by them, messages are for people. */
export type ViewErrorCode =
  /** A name of the manifest or of a tar is no path below a folder, or two files would lie at one path. */
  | 'E_BAD_NAME'
  /** Blobs that the artifact needs are not there; `details.missing` has their digests. */
  | 'E_MISSING_BLOB'
  /** A blob has another size or other bytes than its digest says. */
  | 'E_CORRUPT_BLOB'
  /** A tar holds something other than plain files, or more of them than allowed. */
  | 'E_BAD_TAR'
  /** The place of a view is unusable: a relative path, a parent folder that is absent. */
  | 'E_BAD_TARGET'
  /** Something that is no view lies at the place, or files lie in the view that it does not know. */
  | 'E_NOT_A_VIEW'
  /** Hard or symbolic links are not possible there (another file system, the kernel's protection, FAT). */
  | 'E_NOT_LINKABLE'
  /** No such file for a runtime in the view. */
  | 'E_NO_MATCH'
  /** Several files could be meant; `details.candidates` names them. */
  | 'E_AMBIGUOUS'
  /** The first shard of a split model is absent. */
  | 'E_INCOMPLETE'
  /** The file system or the quota is full (ENOSPC, EDQUOT). */
  | 'E_NO_SPACE'
  /** Any other failure of the file system; the original error is the `cause`. */
  | 'E_IO'
  /** The caller's signal fired; its reason is the `cause`. */
  | 'E_ABORTED'

/** Facts beside the message; which are present depends on the code. */
export interface ViewErrorDetails {
  readonly path?: string
  readonly name?: string
  readonly digest?: string
  readonly missing?: readonly string[]
  readonly candidates?: readonly string[]
}

/** The one error class of this package. */
export class ViewError extends Error {
  override readonly name = 'ViewError'
  readonly code: ViewErrorCode
  readonly details: ViewErrorDetails

  constructor(code: ViewErrorCode, message: string, details: ViewErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
  }
}

/** The errno code (`ENOENT`, …) of a system error. */
export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** EDQUOT has no name in Node, only its number, which differs between systems. */
const isQuota = (error: unknown): boolean =>
  (error as { errno?: unknown } | null | undefined)?.errno === (process.platform === 'darwin' ? -69 : -122)

/** Wraps a failure of the file system; a ViewError is passed on. ENOSPC and EDQUOT become `E_NO_SPACE`, others `E_IO`. */
export function ioError(error: unknown, doing: string, path: string): ViewError {
  if (error instanceof ViewError) return error
  if (errnoOf(error) === 'ENOSPC' || isQuota(error)) {
    const hint = 'free some space, or make the view with symbolic links'
    return new ViewError('E_NO_SPACE', `no room to ${doing} at ${path}: ${hint}`, { path }, error)
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new ViewError('E_IO', `cannot ${doing} at ${path}: ${reason}`, { path }, error)
}

/** @throws ViewError `E_ABORTED` when the signal has fired. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new ViewError('E_ABORTED', 'the view was given up by its caller', {}, signal.reason)
}
