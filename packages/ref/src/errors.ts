import { ReasonedError } from '@svc/internal-errors'
import type { RepoId } from './repo.ts'

/** Why a reference, a digest or a part of them was refused; stable, for programs. */
export type RefErrorReason =
  | 'too-long'
  | 'scheme'
  | 'authority'
  | 'short-form'
  | 'namespace'
  | 'name'
  | 'no-selector'
  | 'bare-tag'
  | 'tag-format'
  | 'tag-banned'
  | 'quant-format'
  | 'digest-format'
  | 'unknown-repo'
  | 'unknown-tag'
  | 'ambiguous-selector'
  | 'no-member'
  | 'pin-mismatch'

/** The wire code of a failure (spec ref.3, ref.13). Every grammar failure but the length rule is `E_PARSE`. */
export type RefErrorCode =
  | 'E_PARSE'
  | 'E_LENGTH'
  | 'E_UNKNOWN_REF'
  | 'E_AMBIGUOUS_SELECTOR'
  | 'E_NO_MEMBER'
  | 'E_PIN_MISMATCH'

const CODES: Partial<Record<RefErrorReason, RefErrorCode>> = {
  'too-long': 'E_LENGTH',
  'unknown-repo': 'E_UNKNOWN_REF',
  'unknown-tag': 'E_UNKNOWN_REF',
  'ambiguous-selector': 'E_AMBIGUOUS_SELECTOR',
  'no-member': 'E_NO_MEMBER',
  'pin-mismatch': 'E_PIN_MISMATCH'
}

/** Details beyond the message. */
export interface RefErrorDetails {
  /** The alternatives: members' quants or a repository's tags, sorted by code unit. Empty when there are none. */
  readonly candidates?: readonly string[]
  /** The repository, when `ns/name` was read before the failure, so that a caller can look up its quants. */
  readonly repo?: RepoId
  /** The spelling to use instead; it may hold the placeholder `<quant>`. */
  readonly suggestion?: string
}

/** The one error of this package. `code` is the API's, `reason` is finer; both are stable, the message is for people. */
export class RefError extends ReasonedError<RefErrorCode, RefErrorReason> {
  override readonly name = 'RefError'
  readonly candidates: readonly string[]
  readonly repo: RepoId | undefined
  readonly suggestion: string | undefined

  constructor(reason: RefErrorReason, message: string, details: RefErrorDetails = {}) {
    super(CODES[reason] ?? 'E_PARSE', reason, message)
    this.candidates = details.candidates ?? []
    this.repo = details.repo
    this.suggestion = details.suggestion
  }
}

/** What `parse` returns; undefined for what it refuses with a RefError. */
export function tried<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof RefError) return undefined
    throw error
  }
}
