import {
  CodedError,
  deserializeError as decode,
  serializeError as encode,
  type SerializedError
} from '@svc/internal-errors'
import { isNoSpace } from '@svc/internal-files'
import type { ErrorCodec } from '@svc/internal-workers'
import type { Sha256Digest } from '@svc/ref'

/** Stable codes of {@link CasError}; programs should test these, messages are for people. */
export type CasErrorCode =
  /** No blob with that digest. */
  | 'E_NOT_FOUND'
  /** The bytes do not match the requested digest. */
  | 'E_DIGEST_MISMATCH'
  /** There are more or fewer bytes than announced. */
  | 'E_SIZE_MISMATCH'
  /** A partial blob still has holes. */
  | 'E_INCOMPLETE'
  /** The file system or a quota is full (ENOSPC, EDQUOT). */
  | 'E_NO_SPACE'
  /** Any other failure of the file system; the original error is the `cause`. */
  | 'E_IO'
  /** The caller's signal was aborted; its reason is the `cause`. */
  | 'E_ABORTED'
  /** Another process, or another store object in this process, owns the root. */
  | 'E_LOCKED'
  /** An offset or length outside the blob. */
  | 'E_RANGE'
  /** The store, the partial or the reader was closed. */
  | 'E_CLOSED'
  /** The folder is not a store, or has an unknown layout. */
  | 'E_FORMAT'
  /** The root folder is unsafe: another user owns it, or others may write to it. */
  | 'E_UNSAFE_ROOT'
  /** The root does not hold the store that is expected there. */
  | 'E_OTHER_STORE'
  /** The root, or a folder that every store has, was taken away or replaced while the store was open. */
  | 'E_STORE_GONE'
  /** The path of a blob leads to something that is not a regular file. */
  | 'E_CORRUPT'
  /** A {@link HashAttachment} could not be loaded, or threw. */
  | 'E_ATTACHMENT'
  /** A hashing thread ended unexpectedly. */
  | 'E_THREAD'

/** Facts beyond the message; which of them are present depends on the code. */
export interface CasErrorDetails {
  readonly digest?: Sha256Digest
  readonly expectedDigest?: Sha256Digest
  readonly sizeBytes?: number
  readonly expectedSizeBytes?: number
  readonly path?: string
  /** What the store was doing, e.g. `read source`, `write part`, `sync part`. */
  readonly operation?: string
  /** The process that holds the lock, if known. */
  readonly pid?: number
  /** The id of the store that was expected. */
  readonly expectedId?: string
  /** The id of the store that is there; absent if there is none. */
  readonly foundId?: string
  /** Blobs that a scrub could not read. */
  readonly unreadable?: readonly Sha256Digest[]
  /** Blobs that the same scrub found corrupt and moved to quarantine. */
  readonly mismatched?: readonly Sha256Digest[]
}

/** The one error class of this package. Errors of the caller's own source or callbacks pass unchanged. */
export class CasError extends CodedError<CasErrorCode, CasErrorDetails> {
  override readonly name = 'CasError'
}

/**
 * Wraps an error of the file system; a CasError passes unchanged. ENOSPC and EDQUOT become `E_NO_SPACE`, all others
 * `E_IO`.
 */
export function ioError(error: unknown, operation: string, path?: string): CasError {
  if (error instanceof CasError) return error
  const details = path === undefined ? { operation } : { operation, path }
  if (isNoSpace(error)) {
    return new CasError(
      'E_NO_SPACE',
      `no space left on the store's file system (${operation}): free some space and try again`,
      details,
      error
    )
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new CasError('E_IO', `${operation} failed: ${reason}`, details, error)
}

export const abortError = (signal?: AbortSignal): CasError =>
  new CasError('E_ABORTED', 'the operation was aborted by its caller', {}, signal?.reason)

/** @throws CasError `E_ABORTED` when the signal is aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal)
}

export const closedError = (what: string): CasError => new CasError('E_CLOSED', `${what} is closed`)

export const shortPart = (): CasError =>
  new CasError('E_IO', 'the part file is shorter than what was written to it', { operation: 'read part' })

/** What a thread throws, as plain data: always a CasError. */
export const encodeError = (error: unknown): SerializedError => encode(ioError(error, 'work in a hashing thread'))
export const decodeError = (wire: SerializedError): Error => decode(wire, { CasError })

export const threadErrors = {
  encode: encodeError,
  decode: decodeError,
  lost: (cause: unknown) => new CasError('E_THREAD', 'a hashing thread ended unexpectedly', {}, cause),
  closed: () => closedError('the store')
} satisfies ErrorCodec
