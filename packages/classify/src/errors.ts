import { CodedError } from '@svc/internal-errors'

/** Why a name, a tar or a repository was refused; stable, for programs. */
export type ClassifyErrorCode =
  /** An upstream path that no artifact may contain (spec rec.22). */
  | 'E_BAD_NAME'
  /** No weights and no adapters, or nothing that can be sealed (spec rec.3). */
  | 'E_NOT_IMPORTABLE'
  /** A name or a size that a ustar header cannot hold (spec doc.20). */
  | 'E_TAR_LIMIT'
  /** A tar member had more or fewer bytes than announced. */
  | 'E_TAR_CONTENT'
  /** A fact that affects the sealed bytes was not supplied: see `requiredReads`. */
  | 'E_MISSING_FACT'
  /** A JSON text that is malformed, or deeper than allowed. */
  | 'E_BAD_JSON'
  /** The chosen quant does not exist in the listing (spec add.7). */
  | 'E_NO_MEMBER'
  /** A malformed pattern. */
  | 'E_BAD_GLOB'

/** What an error is about, for programs. Fields are present where they apply. */
export interface ClassifyErrorDetails {
  /** The upstream path, or the tar member, that was refused. */
  readonly name?: string
  /** Finer than the code, e.g. `dot-segment`, `duplicate-nfc`. */
  readonly reason?: string
  /** The alternatives, sorted. */
  readonly candidates?: readonly string[]
}

/**
 * The one error class of this package. `message` says what was wrong and what was expected; `details` is the same for
 * programs.
 */
export class ClassifyError extends CodedError<ClassifyErrorCode, ClassifyErrorDetails> {
  override readonly name = 'ClassifyError'
}

/** @throws ClassifyError `E_MISSING_FACT` */
export function failMissing(name: string): never {
  throw new ClassifyError('E_MISSING_FACT', `${name} was not read; requiredReads lists what is needed`, { name })
}
