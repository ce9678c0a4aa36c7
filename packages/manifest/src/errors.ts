import { ReasonedError } from '@svc/internal-errors'

/**
 * `E_INVALID`: a document to be sealed breaks a rule. `E_CORRUPTION`: bytes that were read are not a valid document.
 */
export type ManifestErrorCode = 'E_INVALID' | 'E_CORRUPTION'

/** The first defect found; stable, for programs. */
export type ManifestErrorReason =
  /**
   * Bytes: over the size limit, not UTF-8, not JSON, too deep, a float, null or unsafe integer, not in RFC 8785 form.
   */
  | 'too-large'
  | 'utf8'
  | 'json'
  | 'depth'
  | 'value'
  | 'not-canonical'
  /** A field is absent or of the wrong type or form; `details.field` names it. */
  | 'field'
  | 'kind'
  | 'role'
  | 'path'
  | 'name-duplicate'
  | 'name-conflict'
  | 'digest-conflict'
  | 'merkle-root'
  | 'config-count'
  | 'tokenizer-count'
  | 'chat-template-count'
  | 'file-name'
  | 'file-order'
  | 'total-size'
  | 'members-empty'
  | 'quant'
  | 'quant-duplicate'
  | 'member-order'
  | 'infohash'
  | 'torrent-name'
  | 'piece-length'
  | 'torrent'

/** The one error class of this package. */
export class ManifestError extends ReasonedError<ManifestErrorCode, ManifestErrorReason> {
  override readonly name = 'ManifestError'
}
