import { CodedError } from '@svc/internal-errors'
import type { RefErrorCode } from '@svc/ref'

/** Stable. Errors of references pass through `resolve` with the codes of `@svc/ref`. */
export type LibraryErrorCode =
  | RefErrorCode
  /** An argument is malformed, or does not fit what is here. */
  | 'E_INVALID'
  | 'E_NOT_FOUND'
  /** The state names an index that is not here. */
  | 'E_NO_INDEX'
  | 'E_INVALID_INDEX'
  /** A document or record does not have the bytes that it should have. */
  | 'E_CORRUPTION'
  /** No such quant under a name that is here. */
  | 'E_NO_QUANT'
  | 'E_NOT_IMPORTABLE'
  /** A remote source lists what cannot be imported. */
  | 'E_BAD_LISTING'
  /** The source does not have it, or does not list it. */
  | 'E_NOT_AT_SOURCE'
  | 'E_NOT_LISTED'
  /** Nobody but the source itself vouches for the bytes. */
  | 'E_NOT_ANCHORED'
  | 'E_SOURCE_NOT_REGULAR'
  | 'E_SOURCE_UNAVAILABLE'
  /** The source refuses it, or asks for a pause. */
  | 'E_SOURCE_FORBIDDEN'
  | 'E_RATE_LIMITED'
  /** Something keeps the model's weights here. */
  | 'E_KEPT'
  | 'E_NO_SPACE'
  | 'E_ABORTED'
  /** As many as may be at once are held. */
  | 'E_LIMIT'
  | 'E_CLOSED'
  | 'E_IO'
  /** A root that is refused: another process has the store, it is another one, or it cannot be opened. */
  | 'E_LOCKED'
  | 'E_OTHER_STORE'
  | 'E_NO_STORE'
  | 'E_UNFINISHED_COPY'
  | 'E_ROOT'
  /** A file that a rule for signatures names cannot be used. */
  | 'E_TRUST'

/** What would help. Whoever shows an error knows with which command or call that is done. */
export type Advice =
  | { readonly to: AdvicePlain }
  /** Continues what fills a root. */
  | { readonly to: 'continue-copy'; readonly isRestore: boolean; readonly from: string; readonly root: string }
  /** Continues a restore without the files that the backup lacks, unless it can be repaired. */
  | { readonly to: 'repair-backup'; readonly from: string; readonly root: string }
  /** Evicting these models, which can be fetched again, would make room. */
  | { readonly to: 'agree-to-evict'; readonly refs: readonly string[] }
  /** The owner may share a model that is withheld; default: the one that it is about. */
  | { readonly to: 'share-anyway'; readonly ref?: string }
  /** The source of a model has the files beside it. */
  | { readonly to: 'fetch-companions'; readonly ref: string }

/** Advice without further facts. */
export type AdvicePlain =
  | 'free-space'
  | 'evict-anyway'
  | 'examine-records'
  | 'unkeep'
  | 'remove-view'
  | 'cancel-work'
  | 'import'
  | 'allow-peers'
  | 'choose-other-name'
  | 'make-store'
  | 'make-store-there'
  | 'accept-store'
  | 'expect-store'
  | 'log-in'
  | 'configure-catalog'
  | 'check-catalog'
  | 'trust-catalog'
  | 'repair-models'
  | 'share-restricted'
  | 'turn-sharing-on'
  | 'adopt'

/**
 * With what that is done in this program, as the end of a sentence for people; empty where there is nothing. Whatever else a library
 * tells people (warnings, why something is withheld) ends so, too.
 */
export type Advise = (advice: Advice) => string

export const NO_ADVICE: Advise = () => ''

/** What an error says beside its message. */
export interface LibraryErrorDetails {
  /** Known alternatives. */
  readonly candidates?: readonly string[] | undefined
  readonly advice?: Advice | undefined
  readonly cause?: unknown
}

/** A failure of the library. Its message has no secret, and no path that the caller did not give. */
export class LibraryError<Code extends string = LibraryErrorCode> extends CodedError<Code> {
  override readonly name: string = 'LibraryError'
  readonly candidates: readonly string[] | undefined
  readonly advice: Advice | undefined

  constructor(code: Code, message: string, { candidates, advice, cause }: LibraryErrorDetails = {}) {
    super(code, message, {}, cause)
    this.candidates = candidates
    this.advice = advice
  }
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A size for people. */
export function spokenBytes(sizeBytes: number): string {
  const unit = sizeBytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(sizeBytes) / 10))
  return `${unit === 0 ? sizeBytes : (sizeBytes / 1024 ** unit).toFixed(1)} ${UNITS[unit]}`
}

/** The error for a disk without enough space. */
export const noSpace = (neededBytes: number, freeBytes: number): LibraryError =>
  new LibraryError(
    'E_NO_SPACE',
    `${spokenBytes(neededBytes)} are needed and ${spokenBytes(freeBytes)} are free on the disk of the store`,
    { advice: { to: 'free-space' } }
  )
